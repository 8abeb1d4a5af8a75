//! What is mounted on the host, noted on disk: a daemon that was killed could not unmount it.

use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use avfs_sandbox::onhost::InUse;
use avfs_vault::ExecId;

use crate::home::HomeIdentity;
use crate::live::served::onhost;
use crate::{Error, Result};

/// A mount that is noted until this is told to forget it.
pub(crate) struct Noted {
    file: PathBuf,
}

/// Notes that something is about to be mounted at `dir`.
pub(crate) fn note(home: &Path, dir: &Path) -> Result<Noted> {
    let folder = folder(home);
    let file = folder.join(ExecId::new().to_string());
    let failed = || Error::io(format!("noting a mount in {}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(failed())?;
    let identity = HomeIdentity::of(home).map_err(failed())?;
    let mut created = File::create_new(&file).map_err(failed())?;
    // A path has no NUL.
    let note = [
        dir.as_os_str().as_bytes(),
        b"\0",
        identity.to_string().as_bytes(),
    ]
    .concat();
    created.write_all(&note).map_err(failed())?;
    Ok(Noted { file })
}

impl Noted {
    pub fn forget(self) {
        // A note of nothing is dropped at the next start.
        let _ = std::fs::remove_file(self.file);
    }
}

/// Takes away the mounts of daemons that are gone: nobody serves them, and what is written in them
/// would go nowhere. Whoever calls this has the home for himself.
pub(crate) fn heal(home: &Path) {
    let Ok(notes) = std::fs::read_dir(folder(home)) else {
        return;
    };
    let identity = HomeIdentity::of(home).map(|identity| identity.to_string());
    for note in notes.flatten() {
        let Ok(mut dir) = std::fs::read(note.path()) else {
            continue;
        };
        let whose = dir.iter().position(|byte| *byte == 0);
        let whose = whose.map(|at| dir.split_off(at).split_off(1));
        // It came here with a copy of the home that has it mounted.
        let is_copied =
            whose.is_some_and(|whose| identity.as_ref().is_ok_and(|own| own.as_bytes() != whose));
        let dir = PathBuf::from(std::ffi::OsString::from_vec(dir));
        if is_copied || take_away(&dir) {
            let _ = std::fs::remove_file(note.path());
        }
    }
}

/// Whether nothing of ours is at `dir` any more.
pub(crate) fn take_away(dir: &Path) -> bool {
    // One mount may lie on another.
    for _ in 0..16 {
        match onhost::mounted_at(dir) {
            Ok(Some(mounted)) if mounted.is_ours() => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
        if onhost::unmount(dir, InUse::Refuse).is_err()
            && onhost::unmount(dir, InUse::Detach).is_err()
        {
            return false;
        }
    }
    false
}

fn folder(home: &Path) -> PathBuf {
    home.join("mounts")
}
