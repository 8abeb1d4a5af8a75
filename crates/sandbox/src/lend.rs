//! What every sandbox gets from the host: system directories, and a generated `/etc`.

use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::confine;
use crate::error::{During, Error, Fault, Result};
use crate::plan::{EtcContent, EtcFile, INNER_UID, Lent, Privilege, SANDBOX_UID};

/// Directories with the host's programs and libraries.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/opt"];

/// Mount points that every sandbox has besides those of host directories.
const FIXED: [&str; 6] = ["dev", "etc", "proc", "run", "tmp", "var/tmp"];

/// The host's existing system directories, with links resolved.
pub fn host_lent() -> Vec<Lent> {
    SYSTEM
        .iter()
        .filter_map(|name| {
            let host = fs::canonicalize(name).ok().filter(|path| path.is_dir())?;
            Some(Lent {
                host,
                inside: PathBuf::from(name),
                identity: None,
            })
        })
        .collect()
}

/// Refuses what has taken the place of a directory since it was looked at.
pub(crate) fn check_identity(tree: BorrowedFd<'_>, lent: &Lent) -> std::result::Result<(), Fault> {
    let Some(identity) = lent.identity else {
        return Ok(());
    };
    let stat = rustix::fs::fstat(tree).during(|| format!("look at {:?}", lent.host))?;
    if (stat.st_dev, stat.st_ino) != (identity.device, identity.inode) {
        return Err(Fault {
            what: format!("lend {:?}, where something else is now", lent.host),
            errno: libc::ESTALE,
        });
    }
    Ok(())
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

    #[test]
    fn skeletons_are_open_directories() {
        let dir = tempfile::tempdir().unwrap();
        let lent = [Lent {
            host: "/usr".into(),
            inside: "/home/me/.tool/v1".into(),
            identity: None,
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
            identity: None,
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
