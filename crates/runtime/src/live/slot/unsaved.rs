//! Removing what was written and does not fit on the disk, where it is: in the view.

use std::io::ErrorKind as Io;
use std::os::fd::{AsFd, BorrowedFd};

use avfs_vault::{Cause, NewVersion, VaultPath};
use avfs_view::ViewOp;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, openat2, statat};
use serde_json::json;

use super::Slot;
use super::aside::is_refusal;
use crate::common::Depth;
use crate::session::Session;
use crate::{Error, Result};

impl Slot {
    /// Removes something in a view whose work could not be committed, and commits the rest if that fits now.
    pub fn remove_unsaved(&self, by: &Session, path: &VaultPath, depth: Depth) -> Result<()> {
        let mut state = self.ready(by)?;
        self.check_shared(by, &state)?;
        let gone = || Error::Sandbox(avfs_sandbox::Error::SandboxGone);
        let live = state.live.as_ref().ok_or_else(gone)?;
        let top = live.backend.top()?;
        check_removable(top.as_fd(), path, depth)?;
        let writer = live.writer(by.inner.vaults.trees(), top.as_fd());
        let op = ViewOp::Remove {
            path: path.as_bytes()[1..].to_vec(),
        };
        let removed = writer.helper.apply(top.as_fd(), op, writer.owner)?;
        removed.map_err(|error| failed(path, error))?;
        let refused = state.refusal().and_then(|refusal| refusal.room);
        if refused.is_some_and(|then| by.is_as_full_as(then)) {
            return Ok(());
        }
        let version = NewVersion {
            by: by.principal(),
            exec: None,
            cause: Cause::Remove,
            details: json!({ "path": path.to_string(), "paths": [path.to_string()] }),
        };
        match self.commit(by, &mut state, version) {
            // It is gone from the view; what is left there waits for more room.
            Err(error) if is_refusal(&error) => Ok(()),
            committed => committed.map(drop),
        }
    }
}

/// Whether there is something that may be removed in this way.
fn check_removable(top: BorrowedFd<'_>, path: &VaultPath, depth: Depth) -> Result<()> {
    let name = path.file_name().ok_or_else(|| is_top(path))?;
    let parent = path.parent().unwrap_or_default();
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let beneath = match &parent.as_bytes()[1..] {
        [] => b".".as_slice(),
        beneath => beneath,
    };
    let look = || -> rustix::io::Result<FileType> {
        let parent = openat2(top, beneath, flags, Mode::empty(), within)?;
        let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    };
    match look() {
        Ok(FileType::Directory) if depth == Depth::Single => {
            Err(avfs_vault::Error::IsADirectory { path: path.clone() }.into())
        }
        Ok(_) => Ok(()),
        Err(errno) => Err(failed(path, errno.into())),
    }
}

fn is_top(path: &VaultPath) -> Error {
    let (path, action) = (path.clone(), "removed");
    avfs_vault::Error::TopDirectory { path, action }.into()
}

fn failed(path: &VaultPath, error: std::io::Error) -> Error {
    match error.kind() {
        Io::NotFound => avfs_vault::Error::PathNotFound { path: path.clone() }.into(),
        _ => Error::io(path.to_string())(error),
    }
}
