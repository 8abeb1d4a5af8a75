//! Directories of the host that the owner of a vault lends to its commands, read-only and at the same path.
//!
//! A directory is resolved when the setting is made, and stored with its device and inode. If something else is there
//! later, the command is refused.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use avfs_sandbox::{Identity, Lent, build_skeleton};

use crate::live::lendable::Forbidden;
use crate::runtime::lock;
use crate::{Error, Result};

/// How many directories a vault may lend.
const MOST: usize = 16;
/// The longest path.
const LONGEST: usize = 1_024;

/// A directory that is lent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LentDirectory {
    pub path: PathBuf,
    /// What it was when the setting was made; none in what somebody has just written.
    identity: Option<Identity>,
}

/// All that a vault lends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LendList(Vec<LentDirectory>);

impl FromStr for LendList {
    type Err = Error;

    fn from_str(text: &str) -> Result<LendList> {
        let items: Result<Vec<_>> = text.split(',').map(parse).collect();
        let items = items?;
        if items.len() > MOST {
            return Err(invalid(format!("at most {MOST} directories can be lent")));
        }
        Ok(LendList(items))
    }
}

/// `DIR`, `DIR:ro`, or as it is stored, `DIR:ro#DEVICE.INODE`.
fn parse(text: &str) -> Result<LentDirectory> {
    let stored = text.rsplit_once(":ro#").and_then(|(path, identity)| {
        let (device, inode) = identity.split_once('.')?;
        let (device, inode) = (device.parse().ok()?, inode.parse().ok()?);
        Some((path, Identity { device, inode }))
    });
    let (path, identity) = match stored {
        Some((path, identity)) => (path, Some(identity)),
        None => (text.strip_suffix(":ro").unwrap_or(text), None),
    };
    if path.ends_with(":rw") {
        return Err(invalid(format!("{path:?}: a directory is lent read-only")));
    }
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let is_path = path.starts_with('/') && Path::new(path).components().all(plain);
    if !is_path || path.len() > LONGEST || path.chars().any(char::is_control) {
        return Err(invalid(format!(
            "{path:?} is not the absolute path of a directory, without `..` and commas"
        )));
    }
    Ok(LentDirectory {
        path: Path::new(path).components().collect(),
        identity,
    })
}

fn invalid(reason: String) -> Error {
    Error::Invalid {
        what: "setting",
        reason: format!("lend: {reason}"),
    }
}

impl fmt::Display for LendList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.0.iter().map(|item| {
            let identity = item.identity.as_ref();
            let identity = identity.map(|it| format!("#{}.{}", it.device, it.inode));
            format!("{}:ro{}", item.path.display(), identity.unwrap_or_default())
        });
        f.write_str(&items.collect::<Vec<_>>().join(","))
    }
}

impl LendList {
    /// The directories, for people.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|item| item.path.as_path())
    }

    /// As somebody would write it.
    pub fn shown(&self) -> String {
        let items = self.paths().map(|path| format!("{}:ro", path.display()));
        items.collect::<Vec<_>>().join(",")
    }

    /// Finds the directories as they are now, and refuses those that may not be lent.
    pub(crate) fn resolved(&self, forbidden: &Forbidden) -> Result<LendList> {
        let mut found: Vec<LentDirectory> = Vec::new();
        for item in &self.0 {
            let shown = item.path.display();
            let real = fs::canonicalize(&item.path);
            let real = real.map_err(|error| invalid(format!("{shown}: {error}")))?;
            // What is stored is text.
            let text = real
                .to_str()
                .filter(|text| parse(text).is_ok_and(|it| it.path == real));
            if text.is_none() {
                return Err(invalid(format!("{shown}: its path cannot be written down")));
            }
            let identity = forbidden.check(&real).map_err(invalid)?;
            let nested = |other: &LentDirectory| {
                other.path.starts_with(&real) || real.starts_with(&other.path)
            };
            if found.iter().any(nested) {
                return Err(invalid(format!("{shown} is in another one, or above it")));
            }
            found.push(LentDirectory {
                path: real,
                identity: Some(identity),
            });
        }
        Ok(LendList(found))
    }

    /// What a sandbox gets. What is not what was lent, or may not be lent any more, is an error.
    fn lent(&self, forbidden: &Forbidden) -> Result<Vec<Lent>> {
        let lent = self.0.iter().map(|item| {
            let gone = |reason: String| Error::NotLent {
                path: item.path.display().to_string(),
                reason,
            };
            let now = forbidden.check(&item.path).map_err(gone)?;
            if Some(now) != item.identity {
                return Err(gone(
                    "it is another directory than the one that was lent".into(),
                ));
            }
            Ok(Lent {
                host: item.path.clone(),
                inside: item.path.clone(),
                identity: item.identity,
            })
        });
        lent.collect()
    }
}

/// Which list a sandbox has; the first one is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LendKey(usize);

/// The lists in use, each with its directory of mount points.
pub(crate) struct Lendings {
    /// Of all mount points.
    dir: PathBuf,
    forbidden: Forbidden,
    lists: Mutex<Vec<Arc<LendList>>>,
    /// Whether the mount points of the daemon before are gone: its lists had other numbers.
    cleared: Mutex<bool>,
}

/// What a sandbox with a list needs.
#[derive(Default)]
pub(crate) struct Lending {
    pub lent: Vec<Lent>,
    /// Its mount points, another lower directory.
    pub skeleton: Option<PathBuf>,
}

impl Lendings {
    pub fn new(dir: PathBuf, forbidden: Forbidden) -> Lendings {
        Lendings {
            dir,
            forbidden,
            lists: Mutex::new(vec![Arc::default()]),
            cleared: Mutex::new(false),
        }
    }

    /// What may not be lent.
    pub fn forbidden(&self) -> &Forbidden {
        &self.forbidden
    }

    pub fn key(&self, list: &LendList) -> LendKey {
        let mut lists = lock(&self.lists);
        let known = lists.iter().position(|known| **known == *list);
        LendKey(known.unwrap_or_else(|| {
            lists.push(Arc::new(list.clone()));
            lists.len() - 1
        }))
    }

    /// Checks the directories of a list, and makes their mount points.
    pub fn prepare(&self, key: LendKey) -> Result<Lending> {
        let list = lock(&self.lists)[key.0].clone();
        if list.0.is_empty() {
            return Ok(Lending::default());
        }
        let lent = list.lent(&self.forbidden)?;
        self.clear()?;
        // One for each list, so that the mount points of a sandbox that is open never change.
        let skeleton = self.dir.join(key.0.to_string());
        build_skeleton(&skeleton, &lent)?;
        Ok(Lending {
            lent,
            skeleton: Some(skeleton),
        })
    }

    /// One of the directories of a list; none if it is empty.
    pub fn first_of(&self, key: LendKey) -> Option<PathBuf> {
        let list = lock(&self.lists)[key.0].clone();
        list.paths().next().map(Path::to_owned)
    }

    fn clear(&self) -> Result<()> {
        let mut cleared = lock(&self.cleared);
        if !*cleared {
            match fs::remove_dir_all(&self.dir) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io(format!("clearing {}", self.dir.display()))(error));
                }
                _ => *cleared = true,
            }
        }
        Ok(())
    }

    /// The mount points of every list in use.
    pub fn mount_points(&self) -> BTreeSet<PathBuf> {
        let lists = lock(&self.lists);
        lists
            .iter()
            .flat_map(|list| list.paths().map(PathBuf::from))
            .collect()
    }
}
