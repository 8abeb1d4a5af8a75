//! Host directories, archives and git revisions into a vault.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use avfs_transfer::{
    GitEnvironment, ImportCache, ImportFilter, ImportReport, ImportTerms, Importer, Incoming,
    Watcher, check_place,
};
use avfs_vault::{Cause, ImportSource, NewVersion, Vault, VaultId, VaultPath};
use serde_json::json;

use crate::gate::Verb;
use crate::live::slot::HeadChange;
use crate::live::view_writer::Draft;
use crate::owners::STORED_OWNER;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};
use avfs_transfer::Error as TransferError;

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
        let vault = self.vault(&import.vault, verb)?;
        self.inner.host.check_own(&import.at)?;
        // Reading may take long; what forbids the import is better said before.
        let trees = self.inner.vaults.trees();
        self.slot(vault.id).current(self, |vault| {
            Ok(check_place(trees, vault.head, &import.at)?)
        })?;
        let Some(host_dir) = source_directory(&import.from)? else {
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
        let notes = self.notes();
        let admits = |path: &VaultPath, size| self.inner.vaults.check_size(vault, path, size);
        let terms = ImportTerms {
            trees,
            at: &at,
            owner: (STORED_OWNER.uid, STORED_OWNER.gid),
            filter: &import.filter,
            notes: &notes,
            cache,
            git: GitEnvironment {
                path: &self.inner.config.host.path,
                user_home: self.inner.config.host.user_home.as_deref(),
            },
            admits: &admits,
        };
        let importer = Importer::new(terms, watcher)?;
        let incoming = self.read_source(&importer, &mut import.from)?;
        let details = json!({ "paths": [at.to_string()], "source": describe(&import.from) });
        let version = NewVersion {
            by: self.principal(),
            exec: None,
            cause: Cause::Import,
            details,
        };
        let mut incoming = Some(incoming);
        let change = HeadChange {
            version,
            draft: &mut |vault| {
                let name = || vault.name.to_string();
                let incoming = incoming.take();
                let incoming = incoming.ok_or_else(|| Error::Overtaken { vault: name() })?;
                let mut edit = trees.edit(vault.head)?;
                let value = importer.put(&mut edit, incoming)?;
                let root = edit.finish()?;
                Ok(Draft {
                    value,
                    root,
                    hint: None,
                })
            },
            publish: &|vault, root, version| {
                let relied_on = cache.relied_on(trees, vault.head, root)?;
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

    /// Reads all of the source; its content is stored.
    fn read_source(&self, importer: &Importer<'_>, from: &mut ImportFrom<'_>) -> Result<Incoming> {
        Ok(match from {
            ImportFrom::Revision {
                repository,
                revision,
            } => importer.read_revision(repository, revision)?,
            ImportFrom::Stream(stream) => importer.read_archive(*stream, "the archive")?,
            ImportFrom::Transfer { name } => {
                self.open_transfer_directory()?.read(importer, name)?
            }
            ImportFrom::Host(path) if path.is_dir() => importer.read_directory(path)?,
            ImportFrom::Host(path) => {
                let mut opened = File::open(&*path).map_err(TransferError::host("open", &*path))?;
                importer.read_archive(&mut opened, &path.display().to_string())?
            }
        })
    }
}

/// The real path of the directory that is imported; none when the source is something else.
fn source_directory(from: &ImportFrom<'_>) -> Result<Option<PathBuf>> {
    let (path, wants_directory) = match from {
        ImportFrom::Host(path) => (path, false),
        ImportFrom::Revision { repository, .. } => (repository, true),
        ImportFrom::Stream(_) | ImportFrom::Transfer { .. } => return Ok(None),
    };
    let real = path
        .canonicalize()
        .map_err(TransferError::host("open", path))?;
    let kind = real
        .metadata()
        .map_err(TransferError::host("open", path))?
        .file_type();
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

/// Whether an object that was counted on is gone.
fn is_missing(error: &Error) -> bool {
    let store = match error {
        Error::Vault(avfs_vault::Error::Swept { .. }) => return true,
        Error::Vault(avfs_vault::Error::Store(error)) | Error::Store(error) => error,
        _ => return false,
    };
    matches!(store, avfs_store::Error::Missing { .. })
}
