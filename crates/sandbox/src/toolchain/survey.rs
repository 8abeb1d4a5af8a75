//! What toolchains a host has, and which of them are used where nothing says otherwise.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::plan::Lent;
use crate::toolchain::catalogue::{
    Catalogue, Installed, Layout, Root, children, is_of_go, system_program,
};
use crate::toolchain::choose::{Choice, choose, newest};
use crate::toolchain::version::Wanted;
use crate::toolchain::{Family, twin};

/// Where version managers keep versions: below the home.
const OF_HOME: [(&str, Layout); 13] = [
    (".rustup/toolchains", Layout::Versions(Family::Rust)),
    (".pyenv/versions", Layout::Versions(Family::Python)),
    (".local/share/uv/python", Layout::Versions(Family::Python)),
    (".nvm/versions/node", Layout::Versions(Family::Node)),
    (".config/nvm/versions/node", Layout::Versions(Family::Node)),
    (".fnm/node-versions", Layout::Versions(Family::Node)),
    (
        ".local/share/fnm/node-versions",
        Layout::Versions(Family::Node),
    ),
    (".volta/tools/image/node", Layout::Versions(Family::Node)),
    (".goenv/versions", Layout::Versions(Family::Go)),
    ("sdk", Layout::Roots),
    (".asdf/installs", Layout::Tools),
    (".local/share/mise/installs", Layout::Tools),
    (".rbenv/versions", Layout::Other),
];

/// Where versions are among the directories that every sandbox gets anyway.
const OF_SYSTEM: [(&str, Layout); 3] = [
    ("/usr/local", Layout::Roots),
    ("/usr/lib", Layout::Roots),
    ("/usr/local/n/versions/node", Layout::Versions(Family::Node)),
];

/// How many programs get a shim.
const MOST_SHIMS: usize = 4_000;

/// What a caller's toolchains are.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Directories to lend, each at its own path.
    pub lent: Vec<Lent>,
    /// The programs of the versions in use, for PATH.
    pub bins: Vec<PathBuf>,
    /// Where all versions are.
    pub catalogue: Catalogue,
    /// The programs that a shim stands for.
    pub shims: BTreeSet<String>,
}

/// Looks at the toolchains of a caller with this home and PATH.
pub fn survey(home: Option<&Path>, path_env: &OsStr) -> Survey {
    let path: Vec<PathBuf> = std::env::split_paths(path_env).collect();
    let mut found = Survey::default();
    let mut seen = BTreeSet::new();
    if let Some(home) = home {
        for (dir, layout) in of_home(home, &path) {
            let dir = fs::canonicalize(dir).ok().filter(|dir| is_below(home, dir));
            if let Some(dir) = dir.filter(|dir| seen.insert(dir.clone())) {
                found.lent.extend(lent_of(home, &dir, layout));
                found.catalogue.roots.push(Root { path: dir, layout });
            }
        }
    }
    let system = OF_SYSTEM.iter().filter(|(dir, _)| Path::new(dir).is_dir());
    found
        .catalogue
        .roots
        .extend(system.map(|(dir, layout)| Root {
            path: PathBuf::from(dir),
            layout: *layout,
        }));
    let installed = found.catalogue.installed();
    if let Some(home) = home {
        found.bins = bins(home, &path, &installed, &found.lent);
    }
    found.shims = shims(&installed);
    found
}

/// The directories of managers that belong to a home, also where a rustup of another one is on PATH.
fn of_home(home: &Path, path: &[PathBuf]) -> Vec<(PathBuf, Layout)> {
    let own = OF_HOME
        .iter()
        .map(|(dir, layout)| (home.join(dir), *layout));
    let rustup = rustup_homes(home, path).into_iter();
    let rustup = rustup.map(|dir| (dir.join("toolchains"), Layout::Versions(Family::Rust)));
    own.chain(rustup).collect()
}

fn rustup_homes(home: &Path, path: &[PathBuf]) -> Vec<PathBuf> {
    let mut homes = vec![home.join(".rustup")];
    for dir in path.iter().filter(|dir| dir.join("rustup").exists()) {
        // `cargo/bin` and `rustup` are siblings, whether hidden or not.
        let beside = dir.parent().and_then(Path::parent);
        homes.extend(
            beside
                .into_iter()
                .flat_map(|dir| [dir.join(".rustup"), dir.join("rustup")]),
        );
    }
    homes
}

/// The directory itself, and versions in it that are links to elsewhere. Where other things lie beside versions,
/// each version by itself.
fn lent_of(home: &Path, dir: &Path, layout: Layout) -> Vec<Lent> {
    let real = |path: PathBuf| fs::canonicalize(path).ok();
    let versions: Vec<PathBuf> = match layout {
        Layout::Tools => {
            let tools = children(dir).into_iter();
            let tools = tools.flat_map(|(_, tool)| children(&tool));
            tools.filter_map(|(_, path)| real(path)).collect()
        }
        Layout::Roots => {
            let roots = children(dir).into_iter().filter(|(name, _)| is_of_go(name));
            roots.filter_map(|(_, path)| real(path)).collect()
        }
        Layout::Versions(_) | Layout::Other => {
            let versions = children(dir).into_iter();
            versions.filter_map(|(_, path)| real(path)).collect()
        }
    };
    let whole = (layout != Layout::Roots).then(|| dir.to_owned());
    let outside = |version: &PathBuf| whole.as_ref().is_none_or(|dir| !version.starts_with(dir));
    let has_programs = |version: &PathBuf| version.join("bin").is_dir();
    let beside = versions
        .into_iter()
        .filter(|version| outside(version) && has_programs(version) && is_below(home, version));
    let all: BTreeSet<PathBuf> = whole.clone().into_iter().chain(beside).collect();
    // What every sandbox gets anyway is not lent again.
    let new = all.into_iter().filter(|dir| !dir.starts_with("/usr"));
    new.map(|dir| Lent {
        host: dir.clone(),
        inside: dir,
        identity: None,
    })
    .collect()
}

/// Whether a directory is neither the home nor above it, and nothing that a sandbox has of its own.
fn is_below(home: &Path, dir: &Path) -> bool {
    let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    let hidden = ["/dev", "/proc", "/etc", "/run", "/sys"];
    !home.starts_with(dir) && !hidden.iter().any(|hidden| dir.starts_with(hidden))
}

/// The programs of the versions in use: those on PATH first, then what the managers' own settings say.
fn bins(home: &Path, path: &[PathBuf], installed: &[Installed], lent: &[Lent]) -> Vec<PathBuf> {
    let mut bins: Vec<PathBuf> = path
        .iter()
        .filter_map(|dir| fs::canonicalize(dir).ok())
        .filter(|dir| lent.iter().any(|lent| dir.starts_with(&lent.host)))
        .collect();
    for family in Family::ALL {
        let versions: Vec<Installed> = installed
            .iter()
            .filter(|version| version.family == family)
            .cloned()
            .collect();
        let chosen = default_names(family, home, path).into_iter();
        let chosen = chosen.filter_map(|name| Wanted::parse(family, &name));
        let chosen = chosen.filter_map(|it| match choose(family, &it, &versions, &|_, _| None) {
            Some(Choice::Installed(version)) => Some(version.bin),
            Some(Choice::System) | None => None,
        });
        bins.extend(chosen);
        let is_there = |bin: &PathBuf| {
            versions
                .iter()
                .any(|version| real(&version.bin) == real(bin))
        };
        if !bins.iter().any(is_there) && system_program(family.asked().0).is_none() {
            let stable = versions.iter().find(|it| it.name.starts_with("stable"));
            let first = stable.or_else(|| newest(versions.iter()));
            bins.extend(first.map(|version| version.bin.clone()));
        }
    }
    let mut seen = BTreeSet::new();
    let bins = bins.into_iter().map(|bin| real(&bin));
    bins.filter(|bin| seen.insert(bin.clone())).collect()
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The versions that the managers' own settings name. They are the owner's, not the vault's.
fn default_names(family: Family, home: &Path, path: &[PathBuf]) -> Vec<String> {
    let read = |file: PathBuf| fs::read_to_string(file).unwrap_or_default();
    match family {
        Family::Rust => {
            let homes = rustup_homes(home, path).into_iter();
            homes
                .filter_map(|dir| rust_default(&read(dir.join("settings.toml"))))
                .collect()
        }
        Family::Python => {
            let pyenv = home.join(".pyenv");
            let used = path.contains(&pyenv.join("shims"));
            let text = if used {
                read(pyenv.join("version"))
            } else {
                String::new()
            };
            let names = text.split_whitespace().filter(|name| *name != "system");
            names.map(str::to_owned).collect()
        }
        Family::Node => {
            let nvm = read(home.join(".nvm/alias/default")).trim().to_owned();
            let volta = read(home.join(".volta/tools/user/platform.json"));
            let volta = volta
                .split_once("\"runtime\"")
                .and_then(|(_, rest)| rest.split('"').nth(1));
            let fnm = [".local/share/fnm/aliases/default", ".fnm/aliases/default"];
            let fnm = fnm
                .iter()
                .filter_map(|link| fs::canonicalize(home.join(link)).ok());
            // An alias is a link to `node-versions/v20.1.0/installation`.
            let fnm = fnm.filter_map(|at| Some(at.parent()?.file_name()?.to_str()?.to_owned()));
            let named = fnm.chain([nvm]).chain(volta.map(str::to_owned));
            named.filter(|name| !name.is_empty()).collect()
        }
        Family::Go => Vec::new(),
    }
}

fn rust_default(settings: &str) -> Option<String> {
    settings.lines().find_map(|line| {
        let value = line
            .strip_prefix("default_toolchain")?
            .trim_start()
            .strip_prefix('=')?;
        Some(value.trim().trim_matches('"').to_owned())
    })
}

/// The programs that depend on a version. What the system has, too, is left to the system, unless it is a tool whose
/// version can be pinned: a version of Python may come with a `curl`.
fn shims(installed: &[Installed]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for family in Family::ALL {
        for program in family.programs() {
            let either = [Some(*program), twin(program)];
            let mut either = either.into_iter().flatten();
            if either.any(|it| system_program(it).is_some() || is_in(installed, family, it)) {
                names.insert((*program).to_owned());
            }
        }
    }
    for version in installed {
        for (name, _) in children(&version.bin) {
            if names.len() < MOST_SHIMS && (is_numbered(&name) || system_program(&name).is_none()) {
                names.insert(name);
            }
        }
    }
    names
}

fn is_in(installed: &[Installed], family: Family, program: &str) -> bool {
    let mut versions = installed.iter().filter(|version| version.family == family);
    versions.any(|version| version.bin.join(program).exists())
}

/// `python3.12`, `pip3.12`: a name that says which version it is of.
pub(crate) fn is_numbered(program: &str) -> bool {
    let rest = program
        .strip_prefix("python")
        .or(program.strip_prefix("pip"));
    rest.is_some_and(|rest| {
        rest.contains('.') && rest.bytes().all(|it| it == b'.' || it.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests;
