//! A home that may only be read: on a read-only mount, or without the right to write. What only helps to read it is
//! kept elsewhere, and everything that would change it is refused.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use avfs_store::Frozen;
use avfs_vault::Vaults;
use rustix::fs::{Access, access};

use crate::runtime::{Config, Runtime};
use crate::{Error, Result};

/// Where a runtime keeps what it can make again.
pub(crate) struct Work {
    /// The home, or a directory that goes away with the machine's boot.
    pub directory: PathBuf,
    pub is_read_only: bool,
}

impl Work {
    pub fn find(config: &Config, vaults: &Vaults) -> Result<Work> {
        let is_read_only = vaults.trees().store().frozen() == Some(Frozen::ReadOnly);
        if !is_read_only {
            let directory = config.home.clone();
            return Ok(Work {
                directory,
                is_read_only,
            });
        }
        let directory = config.runtime_dir.join("read-only");
        let made = DirBuilder::new().mode(0o700).create(&directory);
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.map_err(Error::io(format!("making {}", directory.display())))?,
        }
        Ok(Work {
            directory,
            is_read_only,
        })
    }

    /// A configuration with this directory for the home.
    pub fn config(&self, config: &Config) -> Config {
        Config {
            home: self.directory.clone(),
            ..config.clone()
        }
    }
}

impl Runtime {
    /// Whether a home that could only be read when it was opened can be written by now: then it is to be opened anew.
    pub fn has_become_writable(&self) -> bool {
        let home = &self.inner.config.home;
        let may_write = |path: PathBuf| access(path, Access::WRITE_OK).is_ok();
        self.inner.work.is_read_only && may_write(home.clone()) && may_write(home.join("store.db"))
    }

    /// An error where nothing can be changed.
    pub fn check_writable(&self) -> Result<()> {
        match self.inner.work.is_read_only {
            false => Ok(()),
            true => Err(avfs_store::Error::ReadOnly {
                home: self.inner.config.home.clone(),
            }
            .into()),
        }
    }
}

pub(crate) fn may_not_write(error: &io::Error) -> bool {
    let kind = error.kind();
    kind == ErrorKind::ReadOnlyFilesystem || kind == ErrorKind::PermissionDenied
}
