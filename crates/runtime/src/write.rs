//! Reading and writing files.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use avfs_vault::{Cause, Content, Edit, Entry, Kind, VaultPath};
use rustix::fs::OFlags;

use crate::files::{Parents, WriteMode, new_meta, touch_parent, touched};
use crate::gate::Verb;
use crate::locate::{file_content, make_parents};
use crate::mode::ModeChange;
use crate::runtime::Select;
use crate::session::Session;
use crate::through::Gesture;
use crate::{Error, Result};

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

/// Where new content comes from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    Bytes(&'a [u8]),
    HostFile(&'a Path),
}

#[derive(Debug, Clone)]
pub struct WriteOptions {
    pub how: WriteMode,
    pub parents: Parents,
    /// The mode afterwards; a new file has 0644 otherwise.
    pub mode: Option<ModeChange>,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            how: WriteMode::Replace,
            parents: Parents::Require,
            mode: None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Written {
    pub path: VaultPath,
    pub size: u64,
    pub version: u64,
}

impl Session {
    /// The bytes of a file, or of a part of it.
    pub fn cat(
        &self,
        vault: Select,
        path: &VaultPath,
        options: &ReadOptions,
    ) -> Result<FileContent> {
        let vault = self.vault(&vault, Verb::Read)?;
        let limit = options.limit.unwrap_or(u64::MAX);
        if let Some(scratch) = self.scratch(&vault, path)? {
            if options.version.is_some() {
                return Err(Error::Scratch { path: path.clone() });
            }
            let (bytes, size) = scratch.read(path, options.offset, limit)?;
            return Ok(FileContent {
                path: path.clone(),
                bytes,
                size,
                version: vault.version,
            });
        }
        self.inner.host.check_own(path)?;
        let (root, version) = match options.version {
            Some(number) => (self.inner.vaults.version(vault.id, number)?.root, number),
            None => {
                let vault = self.up_to_date(&vault)?;
                (vault.head, vault.version)
            }
        };
        let trees = self.inner.vaults.trees();
        let (path, entry) = trees.resolve(root, path)?;
        let (content, size) = file_content(&path, &entry)?;
        let length = limit.min(size.saturating_sub(options.offset));
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = trees.read(content, options.offset, length)?;
        Ok(FileContent {
            path,
            bytes,
            size,
            version,
        })
    }

    /// Writes a file. What is written to one name of a hard-linked file is written to all.
    pub fn write(
        &self,
        vault: Select,
        path: &VaultPath,
        source: Source<'_>,
        options: &WriteOptions,
    ) -> Result<Written> {
        let vault = self.vault(&vault, Verb::Work)?;
        let mut reader = source.open()?;
        if let Some(scratch) = self.scratch(&vault, path)? {
            let size = scratch.write(path, &mut *reader, options, &self.scratch_room(&vault)?)?;
            return Ok(Written {
                path: path.clone(),
                size,
                version: vault.version,
            });
        }
        self.inner.host.check_own(path)?;
        let trees = self.inner.vaults.trees();
        let _lease = self.inner.vaults.lease();
        // Stored before the vault is held: a large file must not make others wait.
        let (content, size) = trees.write_content(&mut *reader)?;
        self.change_by(vault, Cause::Write, &[path], |edit, head| {
            let path = self.real_path(head, path, options.parents)?;
            if options.parents == Parents::Make {
                make_parents(edit, &path)?;
            }
            let existing = edit.get(&path)?;
            let mut gesture = Gesture::Replace { path: path.clone() };
            let whole = match (&existing, options.how) {
                (Some(entry), WriteMode::Append) => {
                    let (old, old_size) = file_content(&path, entry)?;
                    if entry.link().is_none() && options.mode.is_none() {
                        let path = path.clone();
                        gesture = Gesture::Append {
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
            Ok(((path, whole.1), Some(gesture)))
        })
        .map(|((path, size), version)| Written {
            path,
            size,
            version,
        })
    }
}

impl Source<'_> {
    fn open(&self) -> Result<Box<dyn Read + '_>> {
        let path = match self {
            Source::Bytes(bytes) => return Ok(Box::new(*bytes)),
            Source::HostFile(path) => *path,
        };
        let failed = || Error::io(path.display().to_string());
        // A pipe without a writer must not hold us up.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options()
            .read(true)
            .custom_flags(flags)
            .open(path)
            .map_err(failed())?;
        if !file.metadata().map_err(failed())?.is_file() {
            return Err(Error::Invalid {
                what: "host file",
                reason: format!("{} is not a regular file", path.display()),
            });
        }
        Ok(Box::new(file))
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
