//! Paths from arguments, converted for the API.

use crate::error::{Error, Result};
use avfs_api::wire::{Base64, to_text};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The directory that relative paths start from, at the prompt of `avfs shell`; elsewhere `/`.
static CWD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

fn cwd() -> MutexGuard<'static, Option<Vec<u8>>> {
    CWD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has relative paths start from this path of the vault.
pub fn change_directory(to: &[u8]) {
    *cwd() = Some(to.to_vec());
}

/// A path of the vault; relative paths start at `/`, or where `avfs shell` is.
pub fn in_vault(typed: &OsStr) -> (String, Option<Base64>) {
    let typed = typed.as_bytes();
    // An empty path is most likely an unset variable. It is not taken as `/`, so that it is refused.
    if typed.is_empty() {
        return to_text(Vec::new());
    }
    if let Some(from) = &*cwd() {
        return to_text(joined(from, typed));
    }
    if typed == b"." {
        return to_text(b"/".to_vec());
    }
    let mut path = Vec::with_capacity(typed.len() + 1);
    if !typed.starts_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(typed);
    to_text(path)
}

/// `typed` as seen from `from`, without `.` and `..`. At a prompt `..` means the name before it, as in a shell's `cd`.
pub fn joined(from: &[u8], typed: &[u8]) -> Vec<u8> {
    let from = if typed.starts_with(b"/") { b"" } else { from };
    let mut names: Vec<&[u8]> = Vec::new();
    for name in from.split(is_slash).chain(typed.split(is_slash)) {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    [b"/", names.join(&b'/').as_slice()].concat()
}

fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

/// A path of the host, made absolute: the daemon has another working directory.
pub fn on_host(typed: &Path) -> Result<(String, Option<Base64>)> {
    let shown = typed.display();
    let path = std::path::absolute(typed).map_err(Error::io(format!("cannot resolve {shown}")))?;
    Ok(to_text(path.as_os_str().as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_means_from_the_top() {
        assert_eq!(in_vault(OsStr::new("a/b")).0, "/a/b");
        assert_eq!(in_vault(OsStr::new("/a")).0, "/a");
        assert_eq!(in_vault(OsStr::new("")).0, "");
        assert_eq!(in_vault(OsStr::new(".")).0, "/");
        for (from, typed, path) in [
            ("/a/b", "c", "/a/b/c"),
            ("/a/b", "../c/./d/", "/a/c/d"),
            ("/a", "../../..", "/"),
            ("/a", "/x//y", "/x/y"),
            ("/", ".", "/"),
        ] {
            assert_eq!(joined(from.as_bytes(), typed.as_bytes()), path.as_bytes());
        }
        let exact = in_vault(OsStr::from_bytes(b"\xff")).1;
        assert_eq!(exact, Some(Base64(b"/\xff".to_vec())));
    }
}
