//! Search by words: an index beside the store, made from it when first needed and kept up by
//! comparing trees. It holds no content, can be thrown away at any time, and is never the truth.

use std::path::Path;

use avfs_store::ObjectId;
use avfs_store::rusqlite::{self, Connection, ErrorCode, OptionalExtension, Row, Transaction};

use crate::{ChangeKind, Content, Entry, Error, Kind, Result, RootId, Step, Trees, VaultPath};

/// Another one is thrown away and made anew.
const SCHEMA: i64 = 1;
/// Of larger files only the name is known.
const BODY_MAX: u64 = 4 << 20;
/// How many words a snippet shows.
const SNIPPET_WORDS: i64 = 24;
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

/// The index of one vault.
pub struct WordIndex {
    connection: Connection,
}

/// A file that was found, the best first.
#[derive(Clone, Debug, PartialEq)]
pub struct WordMatch {
    pub path: VaultPath,
    /// The text around the words, each between `>>>>` and `<<<<`.
    pub snippet: String,
    /// The smaller, the better.
    pub rank: f64,
}

impl WordIndex {
    /// Opens or makes the index in `file`.
    pub fn open(file: &Path) -> Result<WordIndex> {
        WordIndex::over(Connection::open(file)?)
    }

    /// Makes an index in memory, for where no file can be made.
    pub fn in_memory() -> Result<WordIndex> {
        WordIndex::over(Connection::open_in_memory()?)
    }

    fn over(connection: Connection) -> Result<WordIndex> {
        // Nothing here needs to outlive a power cut: what is damaged is made anew.
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
        Ok(WordIndex { connection })
    }

    /// Writes a copy of the index to a file that is not there yet.
    pub fn copy_to(&self, file: &Path) -> Result<()> {
        let name = file.to_string_lossy();
        self.connection.execute("VACUUM INTO ?1", [&*name])?;
        Ok(())
    }

    /// How many files it knows.
    pub fn files(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM file";
        let count: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(count as u64)
    }

    /// Makes the index that of `head`: by the difference from what it was, or from the beginning.
    pub fn update(&mut self, trees: &Trees, head: RootId) -> Result<()> {
        let sql = "SELECT root FROM state";
        let known: Option<[u8; 32]> = self.connection.query_row(sql, [], |row| row.get(0))?;
        let known = known.map(|bytes| RootId::new(ObjectId::from_bytes(bytes)));
        if known == Some(head) {
            return Ok(());
        }
        let transaction = self.connection.transaction()?;
        match known {
            None => index_all(&transaction, trees, head)?,
            Some(known) => index_changes(&transaction, trees, known, head)?,
        }
        let root = head.object();
        transaction.execute("UPDATE state SET root = ?1", [root.as_bytes()])?;
        Ok(transaction.commit()?)
    }

    /// The best files for `query`, which is in FTS5's language.
    pub fn search(&self, trees: &Trees, query: &str, limit: usize) -> Result<Vec<WordMatch>> {
        let sql = "SELECT file.*, bm25(word, ?3, 1.0) AS rank
            FROM word JOIN file ON file.id = word.rowid
            WHERE word MATCH ?1 ORDER BY rank, file.path LIMIT ?2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map((query, limit, NAME_WEIGHT), |row| {
            Ok((file_row(row)?, row.get::<_, f64>("rank")?))
        });
        let refused = |error| query_error(query, error);
        let found: Vec<(File, f64)> = rows
            .and_then(|rows| rows.collect::<rusqlite::Result<_>>())
            .map_err(refused)?;
        let files: Vec<&File> = found.iter().map(|(file, _)| file).collect();
        let snippets = snippets(trees, query, &files)?;
        let hits = found.iter().zip(snippets).map(|((file, rank), snippet)| {
            let path = VaultPath::from_stored(&file.path).ok_or_else(|| Error::Corrupt {
                what: "a path in the word index".into(),
            })?;
            Ok(WordMatch {
                path,
                snippet,
                rank: *rank,
            })
        });
        hits.collect()
    }
}

/// A file as the index knows it.
struct File {
    path: Vec<u8>,
    content: Content,
    size: u64,
}

fn file_row(row: &Row<'_>) -> rusqlite::Result<File> {
    let id = ObjectId::from_bytes(row.get("content")?);
    Ok(File {
        path: row.get("path")?,
        content: match row.get("chunked")? {
            true => Content::Chunks(id),
            false => Content::Object(id),
        },
        size: row.get::<_, i64>("size")? as u64,
    })
}

fn index_all(transaction: &Transaction<'_>, trees: &Trees, head: RootId) -> Result<()> {
    trees.walk::<Error>(head, &VaultPath::root(), &mut |visit| {
        add(transaction, trees, visit.path, visit.entry)?;
        Ok(Step::Into)
    })
}

fn index_changes(
    transaction: &Transaction<'_>,
    trees: &Trees,
    known: RootId,
    head: RootId,
) -> Result<()> {
    for change in trees.diff(known, head)? {
        match change.kind {
            ChangeKind::Created | ChangeKind::Deleted | ChangeKind::Modified => {}
            // What it is called and what is in it are the same.
            ChangeKind::Mode | ChangeKind::Xattrs | ChangeKind::Times => continue,
            ChangeKind::Renamed { .. } => {}
        }
        remove(transaction, &change.path)?;
        if let Some(entry) = &change.after {
            add(transaction, trees, &change.path, entry)?;
        }
    }
    Ok(())
}

fn add(
    transaction: &Transaction<'_>,
    trees: &Trees,
    path: &VaultPath,
    entry: &Entry,
) -> Result<()> {
    let Kind::File { content, size, .. } = entry.kind else {
        return Ok(());
    };
    let (chunked, id) = match content {
        Content::Object(id) => (false, id),
        Content::Chunks(id) => (true, id),
    };
    let insert = "INSERT INTO file (path, content, chunked, size) VALUES (?1, ?2, ?3, ?4)";
    transaction.prepare_cached(insert)?.execute((
        path.as_bytes(),
        id.as_bytes(),
        chunked,
        size as i64,
    ))?;
    let row = transaction.last_insert_rowid();
    let insert = "INSERT INTO word (rowid, name, body) VALUES (?1, ?2, ?3)";
    let body = body(trees, content, size)?;
    transaction
        .prepare_cached(insert)?
        .execute((row, path.to_string(), body))?;
    Ok(())
}

fn remove(transaction: &Transaction<'_>, path: &VaultPath) -> Result<()> {
    let select = "SELECT id FROM file WHERE path = ?1";
    let row = transaction
        .prepare_cached(select)?
        .query_row([path.as_bytes()], |row| row.get::<_, i64>(0))
        .optional()?;
    if let Some(row) = row {
        for delete in [
            "DELETE FROM file WHERE id = ?1",
            "DELETE FROM word WHERE rowid = ?1",
        ] {
            transaction.prepare_cached(delete)?.execute([row])?;
        }
    }
    Ok(())
}

/// The text of a file; nothing where it is not text.
fn body(trees: &Trees, content: Content, size: u64) -> Result<String> {
    if size > BODY_MAX {
        return Ok(String::new());
    }
    let bytes = trees.read(content, 0, size as usize)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text,
        _ => String::new(),
    })
}

/// The index holds no content, so the few files that are shown are indexed again, with theirs.
fn snippets(trees: &Trees, query: &str, files: &[&File]) -> Result<Vec<String>> {
    let shown = Connection::open_in_memory()?;
    shown.execute_batch(
        "CREATE VIRTUAL TABLE word USING fts5 (
            name, body, tokenize = 'porter unicode61 remove_diacritics 2')",
    )?;
    let mut insert = shown.prepare("INSERT INTO word (rowid, name, body) VALUES (?1, ?2, ?3)")?;
    for (row, file) in files.iter().enumerate() {
        let name = String::from_utf8_lossy(&file.path);
        let body = body(trees, file.content, file.size)?;
        insert.execute((row as i64, &*name, body))?;
    }
    let sql = "SELECT rowid, snippet(word, -1, '>>>>', '<<<<', '…', ?2)
        FROM word WHERE word MATCH ?1";
    let mut select = shown.prepare(sql)?;
    let mut snippets = vec![String::new(); files.len()];
    let mut rows = select.query((query, SNIPPET_WORDS))?;
    while let Some(row) = rows.next()? {
        let at = row.get::<_, i64>(0)? as usize;
        if let Some(place) = snippets.get_mut(at) {
            *place = row.get(1)?;
        }
    }
    Ok(snippets)
}

fn query_error(query: &str, error: rusqlite::Error) -> Error {
    match &error {
        rusqlite::Error::SqliteFailure(failure, Some(reason))
            if failure.code == ErrorCode::Unknown =>
        {
            Error::InvalidQuery {
                query: query.to_owned(),
                reason: reason.clone(),
            }
        }
        _ => error.into(),
    }
}
