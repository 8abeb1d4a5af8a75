//! The word index of a vault: a database of its own, beside the store. It is derived, so nothing here is made to
//! survive a power cut: an index that is damaged is made anew.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction};

use crate::{Error, ObjectId, Result};

/// An index of another schema is thrown away and made anew.
const SCHEMA: i64 = 1;
/// How many words a snippet shows.
const SNIPPET_WORDS: i64 = 24;
/// How much more a word in the name counts than one in the text.
const NAME_WEIGHT: f64 = 4.0;

const TABLES: &str = "
    CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), root BLOB);
    INSERT INTO state (one, root) VALUES (1, NULL);
    CREATE TABLE file (
        id INTEGER PRIMARY KEY,
        path BLOB NOT NULL UNIQUE,
        content BLOB NOT NULL,
        chunked INTEGER NOT NULL,
        size INTEGER NOT NULL
    );
    CREATE VIRTUAL TABLE word USING fts5 (
        name, body, content = '', contentless_delete = 1,
        tokenize = 'porter unicode61 remove_diacritics 2'
    );
";

/// The rows of one index.
pub struct WordRows {
    connection: Connection,
}

/// A file in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordFile {
    pub path: Vec<u8>,
    pub content: ObjectId,
    /// Whether `content` is a list of chunks.
    pub chunked: bool,
    pub size: u64,
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct WordHit {
    pub file: WordFile,
    /// The smaller, the better.
    pub rank: f64,
}

/// A change of the index, which counts from `finish` on.
pub struct WordEdit<'a> {
    transaction: Transaction<'a>,
}

/// The texts of a few files, of which the parts with words that were searched for are shown.
pub struct Snippets {
    connection: Connection,
    texts: usize,
}

impl WordRows {
    /// Opens or makes the index in `file`.
    pub fn open(file: &Path) -> Result<WordRows> {
        WordRows::over(Connection::open(file)?)
    }

    /// Makes an index in memory, for where no file can be made.
    pub fn in_memory() -> Result<WordRows> {
        WordRows::over(Connection::open_in_memory()?)
    }

    fn over(connection: Connection) -> Result<WordRows> {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match version {
            SCHEMA => {}
            0 => {
                connection.execute_batch(TABLES)?;
                connection.pragma_update(None, "user_version", SCHEMA)?;
            }
            found => {
                return Err(Error::UnknownSchema {
                    found,
                    known: SCHEMA,
                });
            }
        }
        Ok(WordRows { connection })
    }

    /// Writes a copy of the index to a file that is not there yet.
    pub fn copy_to(&self, file: &Path) -> Result<()> {
        let name = file.to_string_lossy();
        self.connection.execute("VACUUM INTO ?1", [&*name])?;
        Ok(())
    }

    /// How many files it knows.
    pub fn count(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM file";
        let count: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(count as u64)
    }

    /// The root whose files it knows; none before the first `finish`.
    pub fn root(&self) -> Result<Option<ObjectId>> {
        let sql = "SELECT root FROM state";
        let root: Option<[u8; 32]> = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(root.map(ObjectId::from_bytes))
    }

    pub fn edit(&mut self) -> Result<WordEdit<'_>> {
        let transaction = self.connection.transaction()?;
        Ok(WordEdit { transaction })
    }

    /// The best files for `query`, which is in FTS5's language. One that is not is `InvalidQuery`.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<WordHit>> {
        let sql = "SELECT file.*, bm25(word, ?3, 1.0) AS rank
            FROM word JOIN file ON file.id = word.rowid
            WHERE word MATCH ?1 ORDER BY rank, file.path LIMIT ?2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map((query, limit, NAME_WEIGHT), |row| {
            Ok(WordHit {
                file: file_row(row)?,
                rank: row.get("rank")?,
            })
        });
        rows.and_then(|rows| rows.collect::<rusqlite::Result<_>>())
            .map_err(refused)
    }
}

impl WordEdit<'_> {
    /// Adds a file that is not in the index, with the text by which it is found.
    pub fn add(&self, file: &WordFile, name: &str, body: &str) -> Result<()> {
        let sql = "INSERT INTO file (path, content, chunked, size) VALUES (?1, ?2, ?3, ?4)";
        let size = i64::try_from(file.size).unwrap_or(i64::MAX);
        let values = (&file.path, file.content.as_bytes(), file.chunked, size);
        self.transaction.prepare_cached(sql)?.execute(values)?;
        let row = self.transaction.last_insert_rowid();
        let sql = "INSERT INTO word (rowid, name, body) VALUES (?1, ?2, ?3)";
        let mut insert = self.transaction.prepare_cached(sql)?;
        insert.execute((row, name, body))?;
        Ok(())
    }

    /// Removes a file; one that is not there is as good.
    pub fn remove(&self, path: &[u8]) -> Result<()> {
        let sql = "SELECT id FROM file WHERE path = ?1";
        let mut select = self.transaction.prepare_cached(sql)?;
        let row: Option<i64> = select.query_row([path], |row| row.get(0)).optional()?;
        let Some(row) = row else {
            return Ok(());
        };
        for sql in [
            "DELETE FROM file WHERE id = ?1",
            "DELETE FROM word WHERE rowid = ?1",
        ] {
            self.transaction.prepare_cached(sql)?.execute([row])?;
        }
        Ok(())
    }

    /// The index is that of `root` from now on.
    pub fn finish(self, root: ObjectId) -> Result<()> {
        let sql = "UPDATE state SET root = ?1";
        self.transaction.execute(sql, [root.as_bytes()])?;
        Ok(self.transaction.commit()?)
    }
}

impl Snippets {
    pub fn new() -> Result<Snippets> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE VIRTUAL TABLE word USING fts5 (
                name, body, tokenize = 'porter unicode61 remove_diacritics 2')",
        )?;
        Ok(Snippets {
            connection,
            texts: 0,
        })
    }

    /// Adds the next text.
    pub fn add(&mut self, name: &str, body: &str) -> Result<()> {
        let sql = "INSERT INTO word (rowid, name, body) VALUES (?1, ?2, ?3)";
        let mut insert = self.connection.prepare_cached(sql)?;
        insert.execute((self.texts as i64, name, body))?;
        self.texts += 1;
        Ok(())
    }

    /// For each text, in the order in which they were added, what is around the words of `query`, which are each
    /// between `>>>>` and `<<<<`. Empty where there are none.
    pub fn around(&self, query: &str) -> Result<Vec<String>> {
        let sql = "SELECT rowid, snippet(word, -1, '>>>>', '<<<<', '…', ?2)
            FROM word WHERE word MATCH ?1";
        let mut select = self.connection.prepare(sql)?;
        let mut snippets = vec![String::new(); self.texts];
        let mut rows = select.query((query, SNIPPET_WORDS))?;
        while let Some(row) = rows.next()? {
            let at = row.get::<_, i64>(0)? as usize;
            if let Some(place) = snippets.get_mut(at) {
                *place = row.get(1)?;
            }
        }
        Ok(snippets)
    }
}

fn file_row(row: &Row<'_>) -> rusqlite::Result<WordFile> {
    Ok(WordFile {
        path: row.get("path")?,
        content: ObjectId::from_bytes(row.get("content")?),
        chunked: row.get("chunked")?,
        size: row.get::<_, i64>("size")? as u64,
    })
}

fn refused(error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::SqliteFailure(failure, Some(reason))
            if failure.code == ErrorCode::Unknown =>
        {
            Error::InvalidQuery { reason }
        }
        error => error.into(),
    }
}
