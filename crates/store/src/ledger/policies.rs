//! The rules of vaults, as text.

use super::{Id, Rows, Transaction};
use crate::Result;

impl Rows<'_> {
    pub fn policy(&self, vault: &Id) -> Result<Option<String>> {
        let sql = "SELECT text FROM policy WHERE vault = ?1";
        self.one(sql, [vault], |row| row.get(0))
    }
}

impl Transaction<'_> {
    /// Sets the rules, or removes them.
    pub fn set_policy(&self, vault: &Id, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => {
                let sql = "INSERT OR REPLACE INTO policy (vault, text) VALUES (?1, ?2)";
                self.change(sql, (vault, text))?;
            }
            None => {
                self.change("DELETE FROM policy WHERE vault = ?1", [vault])?;
            }
        }
        Ok(())
    }

    /// Gives a vault the rules of another, if that has any.
    pub fn copy_policy(&self, from: &Id, to: &Id) -> Result<()> {
        let sql = "INSERT INTO policy (vault, text) SELECT ?2, text FROM policy WHERE vault = ?1";
        self.change(sql, (from, to))?;
        Ok(())
    }
}
