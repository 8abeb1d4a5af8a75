//! One file in and out of the vault, for `avfs import` and `avfs export`. Its host path is opened here, by whoever asks.

use super::paths;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::session::Session;
use avfs_api::wire::{
    Exported, Imported, ReadContent, Stat, StatItem, TypeWord, WriteContent, Written, from_text,
    to_text,
};
use avfs_runtime::ErrorKind;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names of archives.
const ARCHIVES: [&str; 7] = [
    ".tar",
    ".tgz",
    ".tar.gz",
    ".tzst",
    ".tar.zst",
    ".taz",
    ".tar.zstd",
];
/// Where a tar archive says that it is one.
const USTAR: (usize, &[u8]) = (257, b"ustar");
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Whether the source is a file, and no archive: neither by its name nor by its first bytes. A compressed file whose
/// name says that it is compressed and no archive is taken as it is.
pub fn is_plain(source: &Path) -> Result<bool> {
    if !source.is_file() {
        return Ok(false);
    }
    let name = source.as_os_str().to_string_lossy().to_lowercase();
    if ARCHIVES.iter().any(|suffix| name.ends_with(suffix)) {
        return Ok(false);
    }
    let mut head = Vec::new();
    let opened = File::open(source);
    opened
        .and_then(|file| file.take(512).read_to_end(&mut head))
        .map_err(Error::io(format!("cannot read {}", source.display())))?;
    let is_tar = head
        .get(USTAR.0..)
        .is_some_and(|at| at.starts_with(USTAR.1));
    let is_named = name.ends_with(".gz") || name.ends_with(".zst");
    let is_compressed = head.starts_with(GZIP) || head.starts_with(ZSTD);
    Ok(!is_tar && (is_named || !is_compressed))
}

/// Writes a host file into the vault, with its permissions.
pub fn import(
    source: &Path,
    to: &OsStr,
    session: &mut Session,
    output: Output,
) -> Result<Imported> {
    let failed = || Error::io(format!("cannot read {}", source.display()));
    let file = File::open(source).map_err(failed())?;
    let mode = file.metadata().map_err(failed())?.permissions().mode() & 0o777;
    let (path, path_b64) = paths::in_vault(&place(source, to, session)?);
    let request = WriteContent {
        path,
        path_b64,
        parents: true,
        mode: Some(format!("{mode:o}")),
        ..WriteContent::default()
    };
    let written: Written = session.upload(&request, file, output, "importing")?;
    Ok(Imported {
        vfs_path: written.path,
        vfs_path_b64: written.path_b64,
        files_imported: 1,
        dirs_created: 0,
        total_bytes: written.size,
        files_reused: 0,
        version: written.version,
        skipped: Vec::new(),
    })
}

/// The path that the file gets: an entry of `to` if that is a directory, or is to be one.
fn place(source: &Path, to: &OsStr, session: &mut Session) -> Result<OsString> {
    let is_directory = match stat(to, session)? {
        Some(found) => found.attributes.kind == TypeWord::Directory,
        // The default is where projects are.
        None => to.as_bytes().ends_with(b"/") || to == "/workspace",
    };
    let name = source.file_name().filter(|_| is_directory);
    let mut place = to.to_owned();
    if let Some(name) = name {
        if !place.as_bytes().ends_with(b"/") {
            place.push("/");
        }
        place.push(name);
    }
    Ok(place)
}

fn stat(path: &OsStr, session: &mut Session) -> Result<Option<StatItem>> {
    let (path, path_b64) = paths::in_vault(path);
    match session.call(&Stat { path, path_b64 }) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound && error.path().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is at a path of the vault, if it is a file.
pub fn find(path: &OsStr, session: &mut Session) -> Result<Option<StatItem>> {
    let found = stat(path, session)?;
    Ok(found.filter(|found| found.attributes.kind == TypeWord::File))
}

/// What may be at the target of an export.
#[derive(Copy, Clone)]
pub struct Standing {
    pub overwrite: bool,
    pub allow_hooks: bool,
}

/// Copies a file of the vault to the host: whole, or not at all.
pub fn export(
    file: &StatItem,
    host: &Path,
    standing: Standing,
    session: &mut Session,
) -> Result<Exported> {
    let target = target(file, host)?;
    if !standing.allow_hooks && is_of_git(&target)? {
        return Err(Error::Invalid {
            text: format!("{} is in a directory of git's own", target.display()),
            hint: Some("git may execute it; --allow-hooks writes it nevertheless".into()),
        });
    }
    let mut aside = Aside::make(&target)?;
    let request = ReadContent {
        path: file.path.clone(),
        path_b64: file.path_b64.clone(),
        version: None,
        offset: 0,
        limit: None,
    };
    session.download_to(&request, &mut aside.file)?;
    let mode = u32::from_str_radix(&file.attributes.mode, 8).unwrap_or(0o600) & 0o777;
    let size = aside.become_target(mode, standing.overwrite)?;
    let (real_path, real_path_b64) = to_text(target.into_os_string().into_vec());
    Ok(Exported {
        vfs_path: file.path.clone(),
        vfs_path_b64: file.path_b64.clone(),
        real_path,
        real_path_b64,
        files_exported: 1,
        dirs_created: 0,
        total_bytes: size,
        skipped: Vec::new(),
        runs_by_itself: Vec::new(),
        missing: Vec::new(),
    })
}

/// The host path that the file gets, without symbolic links above it.
fn target(file: &StatItem, host: &Path) -> Result<PathBuf> {
    let failed = || Error::io(format!("cannot resolve {}", host.display()));
    if host.is_dir() {
        let path = from_text(&file.path, file.path_b64.as_ref());
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let above = host.canonicalize().map_err(failed())?;
        return Ok(above.join(OsStr::from_bytes(name)));
    }
    let absolute = std::path::absolute(host).map_err(failed())?;
    let (Some(above), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(Error::Invalid {
            text: format!("{} is no name for a file", host.display()),
            hint: None,
        });
    };
    Ok(above.canonicalize().map_err(failed())?.join(name))
}

/// Whether git keeps its settings and hooks there: `.git` in any spelling, or a repository without a worktree.
fn is_of_git(target: &Path) -> Result<bool> {
    let dot_git = |part: &OsStr| part.as_bytes().eq_ignore_ascii_case(b".git");
    if target.iter().any(dot_git) {
        return Ok(true);
    }
    let is_repository = |dir: &Path| dir.join("HEAD").is_file() && dir.join("objects").is_dir();
    Ok(target.ancestors().skip(1).any(is_repository))
}

/// A file beside its target, removed unless it becomes the target.
struct Aside {
    file: File,
    path: PathBuf,
    target: PathBuf,
}

impl Aside {
    fn make(target: &Path) -> Result<Aside> {
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".avfs-{}", std::process::id()));
        let path = target.with_file_name(name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR);
        let opened = opened.map_err(|errno| cannot_write(target, errno))?;
        Ok(Aside {
            file: opened.into(),
            path,
            target: target.to_owned(),
        })
    }

    /// Gives it its mode and its name; returns its size.
    fn become_target(&mut self, mode: u32, overwrite: bool) -> Result<u64> {
        let failed = |error| cannot_write(&self.target, error);
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode)).map_err(failed)?;
        let size = rustix::fs::fstat(&self.file).map_err(failed)?.st_size;
        let flags = match overwrite {
            true => RenameFlags::empty(),
            false => RenameFlags::NOREPLACE,
        };
        match rustix::fs::renameat_with(CWD, &self.path, CWD, &self.target, flags) {
            Err(Errno::EXIST) => Err(Error::Invalid {
                text: format!("{} exists", self.target.display()),
                hint: Some("name a new file, or replace it with --overwrite".into()),
            }),
            renamed => renamed.map_err(failed).map(|()| size as u64),
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Once it has its name, there is nothing to remove.
        let _ = rustix::fs::unlinkat(CWD, &self.path, AtFlags::empty());
    }
}

fn cannot_write(target: &Path, errno: Errno) -> Error {
    Error::io(format!("cannot write {}", target.display()))(errno.into())
}
