//! Search by words: an index beside the store, made from it when first needed and kept up by
//! comparing trees. It holds no content, can be thrown away at any time, and is never the truth.

use std::path::Path;

use avfs_store::{Snippets, WordEdit, WordFile, WordRows};

use crate::{ChangeKind, Content, Entry, Error, Kind, Result, RootId, Step, Trees, VaultPath};

/// Of larger files only the name is known.
const BODY_MAX: u64 = 4 << 20;

/// The index of one vault.
pub struct WordIndex {
    rows: WordRows,
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
        let rows = WordRows::open(file)?;
        Ok(WordIndex { rows })
    }

    /// Makes an index in memory, for where no file can be made.
    pub fn in_memory() -> Result<WordIndex> {
        let rows = WordRows::in_memory()?;
        Ok(WordIndex { rows })
    }

    /// Writes a copy of the index to a file that is not there yet.
    pub fn copy_to(&self, file: &Path) -> Result<()> {
        Ok(self.rows.copy_to(file)?)
    }

    /// How many files it knows.
    pub fn files(&self) -> Result<u64> {
        Ok(self.rows.count()?)
    }

    /// Makes the index that of `head`: by the difference from what it was, or from the beginning.
    pub fn update(&mut self, trees: &Trees, head: RootId) -> Result<()> {
        let known = self.rows.root()?.map(RootId::new);
        if known == Some(head) {
            return Ok(());
        }
        let edit = self.rows.edit()?;
        match known {
            None => index_all(&edit, trees, head)?,
            Some(known) => index_changes(&edit, trees, known, head)?,
        }
        Ok(edit.finish(head.object())?)
    }

    /// The best files for `query`, which is in FTS5's language.
    pub fn search(&self, trees: &Trees, query: &str, limit: usize) -> Result<Vec<WordMatch>> {
        let found = match self.rows.search(query, limit) {
            Err(avfs_store::Error::InvalidQuery { reason }) => {
                let query = query.to_owned();
                return Err(Error::InvalidQuery { query, reason });
            }
            found => found?,
        };
        let snippets = snippets(trees, query, found.iter().map(|hit| &hit.file))?;
        let matches = found.iter().zip(snippets).map(|(hit, snippet)| {
            let path = VaultPath::from_stored(&hit.file.path).ok_or_else(|| Error::Corrupt {
                what: "a path in the word index".into(),
            })?;
            Ok(WordMatch {
                path,
                snippet,
                rank: hit.rank,
            })
        });
        matches.collect()
    }
}

fn index_all(index: &WordEdit<'_>, trees: &Trees, head: RootId) -> Result<()> {
    trees.walk::<Error>(head, &VaultPath::root(), &mut |visit| {
        add(index, trees, visit.path, visit.entry)?;
        Ok(Step::Into)
    })
}

fn index_changes(index: &WordEdit<'_>, trees: &Trees, known: RootId, head: RootId) -> Result<()> {
    for change in trees.diff(known, head)? {
        match change.kind {
            ChangeKind::Created | ChangeKind::Deleted | ChangeKind::Modified => {}
            // What it is called and what is in it are the same.
            ChangeKind::Mode | ChangeKind::Xattrs | ChangeKind::Times => continue,
            ChangeKind::Renamed { .. } => {}
        }
        index.remove(change.path.as_bytes())?;
        if let Some(entry) = &change.after {
            add(index, trees, &change.path, entry)?;
        }
    }
    Ok(())
}

fn add(index: &WordEdit<'_>, trees: &Trees, path: &VaultPath, entry: &Entry) -> Result<()> {
    let Kind::File { content, size, .. } = entry.kind else {
        return Ok(());
    };
    let (chunked, id) = match content {
        Content::Object(id) => (false, id),
        Content::Chunks(id) => (true, id),
    };
    let file = WordFile {
        path: path.as_bytes().to_vec(),
        content: id,
        chunked,
        size,
    };
    let body = body(trees, content, size)?;
    Ok(index.add(&file, &path.to_string(), &body)?)
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
fn snippets<'a>(
    trees: &Trees,
    query: &str,
    files: impl Iterator<Item = &'a WordFile>,
) -> Result<Vec<String>> {
    let mut snippets = Snippets::new()?;
    for file in files {
        let content = match file.chunked {
            true => Content::Chunks(file.content),
            false => Content::Object(file.content),
        };
        let body = body(trees, content, file.size)?;
        snippets.add(&String::from_utf8_lossy(&file.path), &body)?;
    }
    Ok(snippets.around(query)?)
}
