//! Which program is the daemon, or a helper of an embedded home.

use crate::error::{Error, ErrorKind, Result};
use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio, Termination};
use std::sync::atomic::{AtomicBool, Ordering};

/// Says which `avfs` is meant, for all programs that use this library.
const VARIABLE: &str = "AGENTVFS_BIN";

/// Whether this program can be its own helper.
static IS_HELPER: AtomicBool = AtomicBool::new(false);

/// Lets this program be its own helper, so that an embedded home needs no `avfs` program. To be called first in `main`.
///
/// An embedded home runs two small processes beside its program, the *keeper* and the *scanner*. They are this same
/// program, started again; this function notices that, does their work and ends the process. In any other process it
/// returns at once.
///
/// Programs that do not call it need `avfs`: in `PATH`, or named by `AGENTVFS_BIN` or [`crate::Builder::binary`].
pub fn init() {
    let first = env::args_os().nth(1);
    if let Some(ended) = avfs_runtime::helper_main(first.as_deref()) {
        exit(ended);
    }
    IS_HELPER.store(true, Ordering::Release);
}

fn exit(code: ExitCode) -> ! {
    let code = code.report();
    match code == ExitCode::SUCCESS {
        true => std::process::exit(0),
        false => std::process::exit(1),
    }
}

/// The `avfs` program: as said, as `AGENTVFS_BIN` says, or the first in `PATH`.
pub(crate) fn avfs(said: Option<&Path>) -> Result<PathBuf> {
    match named(said).or_else(in_path) {
        Some(binary) => runnable(binary),
        None => Err(missing("set AGENTVFS_BIN, or install avfs")),
    }
}

/// The program whose processes help an embedded home: as said, as `AGENTVFS_BIN` says, this one if it can, or `avfs`.
pub(crate) fn helper(said: Option<&Path>) -> Result<PathBuf> {
    if let Some(binary) = named(said) {
        return same_version(runnable(binary)?);
    }
    if IS_HELPER.load(Ordering::Acquire) {
        let own = env::current_exe();
        return own.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "this program's own file is unknown").because(error)
        });
    }
    match in_path() {
        Some(binary) => same_version(binary),
        None => {
            let hint = "call `agentvfs::init()` first in `main`, set AGENTVFS_BIN, or install avfs";
            Err(missing(hint))
        }
    }
}

fn missing(hint: &str) -> Error {
    Error::new(ErrorKind::Unavailable, "there is no avfs program").with_hint(hint)
}

fn named(said: Option<&Path>) -> Option<PathBuf> {
    let variable = || env::var_os(VARIABLE).filter(|path| !path.is_empty());
    said.map(Path::to_owned)
        .or_else(|| variable().map(PathBuf::from))
}

/// The first in `PATH`. Directories that depend on where the program happens to be run are left out.
fn in_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    search(&path)
}

fn search(path: &OsStr) -> Option<PathBuf> {
    env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join("avfs"))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    let meta = file.metadata();
    meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn runnable(binary: PathBuf) -> Result<PathBuf> {
    let absolute = std::path::absolute(&binary).unwrap_or(binary);
    match is_program(&absolute) {
        true => Ok(absolute),
        false => {
            let what = format!("{} is no program", absolute.display());
            Err(Error::new(ErrorKind::NotFound, what).with_hint("name the avfs program"))
        }
    }
}

/// Helpers speak a protocol of their own version with the program that runs them.
fn same_version(binary: PathBuf) -> Result<PathBuf> {
    let asked = Command::new(&binary)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let asked = asked.map_err(|error| {
        let what = format!("{} cannot be run", binary.display());
        Error::new(ErrorKind::Unavailable, what).because(error)
    })?;
    let said = String::from_utf8_lossy(&asked.stdout);
    let version = said.split_whitespace().nth(1).unwrap_or("unknown");
    if version == crate::VERSION {
        return Ok(binary);
    }
    let own = crate::VERSION;
    let what = format!(
        "{} is version {version}, this library is {own}",
        binary.display()
    );
    let hint = format!("install avfs {own}, or call `agentvfs::init()` first in `main`");
    Err(Error::new(ErrorKind::Conflict, what).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_program_is_found_in_absolute_directories_of_the_path_alone() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("avfs");
        fs::write(&file, "#!/bin/sh\necho avfs 0.0.0\n").unwrap();
        let path = |dirs: &[&Path]| env::join_paths(dirs).unwrap();
        let here = path(&[Path::new("."), Path::new(""), temp.path()]);
        assert_eq!(search(&here), None, "it cannot be executed");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(search(&here), Some(file.clone()));
        let relative = temp.path().file_name().map(Path::new).unwrap();
        assert_eq!(search(&path(&[relative, Path::new(".")])), None);
        let error = same_version(file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("0.0.0"), "{error}");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for path in ["/nonexistent/avfs", "/etc/passwd", "/"] {
            let error = avfs(Some(Path::new(path))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{path}");
        }
    }
}
