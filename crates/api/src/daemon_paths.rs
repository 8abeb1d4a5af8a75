//! The paths of a home's daemon: a private directory of the host, keyed by device and inode of the home. So a copy of a home,
//! or another one at its path, has a daemon of its own.

use crate::error::{Error, Result};
use crate::wire::Class;
use avfs_runtime::{HomeIdentity, PrincipalName};
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The longest path of a Unix socket, without the NUL.
const SOCKET_PATH_MAX: usize = 107;

/// The longest path of a home: SQLite must be able to open the files in it.
const HOME_PATH_MAX: usize = 440;

/// A home and the directory with its daemon's socket, log and pid.
#[derive(Clone, Debug)]
pub struct DaemonPaths {
    home: PathBuf,
    identity: HomeIdentity,
    dir: PathBuf,
    class: Class,
    name: Option<PrincipalName>,
}

impl DaemonPaths {
    /// The paths for `home`, which is created if it is missing. `base` is the user's runtime directory, or `None` if there is
    /// no trustworthy one.
    pub fn new(home: &Path, base: Option<&Path>) -> Result<DaemonPaths> {
        DaemonPaths::among(home, base, Path::new("/tmp"))
    }

    /// The first directory that is certainly private: in the runtime directory, in the one for temporary files, in the home,
    /// or, if all of these are taken or open to others, one with a random name.
    fn among(home: &Path, base: Option<&Path>, temporary: &Path) -> Result<DaemonPaths> {
        // Checked before it is created, and again when its real path is known.
        check_path(home)?;
        private_dirs(home)?;
        let found = fs::canonicalize(home);
        let found = found.and_then(|home| Ok((HomeIdentity::of(&home)?, home)));
        let (identity, home) = found.map_err(|source| Error::File {
            what: "find",
            path: home.into(),
            source,
        })?;
        check_path(&home)?;
        let mut wanted: Vec<PathBuf> = [base, Some(temporary)]
            .into_iter()
            .flatten()
            .map(|base| DaemonPaths::at(identity, base))
            .collect();
        wanted.push(home.join("run"));
        let own = geteuid().as_raw();
        let usable = |dir: &PathBuf| fits_a_socket(dir) && check_private(dir, own).is_ok();
        let dir = match wanted.into_iter().find(usable) {
            Some(dir) => dir,
            None => hidden(&home, identity, temporary)?,
        };
        Ok(DaemonPaths {
            home,
            identity,
            dir,
            class: Class::Owner,
            name: None,
        })
    }

    fn at(identity: HomeIdentity, base: &Path) -> PathBuf {
        base.join(format!("agentvfs-{}", geteuid().as_raw()))
            .join(identity.to_string())
    }

    /// These paths for a client that gives up the owner class, or has a name.
    pub fn as_caller(self, class: Class, name: Option<PrincipalName>) -> DaemonPaths {
        DaemonPaths {
            class,
            name,
            ..self
        }
    }

    pub fn class(&self) -> Class {
        self.class
    }

    /// The name of the client.
    pub fn caller_name(&self) -> Option<&str> {
        self.name.as_ref().map(PrincipalName::as_str)
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Whether the home was moved or replaced. If that cannot be found out, it is assumed that it was not.
    pub fn is_lost(&self) -> bool {
        use io::ErrorKind::{NotADirectory, NotFound};
        match HomeIdentity::of(&self.home) {
            Ok(identity) => identity != self.identity,
            Err(error) => matches!(error.kind(), NotFound | NotADirectory),
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("daemon.sock")
    }

    /// Where the daemon records its real socket: callers of one user may have different runtime directories in their
    /// environment, but all have the same home.
    pub fn signpost(&self) -> PathBuf {
        self.home.join("daemon.sock")
    }

    /// The socket to connect to: the recorded one, else the one that a daemon would choose here.
    pub fn reachable_socket(&self) -> Result<PathBuf> {
        // Root may connect to any user's daemon, for example to approve.
        let owner = match geteuid().is_root() {
            true => self.owner()?,
            false => geteuid().as_raw(),
        };
        let is_private = |socket: &Path| match socket.parent() {
            Some(dir) => check_private(dir, owner),
            None => Ok(()),
        };
        // The recorded path may have been deleted and created again by another user; or the record was copied with the home.
        let named = fs::read_link(self.signpost()).ok().filter(|socket| {
            self.is_its_own(socket) && socket.exists() && is_private(socket).is_ok()
        });
        if let Some(socket) = named {
            return Ok(socket);
        }
        is_private(&self.socket())?;
        Ok(self.socket())
    }

    /// Whether a socket is in the directory of exactly this home.
    fn is_its_own(&self, socket: &Path) -> bool {
        let Some(dir) = socket.parent() else {
            return false;
        };
        let is_keyed = dir.ends_with(self.identity.to_string());
        let is_inside = || match dir.parent() {
            Some(home) if dir.ends_with("run") => {
                HomeIdentity::of(home).is_ok_and(|identity| identity == self.identity)
            }
            _ => false,
        };
        is_keyed || is_inside()
    }

    /// The owner of the home.
    pub fn owner(&self) -> Result<u32> {
        let meta = fs::metadata(&self.home).map_err(|source| Error::File {
            what: "look at",
            path: self.home.clone(),
            source,
        })?;
        Ok(meta.uid())
    }

    pub fn pid_file(&self) -> PathBuf {
        self.dir.join("daemon.pid")
    }

    pub fn log(&self) -> PathBuf {
        self.dir.join("daemon.log")
    }

    /// Creates the directory and refuses one that others could have prepared.
    pub fn prepare(&self) -> Result<()> {
        let parent = self
            .dir
            .parent()
            .expect("a place's directory has a parent by construction");
        for dir in [parent, &self.dir] {
            match fs::DirBuilder::new().mode(0o700).create(dir) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::File {
                        what: "make",
                        path: dir.into(),
                        source: error,
                    });
                }
                _ => {}
            }
        }
        check_private(&self.dir, geteuid().as_raw())
    }
}

/// Whether everything that works in a home can name it.
fn check_path(home: &Path) -> Result<()> {
    let bytes = home.as_os_str().as_bytes();
    let reason = if std::str::from_utf8(bytes).is_err() {
        "it is not UTF-8".to_owned()
    } else if bytes.len() > HOME_PATH_MAX {
        let length = bytes.len();
        format!("it has {length} bytes, and {HOME_PATH_MAX} are the most")
    } else {
        return Ok(());
    };
    let home = home.into();
    Err(Error::UnfitHome { home, reason })
}

fn fits_a_socket(dir: &Path) -> bool {
    dir.join("daemon.sock").as_os_str().len() <= SOCKET_PATH_MAX
}

/// A directory with a random name, which the home records.
fn hidden(home: &Path, identity: HomeIdentity, temporary: &Path) -> Result<PathBuf> {
    let note = home.join("runtime-directory");
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { what, path, source }
    };
    let noted = fs::read(&note).ok().map(|bytes| {
        let path = OsStr::from_bytes(bytes.strip_suffix(b"\n").unwrap_or(&bytes));
        PathBuf::from(path)
    });
    let key = identity.to_string();
    // A record that was copied with a home names the directory of another home.
    let usable = |dir: &PathBuf| {
        dir.is_absolute() && dir.ends_with(&key) && check_private(dir, geteuid().as_raw()).is_ok()
    };
    if let Some(dir) = noted.filter(usable) {
        return Ok(dir);
    }
    let name = avfs_runtime::ExecId::new().to_string();
    let top = temporary.join(format!("agentvfs-{name}"));
    // It must be new: an existing one was made by somebody else.
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&top)
        .map_err(failed("make", &top))?;
    let dir = top.join(key);
    let fresh = home.join(format!("runtime-directory.{name}"));
    let mut line = dir.as_os_str().as_bytes().to_vec();
    line.push(b'\n');
    fs::write(&fresh, line)
        .and_then(|()| fs::rename(&fresh, &note))
        .map_err(failed("write", &note))?;
    Ok(dir)
}

/// Whether only its owner can have put anything into `dir`. A missing one is fine.
fn check_private(dir: &Path, owner: u32) -> Result<()> {
    for dir in dir.parent().into_iter().chain([dir]) {
        let meta = match fs::symlink_metadata(dir) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => {
                return Err(Error::File {
                    what: "look at",
                    path: dir.into(),
                    source,
                });
            }
        };
        let reason = if !meta.is_dir() {
            "it is not a directory"
        } else if meta.uid() != owner {
            "it belongs to another user"
        } else if meta.mode() & 0o077 != 0 {
            "other users have access to it"
        } else {
            continue;
        };
        return Err(Error::Untrusted {
            path: dir.into(),
            reason,
        });
    }
    Ok(())
}

/// Creates a home with mode 0700; directories above it get the usual mode.
fn private_dirs(home: &Path) -> Result<()> {
    if home.is_dir() {
        return Ok(());
    }
    let made = match home.parent() {
        Some(parent) => fs::create_dir_all(parent),
        None => Ok(()),
    };
    match made.and_then(|()| fs::DirBuilder::new().mode(0o700).create(home)) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(Error::File {
            what: "make",
            path: home.into(),
            source,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn two_spellings_of_a_home_are_one_place() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        let plain = DaemonPaths::new(&home, Some(temp.path())).unwrap();
        let dotted =
            DaemonPaths::new(&temp.path().join("./home/../home"), Some(temp.path())).unwrap();
        assert_eq!(plain.socket(), dotted.socket());
        let other = DaemonPaths::new(&temp.path().join("other"), Some(temp.path())).unwrap();
        assert_ne!(plain.socket(), other.socket());
    }

    #[test]
    fn a_base_too_long_for_a_socket_is_not_used() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().join("x".repeat(90));
        let place = DaemonPaths::new(&temp.path().join("home"), Some(&base)).unwrap();
        assert!(place.socket().as_os_str().len() <= SOCKET_PATH_MAX);
        assert!(!place.dir().starts_with(&base));
    }

    fn open_to_others(dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_directory_open_to_others_is_never_used() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        let place = DaemonPaths::new(&home, Some(temp.path())).unwrap();
        place.reachable_socket().unwrap();
        place.prepare().unwrap();
        place.reachable_socket().unwrap();
        open_to_others(place.dir());
        assert!(matches!(place.prepare(), Err(Error::Untrusted { .. })));
        let next = DaemonPaths::new(&home, Some(temp.path())).unwrap();
        assert_ne!(next.dir(), place.dir(), "another one is found");
        next.prepare().unwrap();
        fs::remove_dir(place.dir()).unwrap();
        std::os::unix::fs::symlink(temp.path(), place.dir()).unwrap();
        assert!(matches!(
            place.reachable_socket(),
            Err(Error::Untrusted { .. })
        ));
    }

    #[test]
    fn nobody_can_take_every_place() {
        let temp = tempfile::tempdir().unwrap();
        let (home, tmp) = (temp.path().join("home"), temp.path().join("tmp"));
        fs::create_dir(&tmp).unwrap();
        let find = || DaemonPaths::among(&home, None, &tmp).unwrap();
        let usual = find();
        assert!(usual.dir().starts_with(&tmp));
        open_to_others(usual.dir().parent().unwrap());
        let at_home = find();
        assert_eq!(at_home.dir(), home.canonicalize().unwrap().join("run"));
        at_home.prepare().unwrap();
        open_to_others(&home);
        let hidden = find();
        assert!(hidden.dir().starts_with(&tmp), "{}", hidden.dir().display());
        hidden.prepare().unwrap();
        assert_eq!(find().dir(), hidden.dir(), "all who come after find it");
        open_to_others(hidden.dir());
        assert_ne!(find().dir(), hidden.dir(), "and it is looked at each time");
    }

    #[test]
    fn a_signpost_to_a_place_of_another_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        let swept = temp.path().join("swept/key");
        open_to_others(&swept);
        fs::write(swept.join("daemon.sock"), "").unwrap();
        let place = DaemonPaths::new(&home, Some(temp.path())).unwrap();
        std::os::unix::fs::symlink(swept.join("daemon.sock"), place.signpost()).unwrap();
        assert_eq!(place.reachable_socket().unwrap(), place.socket());
    }

    #[test]
    fn a_daemon_is_found_from_another_environment() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        let here = DaemonPaths::new(&home, Some(temp.path())).unwrap();
        let elsewhere = DaemonPaths::new(&home, Some(&temp.path().join("elsewhere"))).unwrap();
        assert_ne!(here.socket(), elsewhere.socket());
        here.prepare().unwrap();
        fs::write(here.socket(), "").unwrap();
        std::os::unix::fs::symlink(here.socket(), here.signpost()).unwrap();
        assert_eq!(elsewhere.reachable_socket().unwrap(), here.socket());
        fs::remove_file(here.socket()).unwrap();
        assert_eq!(elsewhere.reachable_socket().unwrap(), elsewhere.socket());
    }

    #[test]
    fn a_copy_and_a_successor_have_places_of_their_own() {
        let temp = tempfile::tempdir().unwrap();
        let (home, copy) = (temp.path().join("home"), temp.path().join("copy"));
        let first = DaemonPaths::new(&home, Some(temp.path())).unwrap();
        first.prepare().unwrap();
        fs::write(first.socket(), "").unwrap();
        fs::create_dir(&copy).unwrap();
        for home in [&home, &copy] {
            std::os::unix::fs::symlink(first.socket(), home.join("daemon.sock")).unwrap();
        }
        let second = DaemonPaths::new(&copy, Some(temp.path())).unwrap();
        assert_eq!(first.reachable_socket().unwrap(), first.socket());
        assert_eq!(second.reachable_socket().unwrap(), second.socket());
        assert_ne!(first.socket(), second.socket());
        assert!(!first.is_lost() && !second.is_lost());
        fs::rename(&home, temp.path().join("moved")).unwrap();
        assert!(first.is_lost(), "nothing is there");
        fs::rename(&copy, &home).unwrap();
        assert!(first.is_lost(), "another is there");
        let third = DaemonPaths::new(&home, Some(temp.path())).unwrap();
        assert_eq!(third.reachable_socket().unwrap(), second.socket());
    }

    #[test]
    fn a_copied_note_of_a_hidden_directory_is_not_used() {
        let temp = tempfile::tempdir().unwrap();
        let tmp = temp.path().join("tmp");
        open_to_others(&tmp.join(format!("agentvfs-{}", geteuid().as_raw())));
        let find = |name: &str| {
            let home = temp.path().join(name);
            open_to_others(&home);
            DaemonPaths::among(&home, None, &tmp).unwrap()
        };
        let first = find("home");
        first.prepare().unwrap();
        fs::create_dir(temp.path().join("copy")).unwrap();
        let note = |name: &str| temp.path().join(name).join("runtime-directory");
        fs::copy(note("home"), note("copy")).unwrap();
        let second = find("copy");
        second.prepare().unwrap();
        assert_ne!(first.dir(), second.dir());
        assert_eq!(find("home").dir(), first.dir());
    }
}
