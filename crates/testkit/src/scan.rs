//! An independent walk of a host directory, byte for byte.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Everything below a directory, by its path from there (`/a/b`), the directory itself as `/`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Scan {
    pub nodes: BTreeMap<Vec<u8>, Node>,
}

/// One name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node {
    pub kind: NodeKind,
    /// Permission bits.
    pub mode: u32,
    /// For a hard-linked file: the first of its names in the scan.
    pub same_as: Option<Vec<u8>>,
    /// The `user.` attributes.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NodeKind {
    File {
        bytes: Vec<u8>,
    },
    Directory,
    Symlink {
        target: Vec<u8>,
    },
    Fifo,
    /// A socket or a device.
    Other,
}

/// Walks a directory without following links. Panics on anything it cannot read.
pub fn scan(dir: &Path) -> Scan {
    let mut scan = Scan::default();
    let mut inodes: HashMap<(u64, u64), Vec<Vec<u8>>> = HashMap::new();
    walk(dir, Vec::new(), &mut scan, &mut inodes);
    for mut names in inodes.into_values().filter(|names| names.len() > 1) {
        names.sort();
        for name in &names {
            let node = scan
                .nodes
                .get_mut(name)
                .expect("every inode came from a node");
            node.same_as = Some(names[0].clone());
        }
    }
    scan
}

fn walk(
    path: &Path,
    name: Vec<u8>,
    scan: &mut Scan,
    inodes: &mut HashMap<(u64, u64), Vec<Vec<u8>>>,
) {
    let meta = fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let kind = meta.file_type();
    let node_kind = if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap_or_else(|error| panic!("{path:?}: {error}")) {
            let entry = entry.unwrap_or_else(|error| panic!("{path:?}: {error}"));
            let mut child = name.clone();
            child.push(b'/');
            child.extend_from_slice(entry.file_name().as_bytes());
            walk(&entry.path(), child, scan, inodes);
        }
        NodeKind::Directory
    } else if kind.is_file() {
        if meta.nlink() > 1 {
            inodes
                .entry((meta.dev(), meta.ino()))
                .or_default()
                .push(name.clone());
        }
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        NodeKind::File { bytes }
    } else if kind.is_symlink() {
        let target = fs::read_link(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        NodeKind::Symlink {
            target: target.as_os_str().as_bytes().to_vec(),
        }
    } else if kind.is_fifo() {
        NodeKind::Fifo
    } else {
        NodeKind::Other
    };
    // On Linux the mode of symlinks is always the same.
    let mode = if kind.is_symlink() {
        0o777
    } else {
        meta.mode() & 0o7777
    };
    let name = if name.is_empty() { b"/".to_vec() } else { name };
    scan.nodes.insert(
        name,
        Node {
            kind: node_kind,
            mode,
            same_as: None,
            xattrs: user_xattrs(path),
        },
    );
}

/// The attributes of a path itself; none on a filesystem without attributes.
fn user_xattrs(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut names, mut value) = (vec![0; 65_536], vec![0; 65_536]);
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let names = names[..length].split(|byte| *byte == 0);
    let mut xattrs = BTreeMap::new();
    for name in names.filter(|name| name.starts_with(b"user.")) {
        let length = rustix::fs::lgetxattr(path, name, &mut value[..]);
        let length = length.unwrap_or_else(|error| panic!("{path:?}: {error}"));
        xattrs.insert(name.to_vec(), value[..length].to_vec());
    }
    xattrs
}

impl Scan {
    /// Every path that was added, removed, or differs in kind, content, target or mode.
    pub fn changed(&self, after: &Scan) -> BTreeSet<Vec<u8>> {
        let names: BTreeSet<&Vec<u8>> = self.nodes.keys().chain(after.nodes.keys()).collect();
        names
            .into_iter()
            .filter(
                |name| match (self.nodes.get(*name), after.nodes.get(*name)) {
                    (Some(before), Some(after)) => {
                        before.kind != after.kind || before.mode != after.mode
                    }
                    _ => true,
                },
            )
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_scan_tells_what_changed() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        fs::create_dir(at("d")).unwrap();
        for name in ["d/same", "d/edited", "d/moded", "gone"] {
            fs::write(at(name), "x").unwrap();
        }
        fs::hard_link(at("d/same"), at("twin")).unwrap();
        let before = scan(temp.path());
        assert_eq!(
            before.nodes[b"/twin".as_slice()].same_as,
            Some(b"/d/same".to_vec())
        );
        assert_eq!(before.changed(&before), BTreeSet::new());

        fs::write(at("d/edited"), "y").unwrap();
        fs::set_permissions(at("d/moded"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::remove_file(at("gone")).unwrap();
        std::os::unix::fs::symlink("d", at("link")).unwrap();
        let changed = before.changed(&scan(temp.path()));
        let expected: BTreeSet<Vec<u8>> = ["/d/edited", "/d/moded", "/gone", "/link"]
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        assert_eq!(changed, expected);
    }
}
