//! Entries of a tree made beneath a directory of the host.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use avfs_vault::{
    Content, Entry, Kind, LinkId, Meta, Piece, Readable, Time, TreeId, Trees, VaultPath,
};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;

use super::{ExportReport, FILE_MODE, missing, open_directory};
use crate::damage::{OnDamage, readable};
use crate::error::{Error, Result};
use crate::host_tree::name;
use crate::progress::Tally;
use crate::report::Skipped;

/// Creates the entries of a tree beneath a directory of the host.
pub(crate) struct HostWriter<'a> {
    trees: &'a Trees,
    host_dir: &'a Path,
    /// The first name of each hard-linked file, relative to the top.
    links: HashMap<LinkId, VaultPath>,
    pub report: ExportReport,
    tally: Tally<'a>,
    pub on_damage: OnDamage,
}

/// A directory whose content is being written. Its own metadata is set last: writing into it changes
/// its times, and its mode may forbid writing.
struct Open {
    fd: OwnedFd,
    path: VaultPath,
    meta: Meta,
    /// Entries still to be created, the next one last.
    entries: Vec<(Vec<u8>, Entry)>,
}

impl<'a> HostWriter<'a> {
    pub fn new(trees: &'a Trees, host_dir: &'a Path, tally: Tally<'a>) -> HostWriter<'a> {
        HostWriter {
            trees,
            host_dir,
            links: HashMap::new(),
            report: ExportReport::default(),
            tally,
            on_damage: OnDamage::Stop,
        }
    }

    pub fn run(mut self, fd: OwnedFd, tree: TreeId, meta: &Meta) -> Result<ExportReport> {
        let top = OwnedFd::try_clone(&fd).map_err(Error::host("open", self.host_dir))?;
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
                _ => self.make_or_miss((&top, &open.fd), &path, entry)?,
            }
        }
        Ok(self.report)
    }

    fn enter(&mut self, fd: OwnedFd, path: VaultPath, meta: Meta, tree: TreeId) -> Result<Open> {
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

    fn leave(&mut self, open: &Open) -> Result<()> {
        self.set_xattrs(&open.fd, &open.path, &open.meta)?;
        let finish = || {
            rustix::fs::fchmod(&open.fd, Mode::from_raw_mode(open.meta.mode & 0o7777))?;
            rustix::fs::futimens(&open.fd, &times(&open.meta))
        };
        finish().map_err(self.failed("finish", &open.path))
    }

    /// Creates what is no directory. A damaged file is removed again and listed, if the export is to go on.
    fn make_or_miss(
        &mut self,
        (top, dir): (&OwnedFd, &OwnedFd),
        path: &VaultPath,
        entry: Entry,
    ) -> Result<()> {
        let (link, before) = (entry.link(), (self.report.files, self.report.bytes));
        let problem = match self.make((top, dir), path, entry) {
            Err(Error::Vault(error))
                if error.is_damage() && self.on_damage == OnDamage::KeepGoing =>
            {
                error.to_string()
            }
            made => return made,
        };
        let removed = rustix::fs::unlinkat(dir, name(path), AtFlags::empty());
        removed.map_err(self.failed("remove", path))?;
        (self.report.files, self.report.bytes) = before;
        // Its other names cannot be linked to it.
        link.map(|link| self.links.remove(&link));
        self.report.missing.push(missing(path, problem));
        Ok(())
    }

    /// Creates what is no directory, in `dir`. Its `path` is relative to `top`.
    pub fn make(
        &mut self,
        (top, dir): (&OwnedFd, &OwnedFd),
        path: &VaultPath,
        entry: Entry,
    ) -> Result<()> {
        let name = name(path);
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
                self.make_file(dir, path, (*content, *size), &entry.meta)
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
        path: &VaultPath,
        (content, size): (Content, u64),
        meta: &Meta,
    ) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let private = Mode::RUSR | Mode::WUSR;
        let fd = rustix::fs::openat(dir, name(path), flags | OFlags::CLOEXEC, private);
        let file = File::from(fd.map_err(self.failed("make", path))?);
        let mut offset = 0;
        for piece in self.trees.pieces(content, size) {
            let piece = piece?;
            match &piece {
                Piece::Data(bytes) => file.write_all_at(bytes, offset),
                Piece::Hole(length) => file.set_len(offset + length),
            }
            .map_err(self.failed("write", path))?;
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

    fn set_xattrs(&mut self, fd: impl AsFd, path: &VaultPath, meta: &Meta) -> Result<()> {
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

    fn failed<E: Into<io::Error>>(
        &self,
        action: &'static str,
        path: &VaultPath,
    ) -> impl FnOnce(E) -> Error + use<E> {
        Error::host(action, self.host_path(path))
    }

    fn host_path(&self, path: &VaultPath) -> PathBuf {
        self.host_dir.join(OsStr::from_bytes(&path.as_bytes()[1..]))
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

/// Links `name` to the file that was created at `first`.
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
