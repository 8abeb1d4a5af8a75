//! Paths as requests carry them: text, and the exact bytes beside it where text cannot hold them.

use crate::error::{Error, ErrorKind, Result};
use avfs_api::wire::{Base64, HostPath, to_text};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path in a vault.
pub(crate) fn in_vault(path: impl AsRef<Path>) -> (String, Option<Base64>) {
    to_text(path.as_ref().as_os_str().as_bytes().to_vec())
}

/// A path of the host, made absolute: the daemon has another working directory than this program.
pub(crate) fn on_host(path: impl AsRef<Path>) -> Result<(HostPath, Option<Base64>)> {
    let path = path.as_ref();
    let absolute = std::path::absolute(path).map_err(|error| {
        let what = format!("{} cannot be resolved", path.display());
        Error::new(ErrorKind::Invalid, what).because(error)
    })?;
    let (text, exact) = in_vault(absolute);
    Ok((HostPath(text), exact))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn bytes_that_are_no_text_are_kept() {
        assert_eq!(in_vault("/a"), ("/a".into(), None));
        let (text, exact) = in_vault(OsStr::from_bytes(b"/a\xff"));
        assert_eq!(text, "/a\u{fffd}");
        assert_eq!(exact, Some(Base64(b"/a\xff".to_vec())));
    }

    #[test]
    fn a_path_of_the_host_is_absolute() {
        let (path, _) = on_host("x/y").unwrap();
        let here = std::env::current_dir().unwrap();
        assert_eq!(Path::new(path.as_str()), here.join("x/y"));
        assert_eq!(on_host("").unwrap_err().kind(), ErrorKind::Invalid);
    }
}
