//! Where the versions of a host are. The directories are listed anew by whoever asks, so that a version that was
//! installed a moment ago is there.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::toolchain::version::Number;
use crate::toolchain::{Family, SYSTEM_BINS};

/// How many entries of a directory are looked at.
const MOST_ENTRIES: usize = 1_000;

/// The directories of the version managers of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    pub(crate) roots: Vec<Root>,
}

/// A directory with versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Root {
    pub path: PathBuf,
    pub layout: Layout,
}

/// What the entries of such a directory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Layout {
    /// Versions; below each, `bin` (`installation/bin` where fnm puts it).
    Versions(Family),
    /// Tools, by the names that asdf and mise give them; below each, versions.
    Tools,
    /// Versions of something whose version cannot be pinned.
    Other,
    /// Versions of Go among other things: `go-1.22`, `go1.22.3`, `go`.
    Roots,
}

/// A version that a host has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Of what.
    pub family: Family,
    /// Its name, as its manager has it.
    pub name: String,
    /// Its programs.
    pub bin: PathBuf,
}

impl Installed {
    /// Its number, if its name has one.
    pub(crate) fn number(&self) -> Option<Number> {
        let name = self.name.as_str();
        let name = match self.family {
            Family::Rust => name,
            Family::Node => name.strip_prefix('v').unwrap_or(name),
            Family::Python => name.strip_prefix("cpython-").unwrap_or(name),
            Family::Go => name
                .trim_start_matches("go")
                .strip_prefix('-')
                .unwrap_or(name.trim_start_matches("go")),
        };
        Number::at_start(name)
    }
}

impl Catalogue {
    /// As [`Catalogue::from_bytes`] reads it.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// None if these are not the bytes of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Catalogue> {
        postcard::from_bytes(bytes).ok()
    }

    /// All versions, sorted by name within each directory.
    pub fn installed(&self) -> Vec<Installed> {
        let mut found = Vec::new();
        for root in &self.roots {
            match root.layout {
                Layout::Versions(family) => found.extend(versions(family, &root.path)),
                Layout::Tools => {
                    for (name, path) in children(&root.path) {
                        if let Some(family) = Family::of_tool(&name) {
                            found.extend(versions(family, &path));
                        }
                    }
                }
                Layout::Roots => {
                    let children = children(&root.path).into_iter();
                    let of_go = children.filter(|(name, _)| is_of_go(name));
                    found.extend(of_go.filter_map(|(name, path)| go_root(&name, &path)));
                }
                Layout::Other => {}
            }
        }
        found
    }
}

fn versions(family: Family, dir: &Path) -> Vec<Installed> {
    let found = children(dir).into_iter().filter_map(|(name, path)| {
        let places = ["bin", "installation/bin", "go/bin"];
        let bin = places.iter().map(|place| path.join(place));
        let bin = bin.into_iter().find(|bin| bin.is_dir())?;
        Some(Installed { family, name, bin })
    });
    found.collect()
}

/// Whether a directory is called like a version of Go: `go`, `go-1.22`, `go1.22.3`.
pub(crate) fn is_of_go(name: &str) -> bool {
    let rest = name
        .strip_prefix("go")
        .map(|rest| rest.trim_start_matches('-'));
    rest.is_some_and(|rest| rest.is_empty() || Number::parse(rest).is_some())
}

/// A version of Go says which one it is in a file.
fn go_root(name: &str, path: &Path) -> Option<Installed> {
    let bin = Some(path.join("bin")).filter(|bin| bin.join("go").exists())?;
    let mut text = String::new();
    if let Ok(file) = fs::File::open(path.join("VERSION")) {
        // A file that is no text is as good as none.
        let _ = file.take(256).read_to_string(&mut text);
    }
    let first = text
        .lines()
        .next()
        .and_then(|line| line.split_whitespace().next());
    let said = first.filter(|said| said.strip_prefix("go").and_then(Number::at_start).is_some());
    Some(Installed {
        family: Family::Go,
        name: said.unwrap_or(name).to_owned(),
        bin,
    })
}

/// The entries of a directory with names that are text, sorted; none if it cannot be read.
pub(crate) fn children(dir: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries
        .take(MOST_ENTRIES)
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let mut named: Vec<_> = named.filter(|(name, _)| !name.starts_with('.')).collect();
    named.sort();
    named
}

/// The first of these directories that has a program, with its path there.
pub(crate) fn find_in<'a>(
    dirs: impl IntoIterator<Item = &'a Path>,
    program: &str,
) -> Option<PathBuf> {
    let mut candidates = dirs.into_iter().map(|dir| dir.join(program));
    candidates.find(|path| is_program(path))
}

/// A program among those that no manager manages.
pub(crate) fn system_program(program: &str) -> Option<PathBuf> {
    find_in(SYSTEM_BINS.iter().map(Path::new), program)
}

fn is_program(path: &Path) -> bool {
    let mode = |meta: &fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&meta.permissions());
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && mode(&meta) & 0o111 != 0)
}
