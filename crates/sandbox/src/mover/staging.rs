//! The staging directory for copies: a directory of the vault's overlay that no command can reach.
//!
//! It is in the overlay's own `/proc`, over which the sandbox's procfs is mounted. So no path reaches it, and no command can
//! list, change or forge its content. The mover has a descriptor of that directory from before. It is on the same mount as
//! the rest of the vault, so a finished copy is renamed to its place atomically.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, chmod, fstat, mkdirat};
use rustix::io::Errno;

use super::tree;

/// The directory with the staging directory, covered by a mount.
pub const STAGING_IN: &str = "proc";

/// The staging directory, made when it is first needed.
pub(crate) struct Staging {
    hidden: OwnedFd,
    name: CString,
}

impl Staging {
    /// `hidden` is the overlay's own directory under the mount at [`STAGING_IN`].
    pub(crate) fn new(hidden: OwnedFd, name: &str) -> Result<Staging, Errno> {
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        Ok(Staging { hidden, name })
    }

    pub(crate) fn descriptor(&self) -> i32 {
        self.hidden.as_raw_fd()
    }

    fn open(&self) -> Result<OwnedFd, Errno> {
        let hidden = self.hidden.as_fd();
        if matches!(make(hidden, &self.name), Err(Errno::ACCESS)) {
            // Vaults made from an image often have a /proc with mode 0555.
            let path = format!("/proc/self/fd/{}", self.hidden.as_raw_fd());
            chmod(
                path,
                Mode::from_raw_mode(fstat(hidden)?.st_mode) | Mode::RWXU,
            )?;
            make(hidden, &self.name)?;
        }
        tree::open_child(hidden, &self.name, OFlags::DIRECTORY)
    }

    /// A new directory for one operation, named by `number`.
    pub(super) fn begin(&self, number: u64) -> Result<Workplace, Errno> {
        let staging = self.open()?;
        let name = CString::new(number.to_string()).map_err(|_| Errno::INVAL)?;
        match mkdirat(&staging, &name, Mode::RWXU) {
            // Left by a sandbox that was killed.
            Err(Errno::EXIST) => {
                tree::remove(staging.as_fd(), &name, None)?;
                mkdirat(&staging, &name, Mode::RWXU)?;
            }
            made => made?,
        }
        Workplace::open(staging, name)
    }

    /// The directory of an operation whose worker died.
    pub(super) fn resume(&self, number: u64) -> Result<Workplace, Errno> {
        let name = CString::new(number.to_string()).map_err(|_| Errno::INVAL)?;
        Workplace::open(self.open()?, name)
    }
}

fn make(parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    match mkdirat(parent, name, Mode::RWXU) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

/// A directory for one operation; removed with its content when dropped.
pub(super) struct Workplace {
    staging: OwnedFd,
    name: CString,
    pub top: OwnedFd,
}

impl Workplace {
    fn open(staging: OwnedFd, name: CString) -> Result<Workplace, Errno> {
        let top = tree::open_child(staging.as_fd(), &name, OFlags::DIRECTORY)?;
        Ok(Workplace { staging, name, top })
    }

    /// When it was made, by the clock of the file system.
    pub fn began(&self) -> Result<(i64, u64), Errno> {
        let found = fstat(&self.top)?;
        Ok((found.st_mtime, found.st_mtime_nsec))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // What cannot be removed is unreachable, is not stored, and is removed with the layer.
        let _ = tree::remove(self.staging.as_fd(), &self.name, None);
    }
}
