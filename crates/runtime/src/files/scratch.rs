//! `/tmp`: a host directory per vault, shared by file verbs and commands, never versioned.
//!
//! What is in it was put there by commands, so every path is resolved beneath it by the kernel.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use avfs_vault::{Content, Entry, Kind, Meta, Time, TreeId, VaultPath};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_NOW,
    fchmod, fchown, fstat, futimens, mkdirat, openat, openat2, readlinkat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::common::Depth;
use crate::files::attributes::Missing;
use crate::files::mode::ModeChange;
use crate::files::write::WriteOptions;
use crate::files::{Listed, Parents, WriteMode};
use crate::live::admission::Room;
use crate::owners::{STORED_OWNER, layer_owner};
use crate::{Error, Result};

pub(crate) struct Scratch {
    directory: OwnedFd,
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Scratch {
    pub fn open(path: &Path) -> Result<Scratch> {
        let directory = openat(CWD, path, DIRECTORY, Mode::empty())
            .map_err(|errno| Error::io("opening /tmp")(errno.into()))?;
        Ok(Scratch { directory })
    }

    /// The first `most` names that sort behind `after`.
    pub fn list(&self, path: &VaultPath, after: Option<&[u8]>, most: usize) -> Result<Vec<Listed>> {
        let opened = self
            .beneath(path, OFlags::RDONLY | OFlags::NONBLOCK)
            .map_err(at(path))?;
        let stat = fstat(&opened).map_err(at(path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            let name = path.file_name().unwrap_or_default().to_vec();
            return Ok(vec![Listed {
                name,
                entry: entry_of(&stat, Vec::new()),
            }]);
        }
        let mut listed = Vec::new();
        for name in first_names(&opened, after, most).map_err(at(path))? {
            let found = statat(&opened, &name[..], AtFlags::SYMLINK_NOFOLLOW);
            let stat = match found {
                // It went while the others were looked at.
                Err(Errno::NOENT) => continue,
                found => found.map_err(at(path))?,
            };
            let target = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => readlinkat(&opened, &name[..], Vec::new())
                    .map_err(at(path))?
                    .into_bytes(),
                _ => Vec::new(),
            };
            listed.push(Listed {
                name,
                entry: entry_of(&stat, target),
            });
        }
        Ok(listed)
    }

    /// What is at `path` itself.
    pub fn stat(&self, path: &VaultPath) -> Result<Entry> {
        if relative(path) == b"." {
            let stat = fstat(&self.directory).map_err(at(path))?;
            return Ok(entry_of(&stat, Vec::new()));
        }
        let (parent, name) = self.parent(path)?;
        let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(at(path))?;
        let target = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => readlinkat(&parent, name, Vec::new())
                .map_err(at(path))?
                .into_bytes(),
            _ => Vec::new(),
        };
        Ok(entry_of(&stat, target))
    }

    /// A file, to be read.
    pub fn open_file(&self, path: &VaultPath) -> Result<File> {
        let opened = self
            .beneath(path, OFlags::RDONLY | OFlags::NONBLOCK)
            .map_err(at(path))?;
        regular(&opened, path)?;
        Ok(File::from(opened))
    }

    pub fn write(
        &self,
        path: &VaultPath,
        content: &mut dyn Read,
        options: &WriteOptions,
        room: &Room,
    ) -> Result<u64> {
        if matches!(self.beneath(path, OFlags::PATH), Err(Errno::NOENT)) {
            room.check_new_file()?;
        }
        if let (Parents::Make, Some(parent)) = (options.parents, path.parent()) {
            self.mkdir(&parent, Parents::Make)?;
        }
        let how = match options.how {
            WriteMode::Replace => OFlags::TRUNC,
            WriteMode::Append => OFlags::APPEND,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | how;
        let opened = self.beneath(path, flags).map_err(at(path))?;
        regular(&opened, path)?;
        give_away(&opened).map_err(at(path))?;
        if let Some(mode) = &options.mode {
            change_mode(&opened, mode).map_err(at(path))?;
        }
        fill(&mut File::from(opened), content, path, room)
    }

    /// The bits before and after.
    pub fn chmod(&self, path: &VaultPath, mode: &ModeChange) -> Result<(u32, u32)> {
        let opened = self
            .beneath(path, OFlags::RDONLY | OFlags::NONBLOCK)
            .map_err(at(path))?;
        change_mode(&opened, mode).map_err(at(path))
    }

    /// Whether the file is new.
    pub fn touch(&self, path: &VaultPath, missing: Missing, room: &Room) -> Result<bool> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        match self.beneath(path, OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(opened) => {
                futimens(&opened, &times).map_err(at(path))?;
                Ok(false)
            }
            Err(Errno::NOENT) if missing == Missing::Leave => Ok(false),
            Err(Errno::NOENT) => {
                let options = WriteOptions::default();
                self.write(path, &mut std::io::empty(), &options, room)?;
                Ok(true)
            }
            Err(errno) => Err(at(path)(errno)),
        }
    }

    pub fn mkdir(&self, path: &VaultPath, parents: Parents) -> Result<()> {
        if relative(path) == b"." && parents == Parents::Make {
            return Ok(());
        }
        // The deepest first. Not recursion: a path may have more levels than fit on a stack.
        let mut missing = vec![path.clone()];
        while parents == Parents::Make
            && let Some(parent) = missing.last().and_then(VaultPath::parent)
            && relative(&parent) != b"."
            && self.beneath(&parent, OFlags::PATH).is_err()
        {
            missing.push(parent);
        }
        while let Some(path) = missing.pop() {
            self.make_directory(&path, parents)?;
        }
        Ok(())
    }

    fn make_directory(&self, path: &VaultPath, parents: Parents) -> Result<()> {
        let (parent, name) = self.parent(path)?;
        match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                let made = openat(&parent, name, DIRECTORY, Mode::empty()).map_err(at(path))?;
                give_away(&made).map_err(at(path))
            }
            Err(Errno::EXIST) if parents == Parents::Make => Ok(()),
            Err(Errno::EXIST) => Err(Error::PathExists { path: path.clone() }),
            Err(errno) => Err(at(path)(errno)),
        }
    }

    pub fn remove(&self, path: &VaultPath, depth: Depth) -> Result<()> {
        let (parent, name) = self.parent(path)?;
        match unlinkat(&parent, name, AtFlags::empty()) {
            Err(Errno::ISDIR) if depth == Depth::Recursive => {
                remove_tree(&parent, name).map_err(at(path))
            }
            Err(Errno::ISDIR) => Err(avfs_vault::Error::IsADirectory { path: path.clone() }.into()),
            outcome => outcome.map_err(at(path)),
        }
    }

    /// Symbolic links are followed, but never out of the scratch directory.
    fn beneath(&self, path: &VaultPath, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mode = if flags.contains(OFlags::CREATE) {
            0o644
        } else {
            0
        };
        let flags = flags | OFlags::CLOEXEC;
        openat2(
            &self.directory,
            relative(path),
            flags,
            Mode::from_raw_mode(mode),
            resolve,
        )
    }

    fn parent<'a>(&self, path: &'a VaultPath) -> Result<(OwnedFd, &'a [u8])> {
        let (Some(parent), Some(name), false) =
            (path.parent(), path.file_name(), relative(path) == b".")
        else {
            return Err(Error::SandboxPath { path: path.clone() });
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        Ok((self.beneath(&parent, flags).map_err(at(path))?, name))
    }
}

/// The first `most` names of a directory that sort behind `after`, in order. No more are held at any time: a
/// command may have made any number.
fn first_names(
    directory: &OwnedFd,
    after: Option<&[u8]>,
    most: usize,
) -> rustix::io::Result<BTreeSet<Vec<u8>>> {
    let mut names = BTreeSet::new();
    for item in Dir::read_from(directory)? {
        let item = item?;
        let name = item.file_name().to_bytes();
        if name == b"." || name == b".." || after.is_some_and(|after| name <= after) {
            continue;
        }
        names.insert(name.to_vec());
        if names.len() > most {
            names.pop_last();
        }
    }
    Ok(names)
}

/// The path below `/tmp`.
fn relative(path: &VaultPath) -> &[u8] {
    match path.as_bytes().strip_prefix(b"/tmp/") {
        Some(below) => below,
        None => b".",
    }
}

/// However deep it is.
fn remove_tree(parent: &OwnedFd, name: &[u8]) -> rustix::io::Result<()> {
    let directory = openat(parent, name, DIRECTORY, Mode::empty())?;
    avfs_view::remove_contents(&directory)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Copies what there is room for; a file for which there is not enough is as long as before.
fn fill(file: &mut File, content: &mut dyn Read, path: &VaultPath, room: &Room) -> Result<u64> {
    let failed = || Error::io(path.to_string());
    let before = file.metadata().map_err(failed())?.len();
    let left = room.bytes_left(before);
    std::io::copy(&mut content.take(left.saturating_add(1)), file).map_err(failed())?;
    let size = file.metadata().map_err(failed())?.len();
    if size - before > left {
        file.set_len(before).map_err(failed())?;
        return Err(room.refusal(path, size));
    }
    Ok(size)
}

/// What file verbs make, commands must be able to change.
fn give_away(made: &OwnedFd) -> rustix::io::Result<()> {
    match layer_owner() {
        Some(owner) => fchown(
            made,
            Some(rustix::fs::Uid::from_raw(owner.uid)),
            Some(rustix::fs::Gid::from_raw(owner.gid)),
        ),
        None => Ok(()),
    }
}

fn change_mode(opened: &OwnedFd, mode: &ModeChange) -> rustix::io::Result<(u32, u32)> {
    let stat = fstat(opened)?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let before = stat.st_mode & 0o7777;
    let after = mode.apply(before, is_directory);
    fchmod(opened, Mode::from_raw_mode(after))?;
    Ok((before, after))
}

fn regular(opened: &OwnedFd, path: &VaultPath) -> Result<()> {
    let stat = fstat(opened).map_err(at(path))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(avfs_vault::Error::IsADirectory { path: path.clone() }.into()),
        _ => Err(avfs_vault::Error::NotAFile { path: path.clone() }.into()),
    }
}

fn entry_of(stat: &rustix::fs::Stat, target: Vec<u8>) -> Entry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Kind::Directory {
            tree: TreeId::EMPTY,
            files: 0,
            bytes: 0,
        },
        FileType::Symlink => Kind::Symlink { target },
        FileType::RegularFile => Kind::File {
            content: Content::EMPTY,
            size: stat.st_size as u64,
            link: None,
        },
        _ => Kind::Fifo,
    };
    let time = |secs: i64, nanos: u64| Time {
        secs,
        nanos: nanos as u32,
    };
    let mut meta = Meta::new(
        stat.st_mode & 0o7777,
        time(stat.st_mtime, stat.st_mtime_nsec),
    );
    meta.ctime = time(stat.st_ctime, stat.st_ctime_nsec);
    (meta.uid, meta.gid) = (STORED_OWNER.uid, STORED_OWNER.gid);
    Entry { kind, meta }
}

fn at(path: &VaultPath) -> impl FnOnce(Errno) -> Error + use<> {
    let path = path.clone();
    move |errno| match errno {
        Errno::NOENT => avfs_vault::Error::PathNotFound { path }.into(),
        Errno::NOTDIR => avfs_vault::Error::NotADirectory { path }.into(),
        Errno::LOOP => avfs_vault::Error::SymlinkLoop { path }.into(),
        errno => Error::Io {
            what: path.to_string(),
            source: errno.into(),
        },
    }
}
