//! A directory of a vault copied to the host.
//!
//! Everything is made through descriptors, so that nobody can redirect a write by swapping a
//! directory for a symlink meanwhile.

mod archive;
mod merge;
mod sparse;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use avfs_vault::{
    Content, Entry, Kind, LinkId, Meta, Piece, Readable, RootId, Time, TreeId, Trees, VaultPath,
};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, Timespec, Timestamps, XattrFlags,
};
use rustix::io::Errno;

pub(crate) use archive::{archive_to_file, write_archive};
pub(crate) use merge::merge;

use crate::aside::{Aside, AsideKind};
use crate::autorun::RunsByItself;
use crate::progress::{Tally, Watcher};
use crate::{Skipped, TransferError};

const PIECE: usize = 1 << 20;
/// A vault's file becomes the caller's own: it must not become a way to act as the caller.
pub(crate) const FILE_MODE: u32 = 0o1777;

#[derive(Debug, Clone, Default)]
pub struct ExportReport {
    /// Names that are no directories.
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
    /// Whose extended attributes the host's filesystem did not take.
    pub skipped: Vec<Skipped>,
    /// What of it tools of the host run by themselves.
    pub runs_by_itself: Vec<RunsByItself>,
    /// What is damaged and therefore not there, each with the reason; of a directory, entries of it.
    pub missing: Vec<Skipped>,
}

/// What becomes of an export when something is damaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// It fails, and nothing is made.
    #[default]
    Stop,
    /// It goes on with the rest, and says what is missing.
    KeepGoing,
}

/// Where an export goes.
#[derive(Debug, Clone, Copy)]
pub struct ExportTo<'a> {
    pub host_dir: &'a Path,
    pub standing: Standing,
    pub on_damage: OnDamage,
}

/// What may stand where an export goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing, or an empty directory.
    Nothing,
    /// Anything: files are replaced, directories merged, the rest stays.
    Replaced,
}

/// Copies the directory at `path` to `to`, where nothing or what it says may be. Modes (without
/// setuid and setgid), modification times, symlinks, hard links and extended attributes are
/// kept; everything belongs to the caller. What is made beside it meanwhile is noted among `notes`.
pub fn export_directory(
    trees: &Trees,
    root: RootId,
    path: &VaultPath,
    to: ExportTo<'_>,
    notes: &Path,
    watcher: &dyn Watcher,
) -> Result<ExportReport, TransferError> {
    let host_dir = to.host_dir;
    let standing = match check_target(host_dir) {
        Err(TransferError::NotEmpty { .. }) if to.standing == Standing::Replaced => to.standing,
        checked => checked.map(|()| Standing::Nothing)?,
    };
    let beside = host_dir.parent().unwrap_or(Path::new("/"));
    let from = (root, path, to.on_damage);
    let (aside, report) = fill_aside(trees, from, beside, notes, watcher)?;
    match standing {
        Standing::Nothing => take_place_of(&aside, host_dir)?,
        Standing::Replaced => {
            aside.merges_into(host_dir)?;
            merge(&aside.path, host_dir)?;
        }
    }
    Ok(report)
}

/// Copies the directory at `path` to a new name in a directory of the host that is open: where `dir` leads by now does
/// not matter.
pub fn export_new(
    trees: &Trees,
    root: RootId,
    path: &VaultPath,
    (dir, fd, name): (&Path, &OwnedFd, &OsStr),
    notes: &Path,
    watcher: &dyn Watcher,
) -> Result<ExportReport, TransferError> {
    let from = (root, path, OnDamage::Stop);
    let (aside, report) = fill_aside(trees, from, dir, notes, watcher)?;
    let flags = RenameFlags::NOREPLACE;
    let renamed = rustix::fs::renameat_with(fd, &*aside.name, fd, name, flags);
    renamed.map_err(|errno| match errno {
        Errno::EXIST => TransferError::Exists { path: name.into() },
        errno => TransferError::host("make", name)(errno),
    })?;
    Ok(report)
}

/// Copies the directory at `path` to a directory of its own in `beside`: what is half done shall not stand where the
/// whole is expected.
fn fill_aside(
    trees: &Trees,
    (root, path, on_damage): (RootId, &VaultPath, OnDamage),
    beside: &Path,
    notes: &Path,
    watcher: &dyn Watcher,
) -> Result<(Aside, ExportReport), TransferError> {
    let (path, entry) = trees.resolve(root, path)?;
    let Kind::Directory { tree, files, bytes } = entry.kind else {
        return Err(avfs_vault::Error::NotADirectory { path }.into());
    };
    let aside = Aside::make(notes, beside, AsideKind::Directory)?;
    let top = open_directory(&aside.fd, ".", OFlags::NOFOLLOW);
    let tally = Tally::new(watcher, (Some(files), Some(bytes)));
    let export = Export {
        on_damage,
        ..Export::new(trees, &aside.path, tally)
    };
    let top = top.map_err(TransferError::host("open", &aside.path))?;
    let report = export.run(top, tree, &entry.meta)?;
    Ok((aside, report))
}

/// A directory can be renamed over an empty one.
fn take_place_of(aside: &Aside, host_dir: &Path) -> Result<(), TransferError> {
    let renamed = rustix::fs::rename(&aside.path, host_dir);
    renamed.map_err(|errno| match errno {
        Errno::NOTEMPTY | Errno::EXIST => TransferError::NotEmpty {
            path: host_dir.to_owned(),
        },
        errno => TransferError::host("make", host_dir)(errno),
    })
}

/// It must not be there, or be an empty directory.
fn check_target(host_dir: &Path) -> Result<(), TransferError> {
    let top = match open_directory(CWD, host_dir, OFlags::empty()) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(TransferError::host("open", host_dir)(errno)),
    };
    let mut space = Vec::with_capacity(8 << 10);
    let mut entries = rustix::fs::RawDir::new(&top, space.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(TransferError::host("list", host_dir))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Err(TransferError::NotEmpty {
                path: host_dir.to_owned(),
            });
        }
    }
    Ok(())
}

fn open_directory(
    at: impl AsFd,
    name: impl rustix::path::Arg,
    more: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Makes what a tree says, beneath a directory of the host.
pub(crate) struct Export<'a> {
    trees: &'a Trees,
    host_dir: &'a Path,
    /// The first name of each hard-linked file, relative to the top.
    links: HashMap<LinkId, VaultPath>,
    pub report: ExportReport,
    tally: Tally<'a>,
    on_damage: OnDamage,
}

/// A directory whose content is being written. Its own metadata comes last: writing into it moves
/// its times, and its mode may forbid writing.
struct Open {
    fd: OwnedFd,
    path: VaultPath,
    meta: Meta,
    /// What is still to be made in it, the next at the end.
    entries: Vec<(Vec<u8>, Entry)>,
}

impl<'a> Export<'a> {
    pub fn new(trees: &'a Trees, host_dir: &'a Path, tally: Tally<'a>) -> Export<'a> {
        Export {
            trees,
            host_dir,
            links: HashMap::new(),
            report: ExportReport::default(),
            tally,
            on_damage: OnDamage::Stop,
        }
    }

    fn run(
        mut self,
        fd: OwnedFd,
        tree: TreeId,
        meta: &Meta,
    ) -> Result<ExportReport, TransferError> {
        let top = OwnedFd::try_clone(&fd).map_err(|source| TransferError::Host {
            action: "open",
            path: self.host_dir.to_owned(),
            source,
        })?;
        let mut stack = vec![self.enter(fd, VaultPath::root(), meta.clone(), tree)?];
        while let Some(open) = stack.last_mut() {
            let Some((name, entry)) = open.entries.pop() else {
                self.leave(open)?;
                stack.pop();
                continue;
            };
            let path = open.path.join(&name)?;
            match entry.kind {
                Kind::Directory { tree, .. } => {
                    let fd = make_directory(&open.fd, &name).map_err(self.failed("make", &path))?;
                    self.report.directories += 1;
                    let below = self.enter(fd, path, entry.meta, tree)?;
                    stack.push(below);
                }
                _ => self.make_or_miss(&top, &open.fd, &name, &path, entry)?,
            }
        }
        Ok(self.report)
    }

    fn enter(
        &mut self,
        fd: OwnedFd,
        path: VaultPath,
        meta: Meta,
        tree: TreeId,
    ) -> Result<Open, TransferError> {
        let Readable {
            mut entries,
            problems,
        } = readable(self.trees, tree, self.on_damage)?;
        let missing = problems.into_iter().map(|problem| missing(&path, problem));
        self.report.missing.extend(missing);
        entries.reverse();
        Ok(Open {
            fd,
            path,
            meta,
            entries,
        })
    }

    fn leave(&mut self, open: &Open) -> Result<(), TransferError> {
        self.set_xattrs(&open.fd, &open.path, &open.meta)?;
        let finish = || {
            rustix::fs::fchmod(&open.fd, Mode::from_raw_mode(open.meta.mode & 0o7777))?;
            rustix::fs::futimens(&open.fd, &times(&open.meta))
        };
        finish().map_err(self.failed("finish", &open.path))
    }

    /// Makes what is no directory; of a damaged file that may be missing nothing is left.
    fn make_or_miss(
        &mut self,
        top: &OwnedFd,
        dir: &OwnedFd,
        name: &[u8],
        path: &VaultPath,
        entry: Entry,
    ) -> Result<(), TransferError> {
        let (link, before) = (entry.link(), (self.report.files, self.report.bytes));
        let problem = match self.make(top, dir, name, path, entry) {
            Err(TransferError::Vault(error))
                if error.is_damage() && self.on_damage == OnDamage::KeepGoing =>
            {
                error.to_string()
            }
            made => return made,
        };
        let removed = rustix::fs::unlinkat(dir, name, AtFlags::empty());
        removed.map_err(self.failed("remove", path))?;
        (self.report.files, self.report.bytes) = before;
        // Its other names have no file to be names of, either.
        link.map(|link| self.links.remove(&link));
        self.report.missing.push(missing(path, problem));
        Ok(())
    }

    /// Makes what is no directory, as `name` in `dir`. Its `path` is counted from `top`.
    pub fn make(
        &mut self,
        top: &OwnedFd,
        dir: &OwnedFd,
        name: &[u8],
        path: &VaultPath,
        entry: Entry,
    ) -> Result<(), TransferError> {
        self.report.files += 1;
        self.tally.add(1, 0)?;
        match &entry.kind {
            Kind::File {
                content,
                size,
                link,
            } => {
                self.report.bytes = self.report.bytes.saturating_add(*size);
                let first = link.and_then(|link| self.links.get(&link));
                if let Some(first) = first {
                    return link_to(top, first, dir, name).map_err(self.failed("link", path));
                }
                self.links.extend(link.map(|link| (link, path.clone())));
                self.make_file(dir, name, path, (*content, *size), &entry.meta)
            }
            Kind::Symlink { target } => {
                let make = || {
                    rustix::fs::symlinkat(&target[..], dir, name)?;
                    let nofollow = AtFlags::SYMLINK_NOFOLLOW;
                    rustix::fs::utimensat(dir, name, &times(&entry.meta), nofollow)
                };
                make().map_err(self.failed("make", path))
            }
            Kind::Fifo => make_fifo(dir, name, &entry.meta).map_err(self.failed("make", path)),
            Kind::Directory { .. } => Ok(()),
        }
    }

    fn make_file(
        &mut self,
        dir: &OwnedFd,
        name: &[u8],
        path: &VaultPath,
        (content, size): (Content, u64),
        meta: &Meta,
    ) -> Result<(), TransferError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let private = Mode::RUSR | Mode::WUSR;
        let fd = rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, private);
        let file = File::from(fd.map_err(self.failed("make", path))?);
        let lost = |source| TransferError::Host {
            action: "write",
            path: self.host_path(path),
            source,
        };
        let mut offset = 0;
        for piece in self.trees.pieces(content, size) {
            let piece = piece?;
            match &piece {
                Piece::Data(bytes) => file.write_all_at(bytes, offset),
                Piece::Hole(length) => file.set_len(offset + length),
            }
            .map_err(lost)?;
            offset += piece.length();
            self.tally.add(0, piece.length())?;
        }
        self.set_xattrs(&file, path, meta)?;
        let finish = || {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(meta.mode & FILE_MODE))?;
            rustix::fs::futimens(&file, &times(meta))
        };
        finish().map_err(self.failed("finish", path))
    }

    fn set_xattrs(
        &mut self,
        fd: impl AsFd,
        path: &VaultPath,
        meta: &Meta,
    ) -> Result<(), TransferError> {
        for (name, value) in &meta.xattrs {
            match rustix::fs::fsetxattr(&fd, name, value, XattrFlags::empty()) {
                Ok(()) => {}
                Err(Errno::NOTSUP | Errno::PERM | Errno::NOSPC | Errno::TOOBIG) => {
                    let name = String::from_utf8_lossy(name);
                    let reason = format!("the host's filesystem refused its attribute {name}");
                    let path = path.as_bytes()[1..].to_vec();
                    self.report.skipped.push(Skipped { path, reason });
                }
                Err(errno) => return Err(self.failed("set an attribute of", path)(errno)),
            }
        }
        Ok(())
    }

    fn failed(
        &self,
        action: &'static str,
        path: &VaultPath,
    ) -> impl FnOnce(Errno) -> TransferError + use<> {
        TransferError::host(action, self.host_path(path))
    }

    fn host_path(&self, path: &VaultPath) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        self.host_dir
            .join(std::ffi::OsStr::from_bytes(&path.as_bytes()[1..]))
    }
}

/// What a directory holds; all of it, unless damage is no reason to stop.
pub(crate) fn readable(
    trees: &Trees,
    tree: TreeId,
    on_damage: OnDamage,
) -> Result<Readable, TransferError> {
    Ok(match on_damage {
        OnDamage::Stop => Readable {
            entries: trees.list(tree)?,
            problems: Vec::new(),
        },
        OnDamage::KeepGoing => trees.list_readable(tree)?,
    })
}

fn missing(path: &VaultPath, problem: String) -> Skipped {
    let path = match &path.as_bytes()[1..] {
        b"" => b".",
        relative => relative,
    };
    Skipped {
        path: path.to_vec(),
        reason: problem,
    }
}

fn make_directory(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdirat(dir, name, Mode::RWXU)?;
    open_directory(dir, name, OFlags::NOFOLLOW)
}

fn make_fifo(dir: &OwnedFd, name: &[u8], meta: &Meta) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(meta.mode & FILE_MODE);
    rustix::fs::mkfifoat(dir, name, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::chmodat(dir, name, mode, AtFlags::empty())?;
    rustix::fs::utimensat(dir, name, &times(meta), AtFlags::SYMLINK_NOFOLLOW)
}

/// One more name for the file already made at `first`.
fn link_to(top: &OwnedFd, first: &VaultPath, dir: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    let parent = first.parent().unwrap_or(VaultPath::root());
    let inside = match &parent.as_bytes()[1..] {
        b"" => b".",
        relative => relative,
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let from = rustix::fs::openat2(top, inside, flags, Mode::empty(), resolve)?;
    let first_name = first.file_name().unwrap_or_default();
    rustix::fs::linkat(&from, first_name, dir, name, AtFlags::empty())
}

fn times(meta: &Meta) -> Timestamps {
    let spec = |time: Time| Timespec {
        tv_sec: time.secs,
        tv_nsec: time.nanos.into(),
    };
    Timestamps {
        last_access: spec(meta.mtime),
        last_modification: spec(meta.mtime),
    }
}
