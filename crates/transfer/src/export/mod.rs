//! A directory of a tree copied to the host: to a directory, or to a tar archive.
//!
//! Everything is made through descriptors, so that nobody can redirect a write by swapping a
//! directory for a symlink meanwhile.

mod archive;
mod merge;
mod sparse;
mod writer;

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use avfs_vault::{Kind, Meta, RootId, TreeId, Trees, VaultPath};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

pub(crate) use merge::merge;
pub(crate) use writer::HostWriter;

use crate::aside::{Aside, AsideKind};
use crate::autorun::{self, Hooks, Outgoing, RunsByItself};
use crate::damage::OnDamage;
use crate::error::{Error, Result};
use crate::progress::{Tally, Watcher};
use crate::report::Skipped;

const PIECE: usize = 1 << 20;
/// Mode bits that an exported file keeps: no setuid and no setgid, since it belongs to the caller.
pub(crate) const FILE_MODE: u32 = 0o1777;

/// What an export made.
#[derive(Debug, Clone, Default)]
pub struct ExportReport {
    /// Names that are no directories.
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
    /// Files whose extended attributes the host's filesystem refused.
    pub skipped: Vec<Skipped>,
    /// Files that tools of the host run without being asked to.
    pub runs_by_itself: Vec<RunsByItself>,
    /// What was left out because it is damaged, each with the reason. A directory is listed if some of its entries are.
    pub missing: Vec<Skipped>,
}

/// What may already be at the target of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing, or an empty directory.
    Nothing,
    /// Anything: files are replaced, directories merged, the rest stays.
    Replaced,
}

/// A directory of a tree that goes to the host, and on what terms.
///
/// Modes (without setuid and setgid), modification times, symlinks, hard links and extended attributes are kept;
/// everything belongs to the caller.
pub struct Exporter<'a> {
    pub trees: &'a Trees,
    pub root: RootId,
    pub path: &'a VaultPath,
    /// Whether what git runs by itself is written to a directory.
    pub hooks: Hooks,
    pub on_damage: OnDamage,
    /// Where it is noted what is made beside a target, until it is gone.
    pub notes: &'a Path,
    pub watcher: &'a dyn Watcher,
}

impl Exporter<'_> {
    /// Copies the directory to `host_dir`.
    pub fn to_directory(&self, host_dir: &Path, standing: Standing) -> Result<ExportReport> {
        let runs_by_itself = self.runs_by_itself(host_dir)?;
        autorun::check(&runs_by_itself, self.hooks)?;
        let standing = match check_target(host_dir) {
            Err(Error::NotEmpty { .. }) if standing == Standing::Replaced => standing,
            checked => checked.map(|()| Standing::Nothing)?,
        };
        let beside = host_dir.parent().unwrap_or(Path::new("/"));
        let (aside, report) = self.fill_aside(beside)?;
        match standing {
            Standing::Nothing => take_place_of(&aside, host_dir)?,
            Standing::Replaced => {
                aside.merges_into(host_dir)?;
                merge(&aside.path, host_dir)?;
            }
        }
        Ok(ExportReport {
            runs_by_itself,
            ..report
        })
    }

    /// Copies the directory to a new name in a directory of the host that is open. If `dir` leads elsewhere by now, the
    /// rename fails.
    pub(crate) fn to_new_name(
        &self,
        (dir, fd, name): (&Path, &OwnedFd, &OsStr),
    ) -> Result<ExportReport> {
        let runs_by_itself = self.runs_by_itself(&dir.join(name))?;
        autorun::check(&runs_by_itself, self.hooks)?;
        let (aside, report) = self.fill_aside(dir)?;
        let flags = RenameFlags::NOREPLACE;
        let renamed = rustix::fs::renameat_with(fd, &*aside.name, fd, name, flags);
        renamed.map_err(|errno| match errno {
            Errno::EXIST => Error::Exists { path: name.into() },
            errno => Error::host("make", name)(errno),
        })?;
        Ok(ExportReport {
            runs_by_itself,
            ..report
        })
    }

    /// The directory's tree and metadata, and a tally that knows the totals.
    fn top(&self) -> Result<(TreeId, Meta, Tally<'_>)> {
        let (path, entry) = self.trees.resolve(self.root, self.path)?;
        match entry.kind {
            Kind::Directory { tree, files, bytes } => {
                let tally = Tally::new(self.watcher, (Some(files), Some(bytes)));
                Ok((tree, entry.meta, tally))
            }
            _ => Err(avfs_vault::Error::NotADirectory { path }.into()),
        }
    }

    /// Files of the directory that tools would run if it were at `host_dir`.
    fn runs_by_itself(&self, host_dir: &Path) -> Result<Vec<RunsByItself>> {
        let (at, _) = self.trees.resolve(self.root, self.path)?;
        let outgoing = Outgoing {
            trees: self.trees,
            root: self.root,
            at: &at,
            host_dir,
            on_damage: self.on_damage,
        };
        outgoing.all()
    }

    /// Copies the directory to a temporary one in `beside`, so that nothing half done is ever at the target.
    fn fill_aside(&self, beside: &Path) -> Result<(Aside, ExportReport)> {
        let (tree, meta, tally) = self.top()?;
        let aside = Aside::make(self.notes, beside, AsideKind::Directory)?;
        let top = open_directory(&aside.fd, ".", OFlags::NOFOLLOW);
        let mut writer = HostWriter::new(self.trees, &aside.path, tally);
        writer.on_damage = self.on_damage;
        let top = top.map_err(Error::host("open", &*aside.path))?;
        let report = writer.run(top, tree, &meta)?;
        Ok((aside, report))
    }
}

/// Renames the finished directory to its target, which may be an empty directory.
fn take_place_of(aside: &Aside, host_dir: &Path) -> Result<()> {
    let renamed = rustix::fs::rename(&aside.path, host_dir);
    renamed.map_err(|errno| match errno {
        Errno::NOTEMPTY | Errno::EXIST => Error::NotEmpty {
            path: host_dir.to_owned(),
        },
        errno => Error::host("make", host_dir)(errno),
    })
}

/// The target must not exist, or be an empty directory.
fn check_target(host_dir: &Path) -> Result<()> {
    let top = match open_directory(CWD, host_dir, OFlags::empty()) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(Error::host("open", host_dir)(errno)),
    };
    let mut space = Vec::with_capacity(8 << 10);
    let mut entries = rustix::fs::RawDir::new(&top, space.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(Error::host("list", host_dir))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Err(Error::NotEmpty {
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
