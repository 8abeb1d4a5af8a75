//! Search by words: one index per vault, beside the store.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use avfs_vault::{Vault, VaultId, WordIndex, WordMatch as Match};

use crate::gate::Verb;
use crate::runtime::{Select, lock};
use crate::session::Session;
use crate::{Error, Result};

/// Vaults up to this size are searched also where there is no room for an index.
const IN_MEMORY_MAX: u64 = 64 << 20;

pub type WordHit = Match;

#[derive(Debug)]
pub struct WordHits {
    /// The best first.
    pub hits: Vec<WordHit>,
    /// How many files were looked through.
    pub files: u64,
    pub version: u64,
}

/// The indexes of a home, each used by one at a time.
pub(crate) struct Indexes {
    directory: PathBuf,
    locks: Mutex<HashMap<VaultId, Arc<Mutex<()>>>>,
}

impl Indexes {
    pub fn new(home: &Path) -> Indexes {
        Indexes {
            directory: home.join("search"),
            locks: Mutex::default(),
        }
    }

    /// Throws the index of a vault away.
    pub fn forget(&self, vault: VaultId) {
        let index_lock = self.lock_of(vault);
        let _held = lock(&index_lock);
        remove(&self.file(vault));
        lock(&self.locks).remove(&vault);
    }

    fn file(&self, vault: VaultId) -> PathBuf {
        self.directory.join(format!("{vault}.db"))
    }

    fn lock_of(&self, vault: VaultId) -> Arc<Mutex<()>> {
        let mut locks = lock(&self.locks);
        locks.entry(vault).or_default().clone()
    }

    /// The index of a vault; a fork's begins as a copy of the one it was forked from.
    fn open(&self, vault: &Vault) -> Result<WordIndex> {
        let failed = Error::io(format!("making {}", self.directory.display()));
        std::fs::create_dir_all(&self.directory).map_err(failed)?;
        let file = self.file(vault.id);
        let parent = vault.parent.as_ref().map(|parent| parent.vault);
        if let Some(parent) = parent.filter(|_| !file.exists())
            && self.file(parent).exists()
        {
            let index_lock = self.lock_of(parent);
            let _held = lock(&index_lock);
            let copied = WordIndex::open(&self.file(parent)).and_then(|it| it.copy_to(&file));
            if copied.is_err() {
                // An index can always be made from the beginning.
                remove(&file);
            }
        }
        Ok(WordIndex::open(&file)?)
    }
}

impl Session {
    /// The files that fit the words best. The index is made when first needed.
    pub fn search(
        &self,
        vault: Select,
        query: &str,
        limit: usize,
        rebuild: bool,
    ) -> Result<WordHits> {
        let query = to_fts(query)?;
        let vault = self.up_to_date(&self.vault(&vault, Verb::Read)?)?;
        let indexes = &self.inner.indexes;
        let index_lock = indexes.lock_of(vault.id);
        let _held = lock(&index_lock);
        let file = indexes.file(vault.id);
        if !file.exists() {
            self.remove_orphans();
        }
        if rebuild {
            remove(&file);
        }
        match self.search_index(&vault, &query, limit) {
            // Damaged, of another schema, or of a state that is gone: made anew, once.
            Err(error)
                if !matches!(error, Error::Vault(avfs_vault::Error::InvalidQuery { .. })) =>
            {
                remove(&file);
                self.search_index(&vault, &query, limit)
            }
            searched => searched,
        }
        .or_else(|error| {
            let bytes = self.inner.vaults.trees().root(vault.head)?.bytes();
            match self.is_without_room(&error) && bytes <= IN_MEMORY_MAX {
                true => self.search_in(WordIndex::in_memory()?, &vault, &query, limit),
                false => Err(error),
            }
        })
    }

    fn search_index(&self, vault: &Vault, query: &str, limit: usize) -> Result<WordHits> {
        self.search_in(self.inner.indexes.open(vault)?, vault, query, limit)
    }

    fn search_in(
        &self,
        mut index: WordIndex,
        vault: &Vault,
        query: &str,
        limit: usize,
    ) -> Result<WordHits> {
        let trees = self.inner.vaults.trees();
        index.update(trees, vault.head)?;
        Ok(WordHits {
            hits: index.search(trees, query, limit)?,
            files: index.files()?,
            version: vault.version,
        })
    }

    /// Indexes of vaults that are gone go too.
    fn remove_orphans(&self) {
        let (Ok(vaults), Ok(files)) = (
            self.inner.vaults.list(),
            std::fs::read_dir(&self.inner.indexes.directory),
        ) else {
            return;
        };
        let known: HashSet<String> = vaults.iter().map(|it| it.id.to_string()).collect();
        for file in files.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let vault = name.split('.').next().unwrap_or_default();
            if !known.contains(vault) {
                // What cannot be removed now is tried again when the next index is made.
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

fn remove(file: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        // It may never have been there.
        let _ = std::fs::remove_file(name);
    }
}

/// Words are taken as they are; who writes FTS5's language is understood.
fn to_fts(query: &str) -> Result<String> {
    if !query.contains(char::is_alphanumeric) {
        return Err(Error::Invalid {
            what: "search",
            reason: format!("there is no word in {query:?}"),
        });
    }
    let operators = ["AND", "OR", "NOT"];
    let is_language = query.contains(['"', '*', '(', ')'])
        || query
            .split_whitespace()
            .any(|word| operators.contains(&word));
    if is_language {
        return Ok(query.to_owned());
    }
    let words = query.split_whitespace();
    let words = words.filter(|word| word.contains(char::is_alphanumeric));
    let quoted: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    Ok(quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_need_no_language() {
        assert_eq!(
            to_fts("main.py foo-bar").unwrap(),
            "\"main.py\" \"foo-bar\""
        );
        assert_eq!(to_fts("a -- b").unwrap(), "\"a\" \"b\"");
        assert_eq!(to_fts("a OR b").unwrap(), "a OR b");
        assert_eq!(to_fts("\"a b\" c*").unwrap(), "\"a b\" c*");
        assert!(to_fts(" -- ").is_err());
    }
}
