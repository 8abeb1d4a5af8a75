//! The names of an archive: later ones replace earlier ones, and every parent is a directory.

use std::collections::{BTreeMap, HashMap};

use avfs_vault::{Content, Entry, Kind, Meta, Time, VaultPath};

use super::{Found, Importer, Incoming};

/// One name.
#[derive(Debug, Clone)]
pub struct Node {
    pub kind: NodeKind,
    pub meta: Meta,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// With the number of its content: names with the same number are one file.
    File(usize),
    Directory,
    Symlink(Vec<u8>),
    Fifo,
}

impl NodeKind {
    fn word(&self) -> &'static str {
        match self {
            NodeKind::File(_) => "a file",
            NodeKind::Directory => "a directory",
            NodeKind::Symlink(_) => "a symlink",
            NodeKind::Fifo => "a FIFO",
        }
    }
}

/// All names so far, from the top of the archive.
pub struct Listing {
    nodes: BTreeMap<VaultPath, Option<Node>>,
    /// For directories that the archive implies but does not list.
    time: Time,
}

impl Listing {
    pub fn new(time: Time) -> Listing {
        Listing {
            nodes: BTreeMap::new(),
            time,
        }
    }

    /// Adds a name. The error says why it is invalid.
    pub fn add(&mut self, path: VaultPath, node: Node) -> Result<(), String> {
        let is_dir = node.kind == NodeKind::Directory;
        if path.is_root() && !is_dir {
            return Err(format!("it makes the top {}", node.kind.word()));
        }
        let mut above = path.parent();
        while let Some(dir) = above.filter(|dir| !dir.is_root()) {
            match self.nodes.get(&dir) {
                Some(Some(there)) if there.kind != NodeKind::Directory => {
                    let word = there.kind.word();
                    return Err(format!("it goes through {dir}, which is {word}"));
                }
                // The parents of a listed directory are listed directories.
                Some(_) => break,
                None => drop(self.nodes.insert(dir.clone(), None)),
            }
            above = dir.parent();
        }
        if !is_dir && self.has_content(&path) {
            let word = node.kind.word();
            return Err(format!("it makes {word} of a directory that has content"));
        }
        self.nodes.insert(path, Some(node));
        Ok(())
    }

    /// Adds one more name for the file at `first`.
    pub fn link(&mut self, path: VaultPath, first: &VaultPath) -> Result<(), String> {
        match self.nodes.get(first) {
            Some(Some(node)) if node.kind != NodeKind::Directory => self.add(path, node.clone()),
            Some(_) => Err(format!(
                "it is a hard link to {first}, which is a directory"
            )),
            None => Err(format!(
                "it is a hard link to {first}, which is not in the archive"
            )),
        }
    }

    fn has_content(&self, path: &VaultPath) -> bool {
        let next = self.nodes.range(path.clone()..).find(|(at, _)| *at != path);
        next.is_some_and(|(at, _)| at.starts_with(path))
    }

    /// Everything, with `contents` by number.
    pub fn into_incoming(self, importer: &Importer<'_>, contents: &[(Content, u64)]) -> Incoming {
        let mut names: HashMap<usize, usize> = HashMap::new();
        for node in self.nodes.values().flatten() {
            if let NodeKind::File(number) = node.kind {
                *names.entry(number).or_default() += 1;
            }
        }
        let mut incoming = Incoming::default();
        for (path, node) in self.nodes {
            let Node { kind, meta } = node.unwrap_or_else(|| Node {
                kind: NodeKind::Directory,
                meta: importer.plain_meta(0o755, self.time),
            });
            if path.is_root() {
                incoming.top = Some(meta);
                continue;
            }
            let mut inode = None;
            let entry = match kind {
                NodeKind::File(number) => {
                    inode = (names[&number] > 1).then_some((0, number as u64));
                    let (content, size) = contents[number];
                    Entry::file(content, size, meta)
                }
                NodeKind::Directory => Entry {
                    kind: Entry::directory(0, self.time).kind,
                    meta,
                },
                NodeKind::Symlink(target) => Entry {
                    kind: Kind::Symlink { target },
                    meta,
                },
                NodeKind::Fifo => Entry {
                    kind: Kind::Fifo,
                    meta,
                },
            };
            let path = importer.place(&path);
            incoming.push(Found { path, entry, inode });
        }
        incoming
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: NodeKind) -> Node {
        Node {
            kind,
            meta: Meta::new(0o644, Time::EPOCH),
        }
    }

    fn path(text: &str) -> VaultPath {
        text.parse().unwrap()
    }

    #[test]
    fn nothing_goes_through_what_is_no_directory() {
        let mut listing = Listing::new(Time::EPOCH);
        let link = NodeKind::Symlink(b"/etc".to_vec());
        listing.add(path("/a"), node(link.clone())).unwrap();
        let through = listing.add(path("/a/b/passwd"), node(NodeKind::File(0)));
        assert_eq!(
            through,
            Err("it goes through /a, which is a symlink".into())
        );
        listing.add(path("/a"), node(NodeKind::Directory)).unwrap();
        listing.add(path("/a/b"), node(NodeKind::File(1))).unwrap();
        assert!(listing.add(path("/a"), node(link)).is_err());
        listing.add(path("/a-b"), node(NodeKind::File(2))).unwrap();
        listing.add(path("/a/b"), node(NodeKind::Fifo)).unwrap();
        assert!(listing.add(path("/"), node(NodeKind::Fifo)).is_err());
    }

    #[test]
    fn hard_links_stay_inside() {
        let mut listing = Listing::new(Time::EPOCH);
        listing.add(path("/d/f"), node(NodeKind::File(7))).unwrap();
        listing.link(path("/l"), &path("/d/f")).unwrap();
        assert!(listing.link(path("/m"), &path("/d")).is_err());
        assert!(listing.link(path("/m"), &path("/etc/passwd")).is_err());
        let linked = listing.nodes[&path("/l")].clone().unwrap();
        assert_eq!(linked.kind, NodeKind::File(7));
    }
}
