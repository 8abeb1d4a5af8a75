//! Vaults, and which one is current for whom.

use rusqlite::Row;

use super::{Id, Rows, Stamp, Transaction, count, object, optional_count, signed, stamp};
use crate::{ObjectId, Result};

/// A vault as it is now, or as it was when it was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultRow {
    pub id: Id,
    pub name: String,
    pub head: ObjectId,
    /// The number of the newest version.
    pub version: u64,
    pub parent: Option<ParentRow>,
    pub created: Stamp,
    pub quota: QuotaRow,
    pub made_by: String,
    /// When it was deleted, if it was.
    pub deleted: Option<Stamp>,
}

/// What a vault was forked from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentRow {
    pub vault: Id,
    /// What it was called then.
    pub name: String,
    pub root: ObjectId,
}

/// Limits; one that is not set is none.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaRow {
    pub bytes: Option<u64>,
    pub files: Option<u64>,
    pub file_bytes: Option<u64>,
}

impl Rows<'_> {
    /// A vault that is not deleted.
    pub fn vault(&self, id: &Id) -> Result<Option<VaultRow>> {
        let sql = "SELECT * FROM vault WHERE id = ?1 AND deleted_name IS NULL";
        self.one(sql, [id], vault_row)
    }

    pub fn vault_named(&self, name: &str) -> Result<Option<VaultRow>> {
        self.one("SELECT * FROM vault WHERE name = ?1", [name], vault_row)
    }

    pub fn is_name_taken(&self, name: &str) -> Result<bool> {
        self.exists("SELECT 1 FROM vault WHERE name = ?1", [name])
    }

    /// Those that are not deleted, by name.
    pub fn vaults(&self) -> Result<Vec<VaultRow>> {
        let sql = "SELECT * FROM vault WHERE deleted_name IS NULL ORDER BY name";
        self.all(sql, [], vault_row)
    }

    /// How many are not deleted.
    pub fn count_vaults(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM vault WHERE deleted_name IS NULL";
        self.value(sql, [], super::total)
    }

    /// Every vault, also deleted ones.
    pub fn vaults_and_deleted(&self) -> Result<Vec<VaultRow>> {
        self.all("SELECT * FROM vault", [], vault_row)
    }

    /// Vaults forked from this one, by name.
    pub fn forks(&self, parent: &Id) -> Result<Vec<VaultRow>> {
        let sql = "SELECT * FROM vault
            WHERE parent = ?1 AND deleted_name IS NULL ORDER BY name";
        self.all(sql, [parent], vault_row)
    }

    /// The last deleted first.
    pub fn deleted_vaults(&self) -> Result<Vec<VaultRow>> {
        let sql = "SELECT * FROM vault WHERE deleted_name IS NOT NULL
            ORDER BY deleted_secs DESC, deleted_nanos DESC";
        self.all(sql, [], vault_row)
    }

    /// The vault that was last deleted under this name.
    pub fn last_deleted(&self, name: &str) -> Result<Option<VaultRow>> {
        let sql = "SELECT * FROM vault WHERE deleted_name = ?1
            ORDER BY deleted_secs DESC, deleted_nanos DESC LIMIT 1";
        self.one(sql, [name], vault_row)
    }

    /// The owner's current vault.
    pub fn current(&self) -> Result<Option<VaultRow>> {
        let sql = "SELECT vault.* FROM vault JOIN current ON vault.id = current.vault";
        self.one(sql, [], vault_row)
    }

    /// Whether this principal has ever chosen a current vault.
    pub fn has_chosen(&self, principal: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM current_of WHERE principal = ?1";
        self.exists(sql, [principal])
    }

    /// The vault that this principal has chosen, if it still exists.
    pub fn current_of(&self, principal: &str) -> Result<Option<VaultRow>> {
        let sql = "SELECT vault.* FROM vault JOIN current_of ON vault.id = current_of.vault
            WHERE principal = ?1";
        self.one(sql, [principal], vault_row)
    }
}

impl Transaction<'_> {
    pub fn add_vault(&self, vault: &VaultRow) -> Result<()> {
        let sql = "INSERT INTO vault
            (id, name, head, version, parent, parent_name, parent_root, secs, nanos,
             max_bytes, max_files, max_file_bytes, made_by)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
        let parent = vault.parent.as_ref();
        let values = (
            vault.id,
            &vault.name,
            vault.head.as_bytes(),
            signed(vault.version),
            parent.map(|parent| parent.vault),
            parent.map(|parent| &parent.name),
            parent.map(|parent| *parent.root.as_bytes()),
            vault.created.secs,
            vault.created.nanos,
            vault.quota.bytes.map(signed),
            vault.quota.files.map(signed),
            vault.quota.file_bytes.map(signed),
            &vault.made_by,
        );
        self.change(sql, values)?;
        Ok(())
    }

    /// Moves a head from one root to another, with the number of the version that tells of it. False when the head was
    /// elsewhere: then nothing has changed.
    pub fn move_head(
        &self,
        vault: &Id,
        from: ObjectId,
        to: ObjectId,
        version: u64,
    ) -> Result<bool> {
        let sql = "UPDATE vault SET head = ?3, version = ?4 WHERE id = ?1 AND head = ?2";
        let values = (vault, from.as_bytes(), to.as_bytes(), signed(version));
        Ok(self.change(sql, values)? == 1)
    }

    pub fn rename_vault(&self, vault: &Id, name: &str) -> Result<()> {
        let sql = "UPDATE vault SET name = ?2 WHERE id = ?1";
        self.change(sql, (vault, name))?;
        Ok(())
    }

    pub fn set_quota(&self, vault: &Id, quota: &QuotaRow) -> Result<()> {
        let sql = "UPDATE vault SET max_bytes = ?2, max_files = ?3, max_file_bytes = ?4
            WHERE id = ?1";
        let values = (
            vault,
            quota.bytes.map(signed),
            quota.files.map(signed),
            quota.file_bytes.map(signed),
        );
        self.change(sql, values)?;
        Ok(())
    }

    /// Marks a vault as deleted. Its name is free, and nobody's current vault is this one any more.
    pub fn delete_vault(&self, vault: &Id, name: &str, at: Stamp) -> Result<()> {
        let sql = "UPDATE vault SET name = ?2, deleted_name = ?3, deleted_secs = ?4,
            deleted_nanos = ?5 WHERE id = ?1";
        // No vault can be called so.
        let unusable = format!(":{}", uuid::Uuid::from_bytes(*vault));
        self.change(sql, (vault, unusable, name, at.secs, at.nanos))?;
        for sql in [
            "UPDATE current SET vault = NULL WHERE vault = ?1",
            "UPDATE current_of SET vault = NULL WHERE vault = ?1",
        ] {
            self.change(sql, [vault])?;
        }
        Ok(())
    }

    /// Takes back that a vault is deleted.
    pub fn undelete_vault(&self, vault: &Id, name: &str) -> Result<()> {
        let sql = "UPDATE vault SET name = ?2, deleted_name = NULL, deleted_secs = NULL,
            deleted_nanos = NULL WHERE id = ?1";
        self.change(sql, (vault, name))?;
        Ok(())
    }

    /// Removes a vault and every row that belongs to it.
    pub fn remove_vault(&self, vault: &Id) -> Result<()> {
        self.change("DELETE FROM vault WHERE id = ?1", [vault])?;
        Ok(())
    }

    /// Sets the owner's current vault.
    pub fn set_current(&self, vault: &Id) -> Result<()> {
        let sql = "INSERT INTO current (one, vault) VALUES (1, ?1)
            ON CONFLICT (one) DO UPDATE SET vault = excluded.vault";
        self.change(sql, [vault])?;
        Ok(())
    }

    /// Sets the current vault of another principal.
    pub fn set_current_of(&self, principal: &str, vault: &Id) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO current_of (principal, vault) VALUES (?1, ?2)";
        self.change(sql, (principal, vault))?;
        Ok(())
    }
}

fn vault_row(row: &Row<'_>) -> rusqlite::Result<VaultRow> {
    let parent = match row.get::<_, Option<Id>>("parent")? {
        None => None,
        Some(vault) => Some(ParentRow {
            vault,
            name: row.get("parent_name")?,
            root: object(row, "parent_root")?,
        }),
    };
    let (name, deleted) = match row.get::<_, Option<String>>("deleted_name")? {
        None => (row.get("name")?, None),
        Some(name) => (name, Some(deleted(row)?)),
    };
    Ok(VaultRow {
        id: row.get("id")?,
        name,
        head: object(row, "head")?,
        version: count(row, "version")?,
        parent,
        created: stamp(row)?,
        quota: QuotaRow {
            bytes: optional_count(row, "max_bytes")?,
            files: optional_count(row, "max_files")?,
            file_bytes: optional_count(row, "max_file_bytes")?,
        },
        made_by: row.get("made_by")?,
        deleted,
    })
}

fn deleted(row: &Row<'_>) -> rusqlite::Result<Stamp> {
    let secs: Option<i64> = row.get("deleted_secs")?;
    let nanos: Option<u32> = row.get("deleted_nanos")?;
    Ok(Stamp {
        secs: secs.unwrap_or(0),
        nanos: nanos.unwrap_or(0),
    })
}
