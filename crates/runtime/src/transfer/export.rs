//! Directories of a vault out to the host: as a directory, an archive, or a stream.

use std::io::Write;
use std::path::Path;

use avfs_store::WayOut;
use avfs_transfer::{ExportReport, Exporter, Hooks, OnDamage, Standing, Unwatched, Watcher};
use avfs_vault::{RootId, VaultPath};

use crate::Result;
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;

/// Where an export goes.
#[derive(Debug, Clone, Copy)]
pub struct ExportTo<'a> {
    pub host_dir: &'a Path,
    pub standing: Standing,
    pub on_damage: OnDamage,
}

impl Session {
    /// Copies a directory of the vault to a host directory that is new or empty.
    pub fn export(
        &self,
        vault: Select,
        path: &VaultPath,
        to: ExportTo<'_>,
        hooks: Hooks,
        watcher: &dyn Watcher,
    ) -> Result<ExportReport> {
        let root = self.head_for(vault, path, Verb::Govern)?;
        let notes = self.notes();
        let exporter = Exporter {
            hooks,
            on_damage: to.on_damage,
            ..self.exporter((root, path), &notes, watcher)
        };
        // What it makes beside its target is noted in the home, which may be full.
        self.way_out(WayOut::Small, || {
            Ok(exporter.to_directory(to.host_dir, to.standing)?)
        })
    }

    /// Writes a directory of the vault as a tar archive to a file that is not there yet.
    pub fn export_archive(
        &self,
        vault: Select,
        path: &VaultPath,
        (host_file, on_damage): (&Path, OnDamage),
        watcher: &dyn Watcher,
    ) -> Result<ExportReport> {
        let root = self.head_for(vault, path, Verb::Govern)?;
        let notes = self.notes();
        let exporter = Exporter {
            on_damage,
            ..self.exporter((root, path), &notes, watcher)
        };
        self.way_out(WayOut::Small, || Ok(exporter.to_archive(host_file)?))
    }

    /// Writes a directory of the vault as a tar archive to whoever takes it.
    pub fn archive(&self, vault: Select, path: &VaultPath, out: &mut dyn Write) -> Result<()> {
        let root = self.head_for(vault, path, Verb::Read)?;
        let notes = self.notes();
        let exporter = self.exporter((root, path), &notes, &Unwatched);
        exporter.write_archive(out)?;
        Ok(())
    }

    /// Copies a directory of the vault to a new name in the transfer directory.
    pub fn transfer_out(
        &self,
        vault: Select,
        path: &VaultPath,
        name: &[u8],
        watcher: &dyn Watcher,
    ) -> Result<ExportReport> {
        let root = self.head_for(vault, path, Verb::Work)?;
        let notes = self.notes();
        let exporter = self.exporter((root, path), &notes, watcher);
        Ok(self.open_transfer_directory()?.export(&exporter, name)?)
    }

    /// An export that stops at damage and refuses what git runs by itself.
    fn exporter<'a>(
        &'a self,
        (root, path): (RootId, &'a VaultPath),
        notes: &'a Path,
        watcher: &'a dyn Watcher,
    ) -> Exporter<'a> {
        Exporter {
            trees: self.inner.vaults.trees(),
            root,
            path,
            hooks: Hooks::Refuse,
            on_damage: OnDamage::Stop,
            notes,
            watcher,
        }
    }

    /// The vault as it is now, or as it was last committed, for something that only looks.
    fn head_for(&self, vault: Select, path: &VaultPath, verb: Verb) -> Result<RootId> {
        let vault = self.vault(&vault, verb)?;
        self.inner.host.check_own(path)?;
        self.slot(vault.id).readable(self, |vault| Ok(vault.head))
    }
}
