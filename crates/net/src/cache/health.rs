//! What is kept, looked at from outside: a daemon may be using it meanwhile, so nothing is removed.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::key::Key;
use super::shelf::{HEAD, Shelf};
use super::{CachePlace, CacheUsage};

/// What group and others may do: nothing.
const OTHERS: u32 = 0o077;

/// How what is kept looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheHealth {
    pub usage: CacheUsage,
    /// Answers whose head cannot be read, or whose body is not there or has another length. Bodies are not read.
    pub damaged: u64,
    /// The directory and files in it that are another user's, or that others may open.
    pub exposed: Vec<PathBuf>,
}

impl CachePlace {
    /// Looks at what is kept; none if nothing ever was. Blocks.
    pub fn look(&self) -> io::Result<Option<CacheHealth>> {
        let found = match fs::symlink_metadata(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        if !found.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        let mut health = CacheHealth::default();
        health.usage.max_bytes = self.max_bytes;
        health.note(&self.directory, &found);
        let shelf = Shelf::new(self.clone());
        for item in fs::read_dir(&self.directory)? {
            let item = item?;
            let metadata = match item.metadata() {
                // Removed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            health.note(&item.path(), &metadata);
            let name = item.file_name().to_string_lossy().into_owned();
            if let Some(key) = name.strip_suffix(HEAD).and_then(Key::parse) {
                health.count(&shelf, &key);
            }
        }
        Ok(Some(health))
    }

    /// Takes the directory and what is in it away from other users; gives how many could not be. Blocks.
    pub fn close(&self, exposed: &[PathBuf]) -> usize {
        let close = |path: &&PathBuf| {
            let is_dir = **path == self.directory;
            let mode = if is_dir { 0o700 } else { 0o600 };
            fs::set_permissions(path, Permissions::from_mode(mode)).is_err()
        };
        exposed.iter().filter(close).count()
    }
}

impl CacheHealth {
    fn note(&mut self, path: &Path, metadata: &Metadata) {
        let own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !own || metadata.mode() & OTHERS != 0 {
            self.exposed.push(path.to_owned());
        }
    }

    /// Looks twice before it calls an answer damaged: it may have been replaced between its head and its body.
    fn count(&mut self, shelf: &Shelf, key: &Key) {
        for _ in 0..2 {
            match shelf.looks_whole(key) {
                Ok(bytes) => {
                    self.usage.answers += 1;
                    self.usage.bytes += bytes;
                    return;
                }
                Err(error) if error.kind() == ErrorKind::NotFound && !shelf.has_head(key) => return,
                Err(_) => {}
            }
        }
        self.damaged += 1;
    }
}
