//! Settings: text by key, of one vault or of the home.

use super::{Id, Rows, Transaction, key_and_value};
use crate::Result;

impl Rows<'_> {
    /// Key and value, sorted by key.
    pub fn settings(&self, vault: &Id) -> Result<Vec<(String, String)>> {
        let sql = "SELECT key, value FROM setting WHERE vault = ?1 ORDER BY key";
        self.all(sql, [vault], key_and_value)
    }

    /// The vaults that have this key, deleted ones left out.
    pub fn vaults_with_setting(&self, key: &str) -> Result<Vec<Id>> {
        let sql = "SELECT vault FROM setting JOIN vault ON vault.id = setting.vault
            WHERE key = ?1 AND deleted_name IS NULL";
        self.all(sql, [key], |row| row.get(0))
    }

    pub fn home_setting(&self, key: &str) -> Result<Option<String>> {
        let sql = "SELECT value FROM home_setting WHERE key = ?1";
        self.one(sql, [key], |row| row.get(0))
    }

    /// Those of the home whose key begins with `prefix`, which is left out of what is given. Sorted by key.
    pub fn home_settings(&self, prefix: &str) -> Result<Vec<(String, String)>> {
        let sql = "SELECT substr(key, length(?1) + 1), value FROM home_setting
            WHERE key GLOB ?1 || '*' ORDER BY key";
        self.all(sql, [prefix], key_and_value)
    }
}

impl Transaction<'_> {
    /// Sets a key to a value, or removes it.
    pub fn set_setting(&self, vault: &Id, key: &str, value: Option<&str>) -> Result<()> {
        match value {
            Some(value) => {
                let sql = "INSERT INTO setting (vault, key, value) VALUES (?1, ?2, ?3)
                    ON CONFLICT (vault, key) DO UPDATE SET value = excluded.value";
                self.change(sql, (vault, key, value))?;
            }
            None => {
                let sql = "DELETE FROM setting WHERE vault = ?1 AND key = ?2";
                self.change(sql, (vault, key))?;
            }
        }
        Ok(())
    }

    /// Sets a key of the home to a value, or removes it.
    pub fn set_home_setting(&self, key: &str, value: Option<&str>) -> Result<()> {
        match value {
            Some(value) => {
                let sql = "INSERT OR REPLACE INTO home_setting (key, value) VALUES (?1, ?2)";
                self.change(sql, (key, value))?;
            }
            None => {
                self.change("DELETE FROM home_setting WHERE key = ?1", [key])?;
            }
        }
        Ok(())
    }

    /// Gives a vault all settings of another, but for keys that begin with `except`.
    pub fn copy_settings(&self, from: &Id, to: &Id, except: &str) -> Result<()> {
        let sql = "INSERT INTO setting (vault, key, value)
            SELECT ?2, key, value FROM setting WHERE vault = ?1 AND key NOT LIKE ?3 || '%'";
        self.change(sql, (from, to, except))?;
        Ok(())
    }

    /// Gives a vault the settings of the home whose key begins with `prefix`, without it, but not those that begin with
    /// `except`.
    pub fn copy_home_settings(&self, to: &Id, prefix: &str, except: &str) -> Result<()> {
        let sql = "INSERT INTO setting (vault, key, value)
            SELECT ?1, substr(key, length(?2) + 1), value FROM home_setting
            WHERE key GLOB ?2 || '*' AND key NOT GLOB ?3 || '*'";
        self.change(sql, (to, prefix, except))?;
        Ok(())
    }
}
