//! Where the transfer directory is. The owner sets it; until then there is none.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use avfs_transfer::TransferDirectory;
use avfs_vault::{JournalEvent, NewJournalEntry};
use serde_json::json;

use crate::runtime::Runtime;
use crate::session::Session;
use crate::{Error, Result};
use avfs_transfer::Error as TransferError;

/// The file of the home that says where it is.
const FILE: &str = "transfer-directory";

impl Session {
    /// Where it is, if anywhere. Agents need not know: they name what is in it.
    pub fn transfer_directory(&self) -> Result<Option<PathBuf>> {
        self.govern("where the transfer directory is")?;
        self.stored_transfer_directory()
    }

    /// Sets it, or has none from now on.
    pub fn set_transfer_directory(&self, dir: Option<&Path>) -> Result<Option<PathBuf>> {
        self.govern("the transfer directory")?;
        let dir = dir.map(|dir| self.fitting(dir)).transpose()?;
        let file = self.inner.config.home.join(FILE);
        let written = match &dir {
            Some(dir) => {
                let draft = file.with_extension("new");
                fs::write(&draft, dir.as_os_str().as_bytes())
                    .and_then(|()| File::open(&draft)?.sync_all())
                    .and_then(|()| fs::rename(&draft, &file))
            }
            None => match fs::remove_file(&file) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        written.map_err(Error::io("noting the transfer directory"))?;
        let told = dir.as_ref().map(|dir| dir.display().to_string());
        self.inner.vaults.record(NewJournalEntry {
            vault: None,
            exec: None,
            principal: self.principal(),
            operation: JournalEvent::TransferSet.into(),
            details: json!({ "directory": told }),
        })?;
        Ok(dir)
    }

    /// A directory that can be the transfer directory: its real path.
    fn fitting(&self, dir: &Path) -> Result<PathBuf> {
        let invalid = |reason: String| Error::Invalid {
            what: "transfer directory",
            reason: format!("{}: {reason}", dir.display()),
        };
        let real = dir.canonicalize().map_err(|it| invalid(it.to_string()))?;
        let home = &self.inner.config.home;
        let home = home.canonicalize().unwrap_or_else(|_| home.clone());
        match () {
            () if !real.is_dir() => Err(invalid("it is no directory".into())),
            () if home.starts_with(&real) => Err(invalid("the home of avfs is in it".into())),
            () if real.starts_with(&home) => Err(invalid("it is in the home of avfs".into())),
            () => Ok(real),
        }
    }
}

impl Runtime {
    fn stored_transfer_directory(&self) -> Result<Option<PathBuf>> {
        match fs::read(self.inner.config.home.join(FILE)) {
            Ok(bytes) => Ok(Some(OsString::from_vec(bytes).into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Io {
                what: "reading where the transfer directory is".into(),
                source,
            }),
        }
    }

    pub(super) fn open_transfer_directory(&self) -> Result<TransferDirectory> {
        let path = self.stored_transfer_directory()?;
        // It was a real path when it was set.
        Ok(TransferDirectory::open(
            path.ok_or(TransferError::NoDirectory)?,
        )?)
    }
}
