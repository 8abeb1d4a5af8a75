//! In and out: directories and archives of the host, and mounts.

use super::Vault;
use crate::error::{Error, ErrorKind, Result};
use crate::paths::{in_vault, on_host};
use avfs_api::wire::{
    ArchiveRead, ArchiveWrite, Export, ExportArchive, ExportChanges, Exported, ExportedChanges,
    Import, Imported, Mount, MountItem, TransferIn, TransferOut, Unmount, UnmountedItem,
};
use std::io::{Read, Write};
use std::path::Path;

impl Vault {
    /// Brings a directory of the host, or a tar archive there, into the vault. [`Import`] has more options, such as
    /// `.gitignore` and git revisions; it is asked with [`Vault::ask`] or [`Vault::ask_watched`].
    pub fn import(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Imported> {
        let (host_dir, host_dir_b64) = on_host(from)?;
        let (path, path_b64) = in_vault(to);
        self.ask(&Import {
            host_dir,
            host_dir_b64,
            path,
            path_b64,
            ..Import::default()
        })
    }

    /// Copies a directory of the vault to a directory of the host that is new or empty.
    pub fn export(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Exported> {
        let (path, path_b64) = in_vault(from);
        let (host_dir, host_dir_b64) = on_host(to)?;
        self.ask(&Export {
            path,
            path_b64,
            host_dir,
            host_dir_b64,
            overwrite: false,
            allow_hooks: false,
            keep_going: false,
        })
    }

    /// Writes a directory of the vault as a new tar archive on the host; the ending of its name says how to compress.
    pub fn export_archive(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Exported> {
        let (path, path_b64) = in_vault(from);
        let (host_file, host_file_b64) = on_host(to)?;
        self.ask(&ExportArchive {
            path,
            path_b64,
            host_file,
            host_file_b64,
            keep_going: false,
        })
    }

    /// Brings what changed since an import back to the directory that was imported. What both sides changed is a
    /// conflict, and then nothing is done.
    pub fn export_changes(&self, to: impl AsRef<Path>) -> Result<ExportedChanges> {
        let (host_dir, host_dir_b64) = on_host(to)?;
        self.ask(&ExportChanges {
            host_dir,
            host_dir_b64,
            path: None,
            path_b64: None,
            dry_run: false,
            allow_hooks: false,
        })
    }

    /// Brings a tar archive into the vault, compressed or not.
    pub fn write_archive(
        &self,
        to: impl AsRef<Path>,
        archive: impl Read + Send + 'static,
    ) -> Result<Imported> {
        let (path, path_b64) = in_vault(to);
        let request = ArchiveWrite {
            path,
            path_b64,
            exclude: String::new(),
            max_depth: None,
        };
        self.face.upload(self.name(), &request, archive)
    }

    /// Writes a directory of the vault as a tar archive to `out`; gives its size.
    pub fn read_archive(
        &self,
        from: impl AsRef<Path>,
        out: &mut (dyn Write + Send),
    ) -> Result<u64> {
        let (path, path_b64) = in_vault(from);
        let request = ArchiveRead { path, path_b64 };
        self.face.download(self.name(), &request, out)
    }

    /// Brings a directory or a tar archive of the transfer directory into the vault.
    pub fn transfer_in(&self, name: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Imported> {
        let (name, name_b64) = in_vault(name);
        let (path, path_b64) = in_vault(to);
        self.ask(&TransferIn {
            name,
            name_b64,
            path,
            path_b64,
            exclude: Vec::new(),
            gitignore: false,
            max_depth: None,
        })
    }

    /// Copies a directory of the vault to a new name in the transfer directory.
    pub fn transfer_out(&self, from: impl AsRef<Path>, name: impl AsRef<Path>) -> Result<Exported> {
        let (path, path_b64) = in_vault(from);
        let (name, name_b64) = in_vault(name);
        self.ask(&TransferOut {
            path,
            path_b64,
            name,
            name_b64,
        })
    }

    /// Shows the vault at a directory of the host, where programs can change it.
    pub fn mount(&self, dir: impl AsRef<Path>) -> Result<MountItem> {
        self.mount_at(dir.as_ref(), false)
    }

    /// Shows the vault at a directory of the host, where programs can only read it.
    pub fn mount_read_only(&self, dir: impl AsRef<Path>) -> Result<MountItem> {
        self.mount_at(dir.as_ref(), true)
    }

    fn mount_at(&self, dir: &Path, readonly: bool) -> Result<MountItem> {
        let (dir, dir_b64) = on_host(dir)?;
        let mount_namespace = avfs_runtime::mount_namespace().map_err(|error| {
            let what = "this program's mounts cannot be told from others";
            Error::new(ErrorKind::Unavailable, what).because(error)
        })?;
        self.ask(&Mount {
            dir: Some(dir),
            dir_b64,
            readonly,
            mount_namespace,
            ..Mount::default()
        })
    }

    /// Takes its mounts away, after committing what was written.
    pub fn unmount(&self) -> Result<Vec<UnmountedItem>> {
        let request = Unmount {
            vault: Some(self.name().to_owned()),
            ..Unmount::default()
        };
        Ok(self.ask(&request)?.unmounted)
    }
}
