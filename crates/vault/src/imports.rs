//! Where parts of a vault came from: what a host directory was when it was imported, so that
//! changes can go back to it.

use avfs_store::rusqlite::{self, Row, Transaction};
use avfs_store::{Durability, ObjectId};

use crate::schema::{count, root, time};
use crate::vaults::by_id;
use crate::{
    Content, Error, NewVersion, Result, RootId, Time, Trees, Vault, VaultId, VaultPath, Vaults,
    Version,
};

pub const TABLE: &str = "
    CREATE TABLE import_base (
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        host BLOB NOT NULL,
        place BLOB NOT NULL,
        root BLOB NOT NULL,
        version INTEGER NOT NULL,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        PRIMARY KEY (vault, host, place)
    ) WITHOUT ROWID;
";

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
        self.store().read(|connection| {
            let sql = "SELECT * FROM import_base WHERE vault = ?1 ORDER BY secs DESC, nanos DESC";
            let mut select = connection.prepare_cached(sql)?;
            let rows = select.query_map([vault.as_bytes()], base_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
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

impl Trees {
    /// Every object that `content` is made of. Those of a chunk list are named without being read.
    pub fn content_objects(&self, content: Content) -> Result<Vec<ObjectId>> {
        Ok(match content {
            Content::EMPTY => Vec::new(),
            Content::Object(id) => vec![id],
            Content::Chunks(id) => {
                let mut objects = vec![id];
                self.objects_beneath(id, &mut |id| {
                    objects.push(id);
                    Ok(())
                })?;
                objects
            }
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
    let sql = "INSERT OR REPLACE INTO import_base (vault, host, place, root, version, secs, nanos)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let now = Time::now();
    transaction.prepare_cached(sql)?.execute((
        vault.as_bytes(),
        &source.host_dir,
        source.at.as_bytes(),
        root.object().as_bytes(),
        version as i64,
        now.secs,
        now.nanos,
    ))?;
    Ok(())
}

/// A fork came from where its source came from, as far as that had happened in the state that is
/// forked. Its own versions begin with that state.
pub fn inherit(transaction: &Transaction<'_>, source: VaultId, fork: &Vault) -> Result<()> {
    let sql = "INSERT INTO import_base (vault, host, place, root, version, secs, nanos)
        SELECT ?2, host, place, root, ?3, secs, nanos FROM import_base
        WHERE vault = ?1 AND version <= (
            SELECT coalesce(max(number), 0) FROM version WHERE vault = ?1 AND root = ?4
        )";
    transaction.prepare_cached(sql)?.execute((
        source.as_bytes(),
        fork.id.as_bytes(),
        fork.version as i64,
        fork.head.object().as_bytes(),
    ))?;
    Ok(())
}

fn base_row(row: &Row<'_>) -> rusqlite::Result<ImportBase> {
    let place: Vec<u8> = row.get("place")?;
    let at = VaultPath::from_stored(&place).ok_or_else(|| {
        let what = "the place of an import".to_owned();
        let column = row.as_ref().column_index("place").unwrap_or_default();
        let error = Box::new(Error::Corrupt { what });
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, error)
    })?;
    let host_dir = row.get("host")?;
    Ok(ImportBase {
        source: ImportSource { host_dir, at },
        root: root(row, "root")?,
        version: count(row, "version")?,
        time: time(row)?,
    })
}
