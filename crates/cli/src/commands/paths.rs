//! Paths from arguments, converted for the API.

use crate::error::{Error, Result};
use avfs_api::wire::{Base64, to_text};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path of the vault; relative paths start at `/`.
pub fn in_vault(typed: &OsStr) -> (String, Option<Base64>) {
    let typed = typed.as_bytes();
    let mut path = Vec::with_capacity(typed.len() + 1);
    // An empty path is most likely an unset variable. It is not taken as `/`, so that it is refused.
    if !typed.is_empty() && !typed.starts_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(typed);
    to_text(path)
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
        let exact = in_vault(OsStr::from_bytes(b"\xff")).1;
        assert_eq!(exact, Some(Base64(b"/\xff".to_vec())));
    }
}
