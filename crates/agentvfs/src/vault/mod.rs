//! A vault: a durable, copy-on-write workspace.

pub(crate) mod files;
mod git;
mod history;
mod labels;
mod network;
mod search;
mod settings;
mod transfer;

use crate::command::Command;
use crate::error::Result;
use crate::face::Face;
use avfs_api::wire::{
    JobItem, JobList, Operation, ProgressEvent, VaultDelete, VaultDetails, VaultFork, VaultInfo,
    VaultRename, VaultUse,
};
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

/// A vault. Cheap to clone; every method may be called from any thread.
///
/// Paths in it are absolute, and mean the same for these methods as for the commands that run in it.
#[derive(Clone)]
pub struct Vault {
    pub(crate) face: Arc<Face>,
    name: String,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vault").field(&self.name).finish()
    }
}

impl Vault {
    pub(crate) fn new(face: Arc<Face>, name: String) -> Vault {
        Vault { face, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command to run in it: `vault.command("cargo").arg("test").run()`.
    pub fn command(&self, program: impl Into<OsString>) -> Command {
        Command::program(self.clone(), program.into())
    }

    /// Text for the shell to run in it: `/bin/bash -c`, else `/bin/sh -c`.
    pub fn shell(&self, text: impl Into<String>) -> Command {
        Command::shell(self.clone(), text.into())
    }

    /// Makes a copy-on-write fork of its present state.
    pub fn fork(&self, name: impl Into<String>) -> Result<Vault> {
        self.fork_from(name.into(), None, None)
    }

    /// Makes a fork of one of its checkpoints.
    pub fn fork_at_checkpoint(
        &self,
        name: impl Into<String>,
        checkpoint: impl Into<String>,
    ) -> Result<Vault> {
        self.fork_from(name.into(), Some(checkpoint.into()), None)
    }

    /// Makes a fork of one of its versions.
    pub fn fork_at_version(&self, name: impl Into<String>, version: u64) -> Result<Vault> {
        self.fork_from(name.into(), None, Some(version))
    }

    fn fork_from(
        &self,
        name: String,
        checkpoint: Option<String>,
        version: Option<u64>,
    ) -> Result<Vault> {
        let forked = self.ask(&VaultFork {
            name,
            checkpoint,
            version,
            make_current: false,
        })?;
        Ok(Vault::new(Arc::clone(&self.face), forked.name))
    }

    /// All there is to say about it: size, lineage, forks, settings, limits.
    pub fn info(&self) -> Result<VaultDetails> {
        self.ask(&VaultInfo {})
    }

    /// Makes it the current vault of the command line.
    pub fn make_current(&self) -> Result<()> {
        self.ask(&VaultUse {})?;
        Ok(())
    }

    /// Renames it. Other handles of it keep the old name, under which it is not found any more.
    pub fn rename(self, name: impl Into<String>) -> Result<Vault> {
        let renamed = self.ask(&VaultRename { name: name.into() })?;
        Ok(Vault::new(self.face, renamed.name))
    }

    /// Deletes it. It can be had back until gc forgets it: see [`crate::Avfs::undelete_vault`]. While a command runs in it,
    /// that is a conflict.
    pub fn delete(self) -> Result<()> {
        self.ask(&VaultDelete { force: false })?;
        Ok(())
    }

    /// Deletes it, and ends the commands that run in it.
    pub fn force_delete(self) -> Result<()> {
        self.ask(&VaultDelete { force: true })?;
        Ok(())
    }

    /// Its jobs, the newest first.
    pub fn jobs(&self) -> Result<Vec<JobItem>> {
        let request = JobList {
            vault: Some(self.name.clone()),
            running: false,
            ..JobList::default()
        };
        Ok(self.ask(&request)?.jobs)
    }

    /// Asks for an operation on it, with every option that the operation has.
    ///
    /// ```standalone_crate
    /// use agentvfs::types::{Grep, GrepOutput};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # agentvfs::init();
    /// # let dir = std::env::temp_dir().join(format!("agentvfs-ask-{}", std::process::id()));
    /// # let avfs = agentvfs::Avfs::embedded(&dir)?;
    /// # let vault = avfs.create_vault("demo")?;
    /// vault.write("/a.txt", "one\ntwo\none\n")?;
    /// let report = vault.ask(&Grep {
    ///     output: GrepOutput::Counts,
    ///     ..Grep::new("one")
    /// })?;
    /// assert_eq!(report.files[0].count, 2);
    /// # drop((avfs, vault));
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn ask<O: Operation + Clone>(&self, request: &O) -> Result<O::Response> {
        self.face.call(&self.name, request)
    }

    /// As [`Vault::ask`], for one that may take long: `on_progress` hears how far it is.
    pub fn ask_watched<O: Operation + Clone + Sync>(
        &self,
        request: &O,
        mut on_progress: impl FnMut(ProgressEvent),
    ) -> Result<O::Response> {
        self.face
            .call_watched(&self.name, request, &mut on_progress)
    }
}
