//! Paths inside a vault: absolute, normalised, any bytes but NUL.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use super::error::{Error, Result};

const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4095;

/// "/" or "/a/b". Ordered by component, so a directory's subtree is one contiguous range.
#[derive(Clone)]
pub struct VaultPath {
    /// The components, each preceded by '/'; empty for the root.
    bytes: Vec<u8>,
}

impl VaultPath {
    pub const fn root() -> VaultPath {
        VaultPath { bytes: Vec::new() }
    }

    /// Squeezes repeated slashes and drops "."; refuses what could mean another file elsewhere.
    pub fn parse(text: &[u8]) -> Result<VaultPath> {
        let refuse = |reason| Error::InvalidPath {
            text: lossy(text),
            reason,
        };
        if text.is_empty() {
            return Err(refuse("it is empty"));
        }
        if text.first() != Some(&b'/') {
            return Err(refuse("it must begin with '/'"));
        }
        let mut path = VaultPath {
            bytes: Vec::with_capacity(text.len()),
        };
        for name in text.split(|&byte| byte == b'/') {
            if name.is_empty() || name == b"." {
                continue;
            }
            check_name(name).map_err(refuse)?;
            path.push(name);
        }
        if path.bytes.len() > PATH_MAX {
            return Err(refuse("it is longer than 4095 bytes"));
        }
        Ok(path)
    }

    pub fn is_root(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The directory this path is in; none for the root.
    pub fn parent(&self) -> Option<VaultPath> {
        let cut = self.bytes.iter().rposition(|&byte| byte == b'/')?;
        Some(VaultPath {
            bytes: self.bytes[..cut].to_vec(),
        })
    }

    /// The last component; none for the root.
    pub fn file_name(&self) -> Option<&[u8]> {
        let cut = self.bytes.iter().rposition(|&byte| byte == b'/')?;
        Some(&self.bytes[cut + 1..])
    }

    /// This path with one more component.
    pub fn join(&self, name: &[u8]) -> Result<VaultPath> {
        let joined = self.child(name);
        let refuse = |reason| Error::InvalidPath {
            text: joined.to_string(),
            reason,
        };
        check_name(name).map_err(refuse)?;
        if joined.bytes.len() > PATH_MAX {
            return Err(refuse("it is longer than 4095 bytes"));
        }
        Ok(joined)
    }

    /// `join` for names that come out of a tree: a moved directory may carry its content beyond
    /// the length a caller may ask for, and that content must still be reported.
    pub(crate) fn child(&self, name: &[u8]) -> VaultPath {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 1 + name.len());
        bytes.extend_from_slice(&self.bytes);
        let mut path = VaultPath { bytes };
        path.push(name);
        path
    }

    /// A path as `as_bytes` gave it; none unless it is exactly that.
    pub(crate) fn from_stored(bytes: &[u8]) -> Option<VaultPath> {
        if bytes == b"/" {
            return Some(VaultPath::root());
        }
        let names = bytes.strip_prefix(b"/")?;
        let valid = names.split(|&byte| byte == b'/').all(is_valid_name);
        valid.then(|| VaultPath {
            bytes: bytes.to_vec(),
        })
    }

    /// This path with `from` at its front replaced by `to`; none when it is not beneath `from`.
    pub fn rebase(&self, from: &VaultPath, to: &VaultPath) -> Option<VaultPath> {
        if !self.starts_with(from) {
            return None;
        }
        let bytes = [&to.bytes, &self.bytes[from.bytes.len()..]].concat();
        Some(VaultPath { bytes })
    }

    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        // Splitting "/a/b" yields an empty piece before the first slash, and so does the root.
        self.bytes
            .split(|&byte| byte == b'/')
            .filter(|name| !name.is_empty())
    }

    /// True for the path itself and everything beneath it.
    pub fn starts_with(&self, ancestor: &VaultPath) -> bool {
        self.bytes.starts_with(&ancestor.bytes)
            && matches!(self.bytes.get(ancestor.bytes.len()), None | Some(b'/'))
    }

    pub fn as_bytes(&self) -> &[u8] {
        if self.bytes.is_empty() {
            b"/"
        } else {
            &self.bytes
        }
    }

    fn push(&mut self, name: &[u8]) {
        self.bytes.push(b'/');
        self.bytes.extend_from_slice(name);
    }
}

/// Why `name` cannot be one component, if it cannot.
fn check_name(name: &[u8]) -> Result<(), &'static str> {
    match name {
        b"" => Err("a name is empty"),
        b"." | b".." => Err("'.' and '..' are not names"),
        _ if name.contains(&0) => Err("it contains a NUL byte"),
        _ if name.contains(&b'/') => Err("a name contains '/'"),
        _ if name.len() > NAME_MAX => Err("a name is longer than 255 bytes"),
        _ => Ok(()),
    }
}

pub(crate) fn is_valid_name(name: &[u8]) -> bool {
    check_name(name).is_ok()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The root.
impl Default for VaultPath {
    fn default() -> VaultPath {
        VaultPath::root()
    }
}

impl FromStr for VaultPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<VaultPath> {
        VaultPath::parse(text.as_bytes())
    }
}

impl fmt::Display for VaultPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for VaultPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(self.as_bytes()), f)
    }
}

impl Ord for VaultPath {
    fn cmp(&self, other: &VaultPath) -> Ordering {
        // '/' sorts below every byte a name may hold, which makes this an order by component.
        let rank = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
        self.bytes
            .iter()
            .map(rank)
            .cmp(other.bytes.iter().map(rank))
    }
}

impl PartialOrd for VaultPath {
    fn partial_cmp(&self, other: &VaultPath) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for VaultPath {
    fn eq(&self, other: &VaultPath) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for VaultPath {}

impl Hash for VaultPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VaultPath {
        text.parse().unwrap()
    }

    #[test]
    fn parsing_normalises() {
        assert_eq!(path("//a/./b//").to_string(), "/a/b");
        assert_eq!(path("/").to_string(), "/");
        assert_eq!(path("/./").as_bytes(), b"/");
        assert!(path("//").is_root());
    }

    #[test]
    fn parsing_refuses() {
        for text in ["", "a", "/a/../b", "/..", "/a\0b"] {
            assert!(text.parse::<VaultPath>().is_err(), "{text:?}");
        }
        assert!(
            format!("/{}", "x".repeat(256))
                .parse::<VaultPath>()
                .is_err()
        );
        assert!(format!("/{}", "x".repeat(255)).parse::<VaultPath>().is_ok());
        assert!("/abc".repeat(1024).parse::<VaultPath>().is_err());
        assert!("/abc".repeat(1023).parse::<VaultPath>().is_ok());
    }

    #[test]
    fn parts() {
        let p = path("/a/b");
        assert_eq!(p.parent(), Some(path("/a")));
        assert_eq!(path("/a").parent(), Some(VaultPath::root()));
        assert_eq!(VaultPath::root().parent(), None);
        assert_eq!(p.file_name(), Some(&b"b"[..]));
        assert_eq!(VaultPath::root().file_name(), None);
        assert_eq!(p.components().collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(VaultPath::root().components().count(), 0);
        assert_eq!(VaultPath::root().join(b"x").unwrap(), path("/x"));
        for bad in [&b""[..], b".", b"..", b"a/b", b"\0"] {
            assert!(p.join(bad).is_err());
        }
    }

    #[test]
    fn ancestry_is_by_component() {
        assert!(path("/a/b").starts_with(&path("/a")));
        assert!(path("/a").starts_with(&path("/a")));
        assert!(path("/a").starts_with(&VaultPath::root()));
        assert!(!path("/ab").starts_with(&path("/a")));
        assert_eq!(
            path("/a/b").rebase(&path("/a"), &path("/x/y")),
            Some(path("/x/y/b"))
        );
        assert_eq!(
            path("/a").rebase(&path("/a"), &VaultPath::root()),
            Some(VaultPath::root())
        );
        assert_eq!(path("/ab").rebase(&path("/a"), &path("/x")), None);
    }

    #[test]
    fn order_keeps_a_subtree_together() {
        let mut paths = vec![
            path("/a-b"),
            path("/a/z"),
            path("/"),
            path("/a"),
            path("/a.c"),
        ];
        paths.sort();
        assert_eq!(
            paths,
            [
                path("/"),
                path("/a"),
                path("/a/z"),
                path("/a-b"),
                path("/a.c")
            ]
        );
    }
}
