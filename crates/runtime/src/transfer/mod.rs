//! In and out: host directories, archives and git revisions into a vault, and out of it again.

mod directory;
mod error;

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use avfs_store::ObjectId;
use avfs_store::WayOut;
use avfs_vault::{Cause, ImportSource, Kind, NewVersion, RootId, Vault, VaultId, VaultPath};
use serde_json::json;

use crate::aside;
use crate::autorun::{self, Hooks, Outgoing, RunsByItself};
use crate::engine::STORED_OWNER;
use crate::export::{archive_to_file, export_directory, write_archive};
use crate::gate::Verb;
use crate::import::{
    Harvest, ImportCache, Intake, Sieve, harvest_archive, harvest_directory, harvest_revision,
    plant,
};
use crate::live::HeadChange;
use crate::progress::{Tally, Unwatched, Watcher};
use crate::runtime::Select;
use crate::session::Session;
use crate::through::Draft;
use crate::{
    Error, ExportReport, ExportTo, Gitignores, ImportFilter, ImportReport, OnDamage, Result,
};
pub use error::TransferError;

/// What is to be brought in, and where it goes.
pub struct Import<'a> {
    pub vault: Select,
    pub at: VaultPath,
    pub from: ImportFrom<'a>,
    pub filter: ImportFilter,
}

pub enum ImportFrom<'a> {
    /// A directory of the host, or a tar archive.
    Host(PathBuf),
    /// What a git repository holds at a revision.
    Revision {
        repository: PathBuf,
        revision: String,
    },
    /// A tar archive as it arrives.
    Stream(&'a mut dyn Read),
    /// What has this name in the transfer directory: a directory, or a tar archive.
    Transfer { name: Vec<u8> },
}

#[derive(Debug, Clone)]
pub struct Imported {
    pub report: ImportReport,
    pub version: u64,
}

impl Session {
    /// Brings something of the host into the vault as one version, or not at all.
    pub fn import(&self, mut import: Import<'_>, watcher: &dyn Watcher) -> Result<Imported> {
        let verb = match import.from {
            ImportFrom::Host(_) | ImportFrom::Revision { .. } => Verb::Govern,
            ImportFrom::Stream(_) | ImportFrom::Transfer { .. } => Verb::Work,
        };
        let is_transfer = matches!(import.from, ImportFrom::Transfer { .. });
        let vault = self.vault(&import.vault, verb)?;
        self.inner.host.check_own(&import.at)?;
        // Reading may take long; what forbids the import is better said before.
        self.slot(vault.id)
            .current(self, |vault| self.check_place(&vault, &import.at))?;
        let Some(host_dir) = source_directory(&import.from)? else {
            if import.filter.gitignores == Gitignores::Heeded && !is_transfer {
                return Err(Error::Invalid {
                    what: "option",
                    reason: "only directories have .gitignore files to heed".into(),
                });
            }
            let cache = ImportCache::empty();
            return self.import_once(&vault, &mut import, None, &cache, watcher);
        };
        let memory = self.inner.config.home.join("cache/imports");
        let cache = match self.inner.vaults.trees().store().any_damage() {
            // Where something is damaged, more may be, and the files themselves make it whole again.
            true => ImportCache::empty(),
            false => ImportCache::load(&memory, &host_dir),
        };
        let source = ImportSource {
            host_dir: host_dir.as_os_str().as_bytes().to_vec(),
            at: import.at.clone(),
        };
        let mut tried = self.import_once(&vault, &mut import, Some(&source), &cache, watcher);
        let mut used = cache;
        if used.reused() > 0 && tried.as_ref().is_err_and(is_missing) {
            // What was remembered has been collected meanwhile: read everything again.
            used = ImportCache::empty();
            tried = self.import_once(&vault, &mut import, Some(&source), &used, watcher);
        }
        let imported = tried?;
        // Without it the next import takes longer, and that is all.
        let _ = used.save(&memory, &host_dir);
        Ok(imported)
    }

    fn import_once(
        &self,
        vault: &Vault,
        import: &mut Import<'_>,
        source: Option<&ImportSource>,
        cache: &ImportCache,
        watcher: &dyn Watcher,
    ) -> Result<Imported> {
        // Until it is published, nothing refers to what is stored.
        let _lease = self.inner.vaults.lease();
        let trees = self.inner.vaults.trees();
        let at = import.at.clone();
        let intake = Intake {
            trees,
            at: &at,
            owner: (STORED_OWNER.uid, STORED_OWNER.gid),
            sieve: Sieve::new(&import.filter)?
                .without(aside::noted(&self.inner.config.home))
                .alone(matches!(import.from, ImportFrom::Transfer { .. })),
            cache,
            tally: Tally::new(watcher, (None, None)),
            admits: &|path, size| self.inner.vaults.check_size(vault, path, size),
        };
        let harvest = self.harvest(&intake, &mut import.from)?;
        intake.tally.check()?;
        let details = json!({ "paths": [at.to_string()], "source": describe(&import.from) });
        let version = NewVersion {
            by: self.principal(),
            exec: None,
            cause: Cause::Import,
            details,
        };
        let mut harvest = Some(harvest);
        let change = HeadChange {
            version,
            draft: &mut |vault| {
                let name = || vault.name.to_string();
                let harvest = harvest.take();
                let harvest = harvest.ok_or_else(|| Error::Overtaken { vault: name() })?;
                let mut edit = trees.edit(vault.head)?;
                let value = plant(&mut edit, &intake, harvest)?;
                let root = edit.finish()?;
                Ok(Draft {
                    value,
                    root,
                    gesture: None,
                })
            },
            publish: &|vault, root, version| {
                let relied_on = self.relied_on(vault.head, root, cache)?;
                let vaults = &self.inner.vaults;
                let (id, head) = (vault.id, vault.head);
                let published =
                    vaults.publish_import(id, head, root, version, source, &relied_on)?;
                Ok(published.number)
            },
        };
        let (report, version) = self.slot(vault.id).change(self, change)?;
        self.note_source(vault.id, source, version)?;
        Ok(Imported { report, version })
    }

    /// Where an import went through a view, its source is noted after it.
    fn note_source(
        &self,
        vault: VaultId,
        source: Option<&ImportSource>,
        number: u64,
    ) -> Result<()> {
        let vaults = &self.inner.vaults;
        let Some(source) = source else { return Ok(()) };
        let known = vaults.import_bases(vault)?;
        if known
            .iter()
            .any(|base| base.source == *source && base.version == number)
        {
            return Ok(());
        }
        let root = vaults.version(vault, number)?.root;
        Ok(vaults.set_import_base(vault, source, root, number)?)
    }

    fn harvest(
        &self,
        intake: &Intake<'_>,
        from: &mut ImportFrom<'_>,
    ) -> Result<Harvest, TransferError> {
        match from {
            ImportFrom::Revision {
                repository,
                revision,
            } => harvest_revision(intake, &self.inner.config.host, repository, revision),
            ImportFrom::Stream(stream) => harvest_archive(intake, *stream, "the archive"),
            ImportFrom::Transfer { name } => self.harvest_transfer(intake, name),
            ImportFrom::Host(path) if path.is_dir() => harvest_directory(intake, path),
            ImportFrom::Host(path) => {
                let opened = File::open(&*path).map_err(failed("open", path))?;
                harvest_archive(intake, &mut { opened }, &path.display().to_string())
            }
        }
    }

    /// Whether something can be brought in at `at`.
    fn check_place(&self, vault: &Vault, at: &VaultPath) -> Result<()> {
        let trees = self.inner.vaults.trees();
        let mut here = VaultPath::root();
        for name in at.components() {
            here = here.join(name)?;
            match trees.entry(vault.head, &here)? {
                None => return Ok(()),
                Some(entry) if entry.is_dir() => {}
                Some(_) => return Err(avfs_vault::Error::NotADirectory { path: here }.into()),
            }
        }
        Ok(())
    }

    /// The objects that the new root needs and nobody has just written.
    fn relied_on(&self, head: RootId, root: RootId, cache: &ImportCache) -> Result<Vec<ObjectId>> {
        let mut objects = Vec::new();
        if cache.reused() == 0 {
            return Ok(objects);
        }
        let trees = self.inner.vaults.trees();
        let mut found = Ok(());
        trees.diff_each(head, root, &mut |change| {
            if let Some(Kind::File { content, .. }) = change.after.map(|entry| entry.kind)
                && cache.took_over(content)
            {
                found = trees
                    .content_objects(content)
                    .map(|of_file| objects.extend(of_file));
            }
            found.is_ok()
        })?;
        found?;
        Ok(objects)
    }

    /// Copies a directory of the vault to a host directory that is new or empty.
    pub fn export(
        &self,
        vault: Select,
        path: &VaultPath,
        to: ExportTo<'_>,
        hooks: Hooks,
        watcher: &dyn Watcher,
    ) -> Result<ExportReport> {
        let head = self.head_for(vault, path, Verb::Govern)?;
        let runs_by_itself = self.runs_by_itself(head, path, (to.host_dir, to.on_damage))?;
        autorun::check(&runs_by_itself, hooks)?;
        let trees = self.inner.vaults.trees();
        let notes = self.notes();
        // What it makes beside its target is noted in the home, which may be full.
        let report = self.way_out(WayOut::Small, || {
            Ok(export_directory(trees, head, path, to, &notes, watcher)?)
        })?;
        Ok(ExportReport {
            runs_by_itself,
            ..report
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
        let head = self.head_for(vault, path, Verb::Govern)?;
        // In an archive nothing runs by itself yet: it is only named.
        let runs_by_itself = self.runs_by_itself(head, path, (Path::new("/"), on_damage))?;
        let trees = self.inner.vaults.trees();
        let (notes, to) = (self.notes(), (host_file, on_damage));
        let report = self.way_out(WayOut::Small, || {
            Ok(archive_to_file(trees, head, path, to, &notes, watcher)?)
        })?;
        Ok(ExportReport {
            runs_by_itself,
            ..report
        })
    }

    /// Where it is noted what exports make beside their targets.
    fn notes(&self) -> PathBuf {
        self.inner.work.directory.join(aside::DIRECTORY)
    }

    fn runs_by_itself(
        &self,
        root: RootId,
        path: &VaultPath,
        (host_dir, on_damage): (&Path, OnDamage),
    ) -> Result<Vec<RunsByItself>> {
        let trees = self.inner.vaults.trees();
        let (at, _) = trees.resolve(root, path)?;
        let outgoing = Outgoing {
            trees,
            root,
            at: &at,
            host_dir,
            on_damage,
        };
        Ok(outgoing.all()?)
    }

    /// Writes a directory of the vault as a tar archive to whoever takes it.
    pub fn archive(&self, vault: Select, path: &VaultPath, out: &mut dyn Write) -> Result<()> {
        let head = self.head_for(vault, path, Verb::Read)?;
        let trees = self.inner.vaults.trees();
        write_archive(trees, head, path, (out, OnDamage::Stop), &Unwatched)?;
        Ok(())
    }

    /// The vault as it is now, or as it was last committed, for something that only looks.
    fn head_for(&self, vault: Select, path: &VaultPath, verb: Verb) -> Result<RootId> {
        let vault = self.vault(&vault, verb)?;
        self.inner.host.check_own(path)?;
        self.slot(vault.id).readable(self, |vault| Ok(vault.head))
    }
}

/// The real path of the directory that is imported; none when the source is something else.
fn source_directory(from: &ImportFrom<'_>) -> Result<Option<PathBuf>> {
    let (path, wants_directory) = match from {
        ImportFrom::Host(path) => (path, false),
        ImportFrom::Revision { repository, .. } => (repository, true),
        ImportFrom::Stream(_) | ImportFrom::Transfer { .. } => return Ok(None),
    };
    let real = path.canonicalize().map_err(failed("open", path))?;
    let kind = real.metadata().map_err(failed("open", path))?.file_type();
    match (kind.is_dir(), wants_directory) {
        (true, false) => Ok(Some(real)),
        (true, true) => Ok(None),
        (false, false) if kind.is_file() => Ok(None),
        (false, _) => Err(TransferError::NotASource { path: path.clone() }.into()),
    }
}

fn describe(from: &ImportFrom<'_>) -> String {
    match from {
        ImportFrom::Host(path) => path.display().to_string(),
        ImportFrom::Revision {
            repository,
            revision,
        } => format!("{} at {revision}", repository.display()),
        ImportFrom::Stream(_) => "a stream".into(),
        ImportFrom::Transfer { name } => {
            format!(
                "{} of the transfer directory",
                String::from_utf8_lossy(name)
            )
        }
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> TransferError {
    let path = path.to_owned();
    move |source| TransferError::Host {
        action,
        path,
        source,
    }
}

/// Whether an object that was counted on is gone.
fn is_missing(error: &Error) -> bool {
    let store = match error {
        Error::Vault(avfs_vault::Error::Swept { .. }) => return true,
        Error::Vault(avfs_vault::Error::Store(error)) | Error::Store(error) => error,
        _ => return false,
    };
    matches!(store, avfs_store::Error::Missing { .. })
}
