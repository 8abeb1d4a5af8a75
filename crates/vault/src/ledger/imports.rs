//! Where parts of a vault came from: what a host directory was when it was imported, so that
//! changes can go back to it.

use avfs_store::ledger::{ImportRow, Transaction};
use avfs_store::{Durability, ObjectId};

use super::rows::values;
use super::vaults::by_id;
use crate::{Error, NewVersion, Result, RootId, Time, Vault, VaultId, VaultPath, Vaults, Version};

/// A directory of the host and its place in a vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportSource {
    /// An absolute path of the host, as bytes.
    pub host_dir: Vec<u8>,
    pub at: VaultPath,
}

/// The state in which a host directory and its place in a vault were last the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportBase {
    pub source: ImportSource,
    pub root: RootId,
    pub version: u64,
    pub time: Time,
}

impl Vaults {
    /// `publish` for an import: remembers where it came from, and makes sure that content which
    /// was taken over unread (`reused`) is still there. `Missing` says that it is not.
    pub fn publish_import(
        &self,
        vault: VaultId,
        expected: RootId,
        new: RootId,
        version: NewVersion,
        source: Option<&ImportSource>,
        reused: &[ObjectId],
    ) -> Result<Version> {
        self.store().write(Durability::Relaxed, |transaction| {
            for id in reused {
                if !self.store().is_intact(*id)? {
                    return Err(avfs_store::Error::Missing { id: *id }.into());
                }
            }
            let published = self.publish_in(transaction, vault, expected, new, version)?;
            if let Some(source) = source {
                set_base(transaction, vault, source, new, published.number)?;
            }
            Ok(published)
        })
    }

    /// The newest first.
    pub fn import_bases(&self, vault: VaultId) -> Result<Vec<ImportBase>> {
        values(self.store().read(|rows| rows.imports(vault.as_bytes()))?)
    }

    /// Notes that the host directory and its place are the same again, as of `root`.
    pub fn set_import_base(
        &self,
        vault: VaultId,
        source: &ImportSource,
        root: RootId,
        version: u64,
    ) -> Result<()> {
        self.store().write(Durability::Relaxed, |transaction| {
            let head = by_id(transaction, vault)?.head;
            self.check_stored(head, root)?;
            set_base(transaction, vault, source, root, version)
        })
    }
}

fn set_base(
    transaction: &Transaction<'_>,
    vault: VaultId,
    source: &ImportSource,
    root: RootId,
    version: u64,
) -> Result<()> {
    let row = ImportRow {
        host: source.host_dir.clone(),
        place: source.at.as_bytes().to_vec(),
        root: root.object(),
        version,
        time: Time::now().into(),
    };
    Ok(transaction.set_import(vault.as_bytes(), &row)?)
}

/// A fork came from where its source came from, as far as that had happened in the state that is
/// forked. Its own versions begin with that state.
pub fn inherit(transaction: &Transaction<'_>, source: VaultId, fork: &Vault) -> Result<()> {
    let (from, to) = (source.as_bytes(), fork.id.as_bytes());
    Ok(transaction.copy_imports(from, to, fork.version, fork.head.object())?)
}

impl TryFrom<ImportRow> for ImportBase {
    type Error = Error;

    fn try_from(row: ImportRow) -> Result<ImportBase> {
        let at = VaultPath::from_stored(&row.place).ok_or_else(|| Error::Corrupt {
            what: "the place of an import".to_owned(),
        })?;
        Ok(ImportBase {
            source: ImportSource {
                host_dir: row.host,
                at,
            },
            root: RootId::new(row.root),
            version: row.version,
            time: row.time.into(),
        })
    }
}
