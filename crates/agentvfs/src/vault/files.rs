//! Files of a vault: reading and changing them.

use super::Vault;
use crate::error::{Error, ErrorKind, Result};
use crate::paths::in_vault;
use avfs_api::wire::{
    Base64, Cat, Chmod, Copied, Cp, Edit, Edited, FileBody, Linked, ListedEntry, Ln, Ls, Mkdir,
    ModeChanged, Moved, Mv, ReadContent, Rm, Stat, StatItem, Touch, Touched, Tree, TreeListing,
    Write, WriteContent, Written, to_text,
};
use std::io::{Cursor, Read};
use std::path::Path;

/// Content up to this size travels with its request; more is streamed.
const INLINE_MAX: usize = 256 << 10;

/// How a file is written.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Adds to the file instead of replacing it.
    pub append: bool,
    /// Makes missing directories above it.
    pub parents: bool,
    /// The mode afterwards, octal or symbolic: `755`, `u+x`.
    pub mode: Option<String>,
}

impl Vault {
    /// All of a file.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to(path, &mut bytes)?;
        Ok(bytes)
    }

    /// All of a file that is text; an error of kind `Invalid` if it is not UTF-8.
    pub fn read_text(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = path.as_ref();
        String::from_utf8(self.read(path)?).map_err(|error| {
            let what = format!("{} is not UTF-8", path.display());
            Error::new(ErrorKind::Invalid, what).because(error)
        })
    }

    /// Writes all of a file to `out`; gives its size. Of an answer that breaks off, a part may have been written.
    pub fn read_to(
        &self,
        path: impl AsRef<Path>,
        out: &mut (dyn std::io::Write + Send),
    ) -> Result<u64> {
        let (path, path_b64) = in_vault(path);
        let request = ReadContent {
            path,
            path_b64,
            version: None,
            offset: 0,
            limit: None,
        };
        self.face.download(self.name(), &request, out)
    }

    /// Up to 1 MiB of a file from `offset` on, with the vault's version that was read.
    pub fn read_part(
        &self,
        path: impl AsRef<Path>,
        offset: u64,
        limit: Option<u64>,
    ) -> Result<FileBody> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Cat {
            path,
            path_b64,
            version: None,
            offset,
            limit,
        })
    }

    /// All of a file as it was in an earlier version of the vault.
    pub fn read_at_version(&self, path: impl AsRef<Path>, version: u64) -> Result<Vec<u8>> {
        let (path, path_b64) = in_vault(path);
        let request = ReadContent {
            path,
            path_b64,
            version: Some(version),
            offset: 0,
            limit: None,
        };
        let mut bytes = Vec::new();
        self.face.download(self.name(), &request, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file. The directory above it must be there: see [`WriteOptions::parents`].
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<Written> {
        self.write_with(path, content, &WriteOptions::default())
    }

    /// Adds to a file.
    pub fn append(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<Written> {
        let options = WriteOptions {
            append: true,
            ..WriteOptions::default()
        };
        self.write_with(path, content, &options)
    }

    /// Writes a file with options.
    pub fn write_with(
        &self,
        path: impl AsRef<Path>,
        content: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<Written> {
        let content = content.as_ref().to_vec();
        if content.len() > INLINE_MAX {
            return self.write_from(path, Cursor::new(content), options);
        }
        let (path, path_b64) = in_vault(path);
        let (content, content_b64) = to_text(content);
        self.ask(&Write {
            path,
            path_b64,
            // The exact bytes say it all.
            content: if content_b64.is_some() {
                String::new()
            } else {
                content
            },
            content_b64,
            append: options.append,
            parents: options.parents,
            mode: options.mode.clone(),
        })
    }

    /// Writes a file of any size from a reader. If the reader fails, nothing is written.
    pub fn write_from(
        &self,
        path: impl AsRef<Path>,
        content: impl Read + Send + 'static,
        options: &WriteOptions,
    ) -> Result<Written> {
        let (path, path_b64) = in_vault(path);
        let request = WriteContent {
            path,
            path_b64,
            append: options.append,
            parents: options.parents,
            mode: options.mode.clone(),
            ..WriteContent::default()
        };
        self.face.upload(self.name(), &request, content)
    }

    /// Replaces text in a file. It must be there exactly once; else nothing is changed.
    pub fn edit(
        &self,
        path: impl AsRef<Path>,
        old: impl AsRef<[u8]>,
        new: impl AsRef<[u8]>,
    ) -> Result<Edited> {
        self.replace(path.as_ref(), old.as_ref(), new.as_ref(), false)
    }

    /// Replaces every occurrence of a text in a file.
    pub fn edit_all(
        &self,
        path: impl AsRef<Path>,
        old: impl AsRef<[u8]>,
        new: impl AsRef<[u8]>,
    ) -> Result<Edited> {
        self.replace(path.as_ref(), old.as_ref(), new.as_ref(), true)
    }

    fn replace(&self, path: &Path, old: &[u8], new: &[u8], all: bool) -> Result<Edited> {
        let (path, path_b64) = in_vault(path);
        let (old, old_b64) = to_text(old.to_vec());
        let (new, new_b64) = to_text(new.to_vec());
        self.ask(&Edit {
            path,
            path_b64,
            old,
            old_b64,
            new,
            new_b64,
            all,
        })
    }

    /// Everything in a directory, in order of the names.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<ListedEntry>> {
        Ls::new(in_vault(path)).all(|page| self.ask(page))
    }

    /// A directory and all below it, up to 10,000 entries, down to `level` levels.
    pub fn tree(&self, path: impl AsRef<Path>, level: Option<usize>) -> Result<TreeListing> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Tree {
            path,
            path_b64,
            level,
        })
    }

    /// What a path is: type, size, mode, owner, times, labels.
    pub fn stat(&self, path: impl AsRef<Path>) -> Result<StatItem> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Stat { path, path_b64 })
    }

    /// Whether there is something at a path.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a directory.
    pub fn mkdir(&self, path: impl AsRef<Path>) -> Result<()> {
        self.make_directory(path.as_ref(), false)
    }

    /// Makes a directory and those above it that are missing; one that is there is fine.
    pub fn mkdir_all(&self, path: impl AsRef<Path>) -> Result<()> {
        self.make_directory(path.as_ref(), true)
    }

    fn make_directory(&self, path: &Path, parents: bool) -> Result<()> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Mkdir {
            path,
            path_b64,
            parents,
        })?;
        Ok(())
    }

    /// Removes a file, a link or an empty directory.
    pub fn rm(&self, path: impl AsRef<Path>) -> Result<()> {
        self.remove(path.as_ref(), false).map(drop)
    }

    /// Removes whatever is at a path, with all below it. Says whether there was anything.
    pub fn rm_all(&self, path: impl AsRef<Path>) -> Result<bool> {
        self.remove(path.as_ref(), true)
    }

    fn remove(&self, path: &Path, all: bool) -> Result<bool> {
        let (path, path_b64) = in_vault(path);
        let request = Rm {
            path,
            path_b64,
            recursive: all,
            force: all,
        };
        Ok(self.ask(&request)?.removed)
    }

    /// Moves or renames something; into a directory if that is what `to` is.
    pub fn mv(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Moved> {
        let (source, source_b64) = in_vault(from);
        let (destination, destination_b64) = in_vault(to);
        self.ask(&Mv {
            source,
            source_b64,
            destination,
            destination_b64,
        })
    }

    /// Copies a file or a directory with all below it. No content is copied: the store has it once.
    pub fn cp(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied> {
        let (source, source_b64) = in_vault(from);
        let (destination, destination_b64) = in_vault(to);
        self.ask(&Cp {
            source,
            source_b64,
            destination,
            destination_b64,
            recursive: true,
        })
    }

    /// Gives a file one more name.
    pub fn hard_link(&self, file: impl AsRef<Path>, name: impl AsRef<Path>) -> Result<Linked> {
        self.link(in_vault(file), name.as_ref(), false)
    }

    /// Makes a symbolic link that holds `target`.
    pub fn symlink(&self, target: impl AsRef<Path>, name: impl AsRef<Path>) -> Result<Linked> {
        self.link(in_vault(target), name.as_ref(), true)
    }

    fn link(
        &self,
        (target, target_b64): (String, Option<Base64>),
        name: &Path,
        symbolic: bool,
    ) -> Result<Linked> {
        let (path, path_b64) = in_vault(name);
        self.ask(&Ln {
            target,
            target_b64,
            path,
            path_b64,
            symbolic,
        })
    }

    /// Changes a mode, given in octal or symbolic as in `u+x,go-w`.
    pub fn chmod(&self, path: impl AsRef<Path>, mode: impl Into<String>) -> Result<ModeChanged> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Chmod {
            path,
            path_b64,
            mode: mode.into(),
            recursive: false,
        })
    }

    /// Makes an empty file, or sets a path's times to now.
    pub fn touch(&self, path: impl AsRef<Path>) -> Result<Touched> {
        let (path, path_b64) = in_vault(path);
        self.ask(&Touch {
            path,
            path_b64,
            no_create: false,
        })
    }
}
