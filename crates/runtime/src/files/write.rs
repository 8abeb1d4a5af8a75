//! Reading and writing files.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use avfs_vault::{
    Cause, Content, Edit, Entry, Error as VaultError, Kind, QuotaLimit, Trees, Vault, VaultPath,
};

use crate::bounds::CONTENT_MAX;
use crate::files::condition::{WriteCondition, content_tag};
use crate::files::locate::{file_content, make_parents};
use crate::files::mode::ModeChange;
use crate::files::{Parents, WriteMode, new_meta, touch_parent, touched};
use crate::gate::Verb;
use crate::live::view_writer::EditHint;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

/// Read at once of a file that is copied.
const PIECE: usize = 1 << 20;

/// Which part of a file, and of which time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The newest when left out.
    pub version: Option<u64>,
    pub offset: u64,
    /// To the end when left out.
    pub limit: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct FileContent {
    pub path: VaultPath,
    pub bytes: Vec<u8>,
    /// Of the whole file.
    pub size: u64,
    pub version: u64,
}

/// A file that was found, to be read in parts.
pub struct OpenFile {
    pub path: VaultPath,
    pub size: u64,
    /// The vault's version that it is of.
    pub version: u64,
    bytes: Bytes,
}

enum Bytes {
    Stored { trees: Trees, content: Content },
    Scratch(File),
}

impl OpenFile {
    /// `len` bytes from `offset`, fewer at the end.
    pub fn read_at(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        match &self.bytes {
            Bytes::Stored { trees, content } => Ok(trees.read(*content, offset, len)?),
            Bytes::Scratch(file) => {
                let failed = Error::io(self.path.to_string());
                let mut file = file;
                let mut bytes = Vec::new();
                let read = file
                    .seek(SeekFrom::Start(offset))
                    .and_then(|_| file.take(len as u64).read_to_end(&mut bytes));
                read.map_err(failed)?;
                Ok(bytes)
            }
        }
    }

    /// The id of its content; none in `/tmp`, where a file can change while it is read.
    pub fn tag(&self) -> Option<String> {
        match &self.bytes {
            Bytes::Stored { content, .. } => Some(content_tag(*content)),
            Bytes::Scratch(_) => None,
        }
    }

    /// All of it, piece by piece.
    pub(crate) fn reader(self) -> impl Read {
        OpenFileReader {
            file: self,
            at: 0,
            piece: Cursor::default(),
        }
    }
}

struct OpenFileReader {
    file: OpenFile,
    at: u64,
    piece: Cursor<Vec<u8>>,
}

impl Read for OpenFileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.piece.read(buffer)?;
        if size > 0 || buffer.is_empty() {
            return Ok(size);
        }
        let piece = self.file.read_at(self.at, PIECE);
        let piece = piece.map_err(io::Error::other)?;
        self.at += piece.len() as u64;
        self.piece = Cursor::new(piece);
        self.piece.read(buffer)
    }
}

#[derive(Debug, Clone)]
pub struct WriteOptions {
    pub how: WriteMode,
    pub parents: Parents,
    /// The mode afterwards; a new file has 0644 otherwise.
    pub mode: Option<ModeChange>,
    /// What must hold of the file before.
    pub only_if: WriteCondition,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            how: WriteMode::Replace,
            parents: Parents::Require,
            mode: None,
            only_if: WriteCondition::default(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Written {
    pub path: VaultPath,
    pub size: u64,
    pub version: u64,
    /// The id of the new content; none in `/tmp`.
    pub tag: Option<String>,
}

impl Session {
    /// The bytes of a file, or of a part of it; at most [`CONTENT_MAX`] of them.
    pub fn cat(
        &self,
        vault: Select,
        path: &VaultPath,
        options: &ReadOptions,
    ) -> Result<FileContent> {
        let file = self.open_file(vault, path, options.version)?;
        let limit = options.limit.unwrap_or(CONTENT_MAX).min(CONTENT_MAX);
        let length = limit.min(file.size.saturating_sub(options.offset));
        let bytes = file.read_at(options.offset, usize::try_from(length).unwrap_or(0))?;
        Ok(FileContent {
            path: file.path,
            bytes,
            size: file.size,
            version: file.version,
        })
    }

    /// Finds a file, in the newest version or in that one.
    pub fn open_file(
        &self,
        vault: Select,
        path: &VaultPath,
        version: Option<u64>,
    ) -> Result<OpenFile> {
        let vault = self.vault(&vault, Verb::Read)?;
        if let Some(scratch) = self.scratch(&vault, path)? {
            if version.is_some() {
                return Err(Error::Scratch { path: path.clone() });
            }
            let file = scratch.open_file(path)?;
            let size = file.metadata().map_err(Error::io(path.to_string()))?.len();
            return Ok(OpenFile {
                path: path.clone(),
                size,
                version: vault.version,
                bytes: Bytes::Scratch(file),
            });
        }
        self.inner.host.check_own(path)?;
        let (root, version) = match version {
            Some(number) => (self.inner.vaults.version(vault.id, number)?.root, number),
            None => {
                let vault = self.up_to_date(&vault)?;
                (vault.head, vault.version)
            }
        };
        let trees = self.inner.vaults.trees();
        let (path, entry) = trees.resolve(root, path)?;
        let (content, size) = file_content(&path, &entry)?;
        Ok(OpenFile {
            path,
            size,
            version,
            bytes: Bytes::Stored {
                trees: trees.clone(),
                content,
            },
        })
    }

    /// Writes a file. What is written to one name of a hard-linked file is written to all.
    ///
    /// What `content` yields is stored as it comes, and no further than the vault's quota can allow.
    pub fn write(
        &self,
        vault: Select,
        path: &VaultPath,
        content: &mut dyn Read,
        options: &WriteOptions,
    ) -> Result<Written> {
        let vault = self.vault(&vault, Verb::Work)?;
        let mut arriving = self.within_quota(&vault, path, content)?;
        if let Some(scratch) = self.scratch(&vault, path)? {
            if !options.only_if.is_empty() {
                return Err(Error::Scratch { path: path.clone() });
            }
            let room = self.scratch_room(&vault)?;
            let written = scratch.write(path, &mut arriving, options, &room);
            let size = arriving.judge(&vault, path, written)?;
            return Ok(Written {
                path: path.clone(),
                size,
                version: vault.version,
                tag: None,
            });
        }
        self.inner.host.check_own(path)?;
        let trees = self.inner.vaults.trees();
        let _lease = self.inner.vaults.lease();
        // Stored before the vault is held: a large file must not make others wait.
        let stored = trees.write_content(&mut arriving).map_err(Error::from);
        let (content, size) = arriving.judge(&vault, path, stored)?;
        self.change_by(vault, Cause::Write, &[path], |edit, head| {
            let path = self.real_path(head, path, options.parents)?;
            if options.parents == Parents::Make {
                make_parents(edit, &path)?;
            }
            let existing = edit.get(&path)?;
            options.only_if.check(&path, existing.as_ref())?;
            let mut hint = EditHint::Replace { path: path.clone() };
            let whole = match (&existing, options.how) {
                (Some(entry), WriteMode::Append) => {
                    let (old, old_size) = file_content(&path, entry)?;
                    if entry.link().is_none() && options.mode.is_none() {
                        let path = path.clone();
                        hint = EditHint::Append {
                            path,
                            content,
                            size,
                        };
                    }
                    let both = trees.pieces(old, old_size);
                    trees.write_pieces(both.chain(trees.pieces(content, size)))?
                }
                _ => (content, size),
            };
            put_content(edit, &path, existing, whole, options.mode.as_ref())?;
            Ok(((path, whole), Some(hint)))
        })
        .map(|((path, (content, size)), version)| Written {
            path,
            size,
            version,
            tag: Some(content_tag(content)),
        })
    }
}

impl Session {
    /// The content, cut off where the quota surely refuses it.
    fn within_quota<'a>(
        &self,
        vault: &Vault,
        path: &VaultPath,
        content: &'a mut dyn Read,
    ) -> Result<Arriving<'a>> {
        let trees = self.inner.vaults.trees();
        let mut most: Option<(QuotaLimit, u64)> = None;
        if let Some(bytes) = vault.quota.bytes {
            // A vault that is above its quota already may still shrink.
            let bytes = bytes.max(trees.root(vault.head)?.bytes());
            most = Some((QuotaLimit::Bytes, bytes));
        }
        if let Some(bytes) = vault.quota.file_bytes {
            let there = trees.resolve(vault.head, path).ok();
            let bytes = bytes.max(there.map_or(0, |(_, entry)| entry.size()));
            if most.is_none_or(|(_, most)| bytes < most) {
                most = Some((QuotaLimit::FileBytes, bytes));
            }
        }
        Ok(Arriving {
            content,
            read: 0,
            most,
        })
    }
}

/// Content that is read no further than a quota allows.
struct Arriving<'a> {
    content: &'a mut dyn Read,
    read: u64,
    most: Option<(QuotaLimit, u64)>,
}

impl Arriving<'_> {
    fn is_too_much(&self) -> bool {
        self.most.is_some_and(|(_, most)| self.read > most)
    }

    /// What came of storing it: when it was cut off, the reason is the quota.
    fn judge<T>(&self, vault: &Vault, path: &VaultPath, outcome: Result<T>) -> Result<T> {
        match self.most {
            Some((limit, most)) if self.is_too_much() => Err(VaultError::QuotaExceeded {
                vault: vault.name.clone(),
                limit,
                most,
                wanted: self.read,
                path: Some(path.clone()),
            }
            .into()),
            _ => outcome,
        }
    }
}

impl Read for Arriving<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_too_much() {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let size = self.content.read(buffer)?;
        self.read += size as u64;
        Ok(size)
    }
}

/// Gives the file at `path`, under all its names, new content; makes it when there is none.
pub(crate) fn put_content(
    edit: &mut Edit,
    path: &VaultPath,
    existing: Option<Entry>,
    (content, size): (Content, u64),
    mode: Option<&ModeChange>,
) -> Result<()> {
    let changed = |before: u32| mode.map_or(before, |mode| mode.apply(before, false));
    let Some(entry) = existing else {
        edit.put(path, Entry::file(content, size, new_meta(changed(0o644))))?;
        return touch_parent(edit, path);
    };
    file_content(path, &entry)?;
    let mut meta = touched(entry.meta.clone());
    meta.mode = changed(meta.mode);
    let link = entry.link();
    for name in edit.linked_names(path)? {
        let kind = Kind::File {
            content,
            size,
            link,
        };
        let meta = meta.clone();
        edit.put(&name, Entry { kind, meta })?;
    }
    Ok(())
}
