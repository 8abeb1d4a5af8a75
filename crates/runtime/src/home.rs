//! Which directory a home is.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A home by its directory, whatever it is called: a copy of it is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomeIdentity {
    device: u64,
    inode: u64,
}

impl HomeIdentity {
    pub fn of(home: &Path) -> io::Result<HomeIdentity> {
        let meta = std::fs::metadata(home)?;
        Ok(HomeIdentity {
            device: meta.dev(),
            inode: meta.ino(),
        })
    }

    pub(crate) fn inode(self) -> u64 {
        self.inode
    }
}

impl fmt::Display for HomeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.device, self.inode)
    }
}
