//! The rules of a vault, as the text their author wrote. What they mean is known elsewhere.

use avfs_store::Durability;
use avfs_store::rusqlite::{Connection, OptionalExtension, Transaction};
use serde_json::json;

use crate::vaults::{by_id, event};
use crate::{Error, Principal, Result, VaultId, Vaults, journal};

pub const TABLE: &str = "
    CREATE TABLE policy (
        vault BLOB PRIMARY KEY NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        text TEXT NOT NULL
    ) WITHOUT ROWID;
";

impl Vaults {
    /// The vault's own rules; none if nobody wrote any.
    pub fn policy(&self, vault: VaultId) -> Result<Option<String>> {
        self.store().read(|connection| text_of(connection, vault))
    }

    /// Replaces the rules, if they are still what whoever wrote the new ones has seen.
    pub fn set_policy(
        &self,
        vault: VaultId,
        seen: Option<&str>,
        text: Option<&str>,
        by: &Principal,
    ) -> Result<()> {
        self.store().write(Durability::Full, |transaction| {
            let vault = by_id(transaction, vault)?;
            if text_of(transaction, vault.id)?.as_deref() != seen {
                return Err(Error::PolicyChanged { vault: vault.name });
            }
            match text {
                Some(text) => {
                    let put = "INSERT OR REPLACE INTO policy (vault, text) VALUES (?1, ?2)";
                    transaction.execute(put, (vault.id.as_bytes(), text))?;
                }
                None => {
                    let remove = "DELETE FROM policy WHERE vault = ?1";
                    transaction.execute(remove, [vault.id.as_bytes()])?;
                }
            }
            let details = json!({ "before": seen, "after": text });
            journal::append(transaction, event(vault.id, *by, "policy.set", details))?;
            Ok(())
        })
    }
}

/// A fork is bound by the rules of what it was forked from.
pub fn inherit(transaction: &Transaction<'_>, source: VaultId, fork: VaultId) -> Result<()> {
    let copy = "INSERT INTO policy (vault, text) SELECT ?2, text FROM policy WHERE vault = ?1";
    transaction
        .prepare_cached(copy)?
        .execute((source.as_bytes(), fork.as_bytes()))?;
    Ok(())
}

fn text_of(connection: &Connection, vault: VaultId) -> Result<Option<String>> {
    let sql = "SELECT text FROM policy WHERE vault = ?1";
    let mut select = connection.prepare_cached(sql)?;
    let found = select.query_row([vault.as_bytes()], |row| row.get(0));
    Ok(found.optional()?)
}
