//! The vaults of directories: which vault is meant in a directory of the host and below it.
//!
//! The choice is in the home, which only its owner can write, and not in the directory: what is in a project may be an
//! agent's work.

use crate::error::{Error, Result};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The file, and the one that is locked while it is replaced.
const FILE: &str = "directories.json";
const LOCK: &str = "directories.lock";
/// How many directories may have a vault.
const ENTRIES_MAX: usize = 1000;
/// A longer file is none of ours.
const BYTES_MAX: u64 = 8 << 20;

/// Vault ids by directory.
type Choices = BTreeMap<String, String>;

/// The vault of the working directory, or of the nearest directory above that has one.
pub fn chosen(home: &Path) -> Result<Option<String>> {
    let choices = read(home)?;
    if choices.is_empty() {
        return Ok(None);
    }
    // Without a working directory there is none to look up.
    let Ok(here) = std::env::current_dir() else {
        return Ok(None);
    };
    let mut above = here.ancestors().filter_map(Path::to_str);
    Ok(above.find_map(|dir| choices.get(dir).cloned()))
}

/// Sets the vault of the working directory, or forgets it; returns the directory.
pub fn choose(home: &Path, vault: Option<&str>) -> Result<PathBuf> {
    let here = std::env::current_dir().map_err(Error::io("cannot find the working directory"))?;
    let Some(name) = here.to_str() else {
        return Err(Error::Invalid {
            text: format!("the name of {} is not UTF-8", here.display()),
            hint: Some("set AVFS_VAULT instead".into()),
        });
    };
    let _alone = lock(home)?;
    let mut choices = read(home)?;
    match vault {
        Some(vault) => drop(choices.insert(name.to_owned(), vault.to_owned())),
        None => drop(choices.remove(name)),
    }
    if choices.len() > ENTRIES_MAX {
        // Directories that are gone need none.
        choices.retain(|dir, _| Path::new(dir).is_dir());
    }
    if choices.len() > ENTRIES_MAX {
        return Err(Error::Invalid {
            text: format!("{ENTRIES_MAX} directories have a vault already"),
            hint: Some("set AVFS_VAULT instead".into()),
        });
    }
    write(home, &choices)?;
    Ok(here)
}

fn read(home: &Path) -> Result<Choices> {
    let path = home.join(FILE);
    let failed = || Error::io(format!("cannot read {}", path.display()));
    let size = match fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Choices::new()),
        found => found.map_err(failed())?.len(),
    };
    let text = match size <= BYTES_MAX {
        true => fs::read(&path).map_err(failed())?,
        false => Vec::new(),
    };
    serde_json::from_slice(&text).map_err(|_| Error::Invalid {
        text: format!("{} is not what avfs wrote", path.display()),
        hint: Some("remove it: it says only which vaults directories have".into()),
    })
}

fn write(home: &Path, choices: &Choices) -> Result<()> {
    let path = home.join(FILE);
    let failed = || Error::io(format!("cannot write {}", path.display()));
    let text = serde_json::to_vec_pretty(choices).map_err(crate::output::unwritten)?;
    let aside = home.join(format!("{FILE}.new"));
    fs::write(&aside, text).map_err(failed())?;
    fs::rename(&aside, &path).map_err(failed())
}

/// Held until it is dropped.
fn lock(home: &Path) -> Result<OwnedFd> {
    let path = home.join(LOCK);
    let failed = || Error::io(format!("cannot lock {}", path.display()));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let opened = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR);
    let opened = opened.map_err(|errno| failed()(errno.into()))?;
    flock(&opened, FlockOperation::LockExclusive).map_err(|errno| failed()(errno.into()))?;
    Ok(opened)
}
