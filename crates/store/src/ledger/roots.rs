//! Every root that a row names: what must be kept.

use rusqlite::Row;

use super::{Id, Rows};
use crate::{ObjectId, Result};

/// A column that holds roots and is not here would let gc take what it names; a test looks for such.
const ROOTS: &str = "
    SELECT id, 'head', head, NULL, NULL FROM vault
    UNION ALL SELECT id, 'beginning', parent_root, NULL, NULL FROM vault
        WHERE parent_root IS NOT NULL
    UNION ALL SELECT vault, 'version', root, number, NULL FROM version
    UNION ALL SELECT vault, 'checkpoint', root, NULL, name FROM checkpoint
    UNION ALL SELECT vault, 'import', root, NULL, NULL FROM import_base
    UNION ALL SELECT vault, 'speculation', root, NULL, NULL FROM speculation
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootRow {
    pub vault: Id,
    pub kind: RootKind,
    pub root: ObjectId,
}

/// What a root is to its vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootKind {
    Head,
    /// Where a fork began.
    Beginning,
    Version(u64),
    Checkpoint(String),
    /// What a host directory was when it was imported.
    Import,
    /// What a command made that was tried before it was approved.
    Speculation,
}

impl Rows<'_> {
    /// Heads, then beginnings, versions, checkpoints and the rest; those of deleted vaults, too.
    pub fn roots(&self) -> Result<Vec<RootRow>> {
        self.all(ROOTS, [], root_row)
    }
}

fn root_row(row: &Row<'_>) -> rusqlite::Result<RootRow> {
    let kind = match row.get_ref(1)?.as_str()? {
        "head" => RootKind::Head,
        "version" => RootKind::Version(row.get::<_, i64>(3)? as u64),
        "checkpoint" => RootKind::Checkpoint(row.get(4)?),
        "import" => RootKind::Import,
        "speculation" => RootKind::Speculation,
        _ => RootKind::Beginning,
    };
    Ok(RootRow {
        vault: row.get(0)?,
        kind,
        root: ObjectId::from_bytes(row.get(2)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Store};

    #[test]
    fn every_column_of_roots_is_known_to_gc() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        store.prepare_ledger().unwrap();
        let sql = "SELECT tables.name, columns.name FROM sqlite_master AS tables
            JOIN pragma_table_info(tables.name) AS columns
            WHERE tables.type = 'table' AND columns.name IN ('head', 'root', 'parent_root')
            ORDER BY 1, 2";
        let found: Vec<(String, String)> = store
            .read(|rows| rows.all::<_, Vec<_>>(sql, [], super::super::key_and_value))
            .map_err(|error: Error| error)
            .unwrap();
        assert!(found.len() >= 4);
        for (table, column) in found {
            let is_in = |part: &str| {
                part.contains(&format!(", {column},"))
                    && part.split_whitespace().any(|word| word == table)
            };
            let known = ROOTS.split("UNION ALL").any(is_in);
            assert!(known, "{column} of {table} is not among the roots of gc");
        }
    }
}
