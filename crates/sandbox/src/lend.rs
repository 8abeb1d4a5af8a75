//! What a sandbox gets from the host: system directories, toolchains, and a generated `/etc`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::confine;
use crate::error::{During, Error, Result};
use crate::plan::{EtcContent, EtcFile, INNER_UID, Lent, Privilege, SANDBOX_UID};

/// Directories with the host's programs and libraries.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/opt"];

/// Mount points that every sandbox has besides those of host directories.
const FIXED: [&str; 6] = ["dev", "etc", "proc", "run", "tmp", "var/tmp"];

/// Where version managers keep versions: below the home, and at which depth.
const VERSIONS: [(&str, usize); 7] = [
    (".rustup/toolchains", 1),
    (".pyenv/versions", 1),
    (".nvm/versions/node", 1),
    (".rbenv/versions", 1),
    (".asdf/installs", 2),
    (".local/share/mise/installs", 2),
    (".local/share/uv/python", 1),
];

/// A toolchain of the caller, shown at its own path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// One version directory.
    pub lent: Lent,
    /// Its directory of programs, for PATH.
    pub bin: PathBuf,
}

/// The host's existing system directories, with links resolved.
pub fn host_lent() -> Vec<Lent> {
    SYSTEM
        .iter()
        .filter_map(|name| {
            let host = fs::canonicalize(name).ok().filter(|path| path.is_dir())?;
            Some(Lent {
                host,
                inside: PathBuf::from(name),
            })
        })
        .collect()
}

/// The toolchains that a caller with this home and PATH uses, as version directories only.
///
/// Proxies that choose a version at run time (rustup's, pyenv's shims) need their manager's whole home, so the
/// programs of the chosen version are used instead.
pub fn toolchains(home: &Path, path_env: &OsStr) -> Vec<Toolchain> {
    let path: Vec<PathBuf> = std::env::split_paths(path_env).collect();
    let mut versions = Vec::new();
    versions.extend(path.iter().filter_map(|dir| version_of(home, dir)));
    versions.extend(rust_versions(home, &path));
    versions.extend(pyenv_versions(home, &path));
    let mut seen = BTreeSet::new();
    versions
        .into_iter()
        // A version may be a link to another; the real directory is mounted.
        .filter_map(|version| fs::canonicalize(version).ok())
        .filter(|version| lendable(home, version) && seen.insert(version.clone()))
        .map(|version| Toolchain {
            bin: version.join("bin"),
            lent: Lent {
                host: version.clone(),
                inside: version,
            },
        })
        .collect()
}

/// The version directory whose programs `dir` holds.
fn version_of(home: &Path, dir: &Path) -> Option<PathBuf> {
    let version = dir
        .parent()
        .filter(|_| dir.file_name() == Some(OsStr::new("bin")))?;
    VERSIONS.iter().find_map(|(root, depth)| {
        let below = version.strip_prefix(home.join(root)).ok()?;
        (below.components().count() == *depth).then(|| version.to_owned())
    })
}

/// Rust toolchains, the default one first.
fn rust_versions(home: &Path, path: &[PathBuf]) -> Vec<PathBuf> {
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
    let mut found = Vec::new();
    for home in homes {
        let settings = fs::read_to_string(home.join("settings.toml")).unwrap_or_default();
        let default = settings.lines().find_map(|line| {
            let value = line
                .strip_prefix("default_toolchain")?
                .trim_start()
                .strip_prefix('=')?;
            Some(value.trim().trim_matches('"').to_owned())
        });
        let dir = home.join("toolchains");
        found.extend(
            default
                .filter(|name| is_name(name))
                .map(|name| dir.join(name)),
        );
        found.extend(children(&dir));
    }
    found
}

/// The Python versions that pyenv's shims select.
fn pyenv_versions(home: &Path, path: &[PathBuf]) -> Vec<PathBuf> {
    let pyenv = home.join(".pyenv");
    if !path.contains(&pyenv.join("shims")) {
        return Vec::new();
    }
    let chosen = fs::read_to_string(pyenv.join("version")).unwrap_or_default();
    let names = chosen
        .split_whitespace()
        .filter(|name| is_name(name) && *name != "system");
    names
        .map(|name| pyenv.join("versions").join(name))
        .collect()
}

/// Whether a directory looks like a single version, and not like something that holds more.
fn lendable(home: &Path, version: &Path) -> bool {
    let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    let hidden = ["/dev", "/proc", "/etc", "/run", "/sys"];
    version.join("bin").is_dir()
        && !home.starts_with(version)
        && !hidden.iter().any(|dir| version.starts_with(dir))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains('/')
}

/// The entries of a directory, sorted; empty if it cannot be read.
fn children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Makes the directory of empty mount points that is the lowest layer of every view.
///
/// As root, it is chowned to the sandbox user, like everything else in a vault.
pub fn build_skeleton(dir: &Path, lent: &[Lent]) -> Result<()> {
    let inside = lent.iter().map(|lent| lent.inside.as_path());
    let owner = match confine::privilege()? {
        Privilege::Root => Some(SANDBOX_UID),
        Privilege::User => None,
    };
    for path in FIXED.iter().map(Path::new).chain(inside) {
        let path = path.strip_prefix("/").unwrap_or(path);
        let mut place = dir.to_owned();
        make(&place, owner)?;
        for part in path.components() {
            if !matches!(part, std::path::Component::Normal(_)) {
                let reason = format!("{path:?} has a part that is no name");
                return Err(Error::Invalid {
                    what: "mount point",
                    reason,
                });
            }
            place.push(part);
            make(&place, owner)?;
        }
    }
    Ok(())
}

/// A directory with mode 0755, whatever the umask.
fn make(dir: &Path, owner: Option<u32>) -> Result<()> {
    let made = fs::DirBuilder::new()
        .mode(0o755)
        .recursive(true)
        .create(dir);
    made.during(|| format!("make {dir:?}"))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755))
        .during(|| format!("open {dir:?} to all"))?;
    std::os::unix::fs::chown(dir, owner, owner).during(|| format!("give {dir:?} away"))?;
    Ok(())
}

/// Names in the host's `/etc` that programs need and that say nothing about the host's users.
const PUBLIC: [&str; 17] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "mime.types",
    "os-release",
    "protocols",
    "services",
    "ssl",
    "timezone",
];

/// Names are asked for on the sandbox's own loopback, where the daemon may serve them.
///
/// While nobody does, glibc, c-ares, Go and Java see that the port is closed and fail at once. musl waits for one
/// `timeout` in any case. A server that is there but slow gets twice that time, so that a busy host is not taken for a dead one.
const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n";

/// The `/etc` of a sandbox named `name`: allowed names of the host, the rest generated.
pub fn host_etc(name: &str) -> Vec<EtcFile> {
    let made = |path: &str, text: String| EtcFile {
        path: path.to_owned(),
        content: EtcContent::Bytes(text.into_bytes()),
    };
    let id = INNER_UID;
    let mut files =
        vec![
        made(
            "passwd",
            format!(
                "root:x:0:0:root:/root:/usr/sbin/nologin\n\
                 agent:x:{id}:{id}:agent:/home/agent:/bin/sh\n\
                 nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
            ),
        ),
        made("group", format!("root:x:0:\nagent:x:{id}:\nnogroup:x:65534:\n")),
        made("hostname", format!("{name}\n")),
        made("hosts", format!("127.0.0.1 localhost {name}\n::1 localhost\n")),
        made("resolv.conf", RESOLV_CONF.to_owned()),
        made(
            "nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"
                .to_owned(),
        ),
    ];
    let public = PUBLIC.iter().map(|name| (*name).to_owned());
    files.extend(public.chain(java_settings()).filter_map(|name| {
        let host = fs::canonicalize(Path::new("/etc").join(&name)).ok()?;
        Some(EtcFile {
            path: name,
            content: EtcContent::Host(host),
        })
    }));
    files
}

/// Where Debian has the settings of each Java, without which it does not start: `java-17-openjdk`.
fn java_settings() -> Vec<String> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("java-") && name.ends_with("-openjdk"))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_version(home: &Path, path: &str) -> PathBuf {
        let version = home.join(path);
        fs::create_dir_all(version.join("bin")).unwrap();
        version
    }

    fn found(home: &Path, path: &[&str]) -> Vec<PathBuf> {
        let path = std::env::join_paths(path.iter().map(|dir| home.join(dir))).unwrap();
        toolchains(home, &path)
            .into_iter()
            .map(|toolchain| toolchain.lent.host)
            .collect()
    }

    #[test]
    fn rust_toolchains_come_as_versions_the_default_first() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let nightly = make_version(&home, ".rustup/toolchains/nightly");
        let stable = make_version(&home, ".rustup/toolchains/stable");
        std::os::unix::fs::symlink(&stable, home.join(".rustup/toolchains/1.95")).unwrap();
        fs::write(
            home.join(".rustup/settings.toml"),
            "default_toolchain = \"1.95\"\n",
        )
        .unwrap();
        assert_eq!(found(&home, &[".cargo/bin"]), [stable.clone(), nightly]);
        let path = std::ffi::OsString::new();
        let first = &toolchains(&home, &path)[0];
        assert_eq!(
            (&first.lent.inside, &first.bin),
            (&stable, &stable.join("bin"))
        );
    }

    #[test]
    fn only_versions_in_use_are_lent() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let node = make_version(&home, ".nvm/versions/node/v22");
        make_version(&home, ".nvm/versions/node/v20");
        let python = make_version(&home, ".pyenv/versions/3.12");
        make_version(&home, ".pyenv/versions/3.11");
        fs::write(home.join(".pyenv/version"), "3.12\nsystem\n../../secret\n").unwrap();
        fs::create_dir_all(home.join("secret/bin")).unwrap();
        assert_eq!(found(&home, &[".nvm/versions/node/v22/bin"]), [node]);
        assert_eq!(found(&home, &[".pyenv/shims"]), [python]);
    }

    #[test]
    fn nothing_else_of_a_home_is_lent() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        for dir in ["bin", ".cargo/bin", ".local/bin", ".nvm/bin", ".config/bin"] {
            fs::create_dir_all(home.join(dir)).unwrap();
        }
        // A version that is really the home, or above it.
        fs::create_dir_all(home.join(".rustup/toolchains")).unwrap();
        std::os::unix::fs::symlink(&home, home.join(".rustup/toolchains/all")).unwrap();
        std::os::unix::fs::symlink("/", home.join(".rustup/toolchains/more")).unwrap();
        let path = [
            "bin",
            ".",
            ".cargo/bin",
            ".local/bin",
            ".nvm/bin",
            ".config/bin",
        ];
        assert_eq!(found(&home, &path), Vec::<PathBuf>::new());
    }

    #[test]
    fn skeletons_are_open_directories() {
        let dir = tempfile::tempdir().unwrap();
        let lent = [Lent {
            host: "/usr".into(),
            inside: "/home/me/.tool/v1".into(),
        }];
        build_skeleton(&dir.path().join("skeleton"), &lent).unwrap();
        for path in [
            "dev",
            "etc",
            "proc",
            "run",
            "tmp",
            "var/tmp",
            "home/me/.tool/v1",
        ] {
            let metadata = fs::metadata(dir.path().join("skeleton").join(path)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o7777, 0o755, "{path}");
        }
        let bad = [Lent {
            host: "/usr".into(),
            inside: "/../up".into(),
        }];
        assert!(build_skeleton(dir.path(), &bad).is_err());
    }

    #[test]
    fn system_directories_are_resolved() {
        for lent in host_lent() {
            assert_eq!(fs::canonicalize(&lent.host).unwrap(), lent.host);
            assert!(lent.host.is_dir());
        }
    }
}
