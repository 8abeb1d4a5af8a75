//! The crate as its callers see it: no daemon, no view, no rights beyond those of the user.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod deep;
mod hostile;
mod round_trip;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use avfs_store::Store;
use avfs_transfer::{
    Admits, ExportReport, Exporter, GitEnvironment, Hooks, ImportCache, ImportFilter, ImportReport,
    ImportTerms, Importer, Incoming, OnDamage, Result, Standing, TransferDirectory, Unwatched,
};
use avfs_vault::{RootId, Trees, VaultPath};

/// A store of its own, a tree in it, and a directory for what the host has.
struct Scene {
    dir: tempfile::TempDir,
    trees: Trees,
    root: RootId,
}

fn path(text: &str) -> VaultPath {
    text.parse().unwrap()
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::new(Store::open(&dir.path().join("home")).unwrap());
        let root = trees.empty_root().unwrap();
        std::fs::create_dir(dir.path().join("host")).unwrap();
        Scene { dir, trees, root }
    }

    /// A path beside the store.
    fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A path in the directory that is imported.
    fn host(&self, name: &str) -> PathBuf {
        self.beside("host").join(name)
    }

    fn notes(&self) -> PathBuf {
        self.beside("notes")
    }

    /// Has something imported at `/`, as far as `admits` lets it.
    fn with_importer<T>(
        &self,
        filter: &ImportFilter,
        admits: &Admits<'_>,
        work: impl FnOnce(&Importer<'_>) -> Result<T>,
    ) -> Result<T> {
        let terms = ImportTerms {
            trees: &self.trees,
            at: &path("/"),
            owner: (1000, 1000),
            filter,
            notes: &self.notes(),
            cache: &ImportCache::empty(),
            git: GitEnvironment {
                path: OsStr::new("/usr/local/bin:/usr/bin:/bin"),
                user_home: None,
            },
            admits,
        };
        work(&Importer::new(terms, &Unwatched)?)
    }

    /// Imports what `read` reads.
    fn import(
        &mut self,
        filter: &ImportFilter,
        read: impl FnOnce(&Importer<'_>) -> Result<Incoming>,
    ) -> Result<ImportReport> {
        let imported = self.with_importer(filter, &|_, _| Ok(()), |importer| {
            let incoming = read(importer)?;
            let mut edit = self.trees.edit(self.root)?;
            let report = importer.put(&mut edit, incoming)?;
            Ok((report, edit.finish()?))
        });
        let (report, root) = imported?;
        self.root = root;
        Ok(report)
    }

    fn import_directory(&mut self, dir: &Path) -> Result<ImportReport> {
        self.import(&ImportFilter::default(), |importer| {
            importer.read_directory(dir)
        })
    }

    fn import_archive(&mut self, mut bytes: &[u8]) -> Result<ImportReport> {
        self.import(&ImportFilter::default(), |importer| {
            importer.read_archive(&mut bytes, "it")
        })
    }

    fn import_transfer(&mut self, name: &[u8]) -> Result<ImportReport> {
        let directory = TransferDirectory::open(self.real_host())?;
        self.import(&ImportFilter::default(), |importer| {
            directory.read(importer, name)
        })
    }

    fn real_host(&self) -> PathBuf {
        self.host("").canonicalize().unwrap()
    }

    /// Exports all of the tree in the way that `write` says.
    fn export(
        &self,
        write: impl FnOnce(&Exporter<'_>) -> Result<ExportReport>,
    ) -> Result<ExportReport> {
        write(&Exporter {
            trees: &self.trees,
            root: self.root,
            path: &path("/"),
            hooks: Hooks::Refuse,
            on_damage: OnDamage::Stop,
            notes: &self.notes(),
            watcher: &Unwatched,
        })
    }

    fn export_directory(&self, to: &Path) -> Result<ExportReport> {
        self.export(|exporter| exporter.to_directory(to, Standing::Nothing))
    }

    /// Whether nothing is noted as unfinished.
    fn is_settled(&self) -> bool {
        let notes = std::fs::read_dir(self.notes());
        notes.map_or(0, Iterator::count) == 0
    }
}
