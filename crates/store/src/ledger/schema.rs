//! The tables of vaults, and how an older home gets them.

use rusqlite::Row;

use super::{Rows, Transaction};
use crate::{Error, Result};

/// Every step from nothing to the present schema; the number of steps taken is stored.
const STEPS: &[&str] = &[
    TABLES,
    DELETED_AND_QUOTA,
    IMPORTS,
    SETTINGS,
    POLICIES,
    APPROVALS,
    "ALTER TABLE checkpoint ADD COLUMN description TEXT",
    HOLES,
    ATTEMPTS,
    MAKERS,
    HOME_SETTINGS,
];
pub(super) const VERSION: i64 = STEPS.len() as i64;

const TABLES: &str = "
    CREATE TABLE vault (
        id BLOB PRIMARY KEY NOT NULL,
        name TEXT NOT NULL UNIQUE,
        head BLOB NOT NULL,
        version INTEGER NOT NULL,
        parent BLOB,
        parent_name TEXT,
        parent_root BLOB,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE current (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        vault BLOB REFERENCES vault (id) ON DELETE SET NULL
    );
    CREATE TABLE version (
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        root BLOB NOT NULL,
        principal TEXT NOT NULL,
        exec BLOB,
        cause TEXT NOT NULL,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        PRIMARY KEY (vault, number)
    ) WITHOUT ROWID;
    CREATE TABLE checkpoint (
        made INTEGER PRIMARY KEY,
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        root BLOB NOT NULL,
        origin TEXT NOT NULL,
        principal TEXT NOT NULL,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        UNIQUE (vault, name)
    );
    CREATE TABLE journal (
        seq INTEGER PRIMARY KEY,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        vault BLOB,
        exec BLOB,
        principal TEXT NOT NULL,
        operation TEXT NOT NULL,
        details TEXT NOT NULL,
        prev BLOB NOT NULL,
        hash BLOB NOT NULL
    );
    CREATE INDEX journal_vault ON journal (vault, seq);
    CREATE INDEX journal_exec ON journal (exec, seq) WHERE exec IS NOT NULL;
    CREATE TABLE journal_head (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        seq INTEGER NOT NULL,
        hash BLOB NOT NULL
    );
    INSERT INTO journal_head (one, seq, hash) VALUES (1, 0, zeroblob(32));
";

/// A deleted vault keeps its row under a name that no vault can have, and its own one beside it.
const DELETED_AND_QUOTA: &str = "
    ALTER TABLE vault ADD COLUMN deleted_name TEXT;
    ALTER TABLE vault ADD COLUMN deleted_secs INTEGER;
    ALTER TABLE vault ADD COLUMN deleted_nanos INTEGER;
    ALTER TABLE vault ADD COLUMN max_bytes INTEGER;
    ALTER TABLE vault ADD COLUMN max_files INTEGER;
    ALTER TABLE vault ADD COLUMN max_file_bytes INTEGER;
    CREATE INDEX vault_parent ON vault (parent) WHERE parent IS NOT NULL;
";

const IMPORTS: &str = "
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

const SETTINGS: &str = "
    CREATE TABLE setting (
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (vault, key)
    ) WITHOUT ROWID;
";

const POLICIES: &str = "
    CREATE TABLE policy (
        vault BLOB PRIMARY KEY NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        text TEXT NOT NULL
    ) WITHOUT ROWID;
";

const APPROVALS: &str = "
    CREATE TABLE approval (
        id BLOB PRIMARY KEY NOT NULL,
        vault BLOB NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
        exec BLOB NOT NULL,
        base BLOB NOT NULL,
        version INTEGER NOT NULL,
        binding BLOB NOT NULL,
        request TEXT NOT NULL,
        state TEXT NOT NULL,
        secs INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        expires INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX approval_vault ON approval (vault, state);
    CREATE TABLE speculation (
        approval BLOB PRIMARY KEY NOT NULL REFERENCES approval (id) ON DELETE CASCADE,
        vault BLOB NOT NULL,
        root BLOB NOT NULL,
        outcome TEXT NOT NULL,
        stdout BLOB NOT NULL,
        stderr BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE approver (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        passphrase TEXT NOT NULL
    );
";

/// Files may have holes: part lists of version 2, which an earlier program would take for damage.
const HOLES: &str = "";

/// Guesses at the passphrase since the last right one.
const ATTEMPTS: &str = "
    CREATE TABLE approver_attempts (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        count INTEGER NOT NULL,
        last INTEGER NOT NULL
    );
    INSERT INTO approver_attempts (one, count, last) VALUES (1, 0, 0);
";

/// What was made before its maker was recorded is the owner's. `current` is the owner's choice, `current_of` that
/// of others.
const MAKERS: &str = "
    ALTER TABLE vault ADD COLUMN made_by TEXT NOT NULL DEFAULT 'owner';
    CREATE TABLE current_of (
        principal TEXT PRIMARY KEY NOT NULL,
        vault BLOB REFERENCES vault (id) ON DELETE SET NULL
    ) WITHOUT ROWID;
";

/// What holds for the home: what new vaults begin with, and notes of ours.
const HOME_SETTINGS: &str = "
    CREATE TABLE home_setting (
        key TEXT PRIMARY KEY NOT NULL,
        value TEXT NOT NULL
    ) WITHOUT ROWID;
";

impl Rows<'_> {
    /// Whether the tables of vaults are those that this program knows.
    pub(crate) fn is_prepared(&self) -> Result<bool> {
        Ok(self.schema()? == VERSION)
    }

    fn schema(&self) -> Result<i64> {
        let version = |row: &Row<'_>| row.get(0);
        Ok(self
            .connection
            .query_row("PRAGMA user_version", [], version)?)
    }
}

impl Transaction<'_> {
    /// Brings the tables of vaults to the newest schema.
    pub(crate) fn prepare(&self) -> Result<()> {
        let found = self.schema()?;
        let taken = usize::try_from(found).ok();
        let steps = taken.and_then(|taken| STEPS.get(taken..));
        let steps = steps.ok_or(Error::UnknownSchema {
            found,
            known: VERSION,
        })?;
        for step in steps {
            self.connection.execute_batch(step)?;
        }
        Ok(self
            .connection
            .pragma_update(None, "user_version", VERSION)?)
    }
}
