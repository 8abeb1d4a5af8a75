//! Reading trees, through a bounded cache of decoded nodes.

use std::sync::Arc;

use avfs_store::{Cache, ObjectId, Store};

use super::codec::{self, LinkMap, RootRecord};
use super::node::{Child, Flags, Item, Node, Summary};
use super::parts::PartList;
use crate::{Edit, Entry, Error, Kind, Result, Root, RootId, Time, TreeId, VaultPath};

const CACHE_BYTES: usize = 16 << 20;
const SYMLINK_HOPS: u32 = 40;

/// A cheap handle on all trees of a store.
#[derive(Clone)]
pub struct Trees {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    cache: Cache<ObjectId, Cached>,
    empty: Arc<Node>,
}

#[derive(Clone)]
pub enum Cached {
    Node(Arc<Node>),
    Root(Arc<LoadedRoot>),
    Parts(Arc<PartList>),
}

/// A root together with where its link index is stored.
pub struct LoadedRoot {
    pub root: Arc<Root>,
    pub links: Option<ObjectId>,
}

impl Trees {
    pub fn new(store: Store) -> Trees {
        let cache = Cache::new(CACHE_BYTES);
        let empty = Arc::new(Node::Leaf(Vec::new()));
        Trees {
            inner: Arc::new(Inner {
                store,
                cache,
                empty,
            }),
        }
    }

    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Gives back the memory that only speed needs: for when nothing is asked for a while.
    pub fn release_caches(&self) -> Result<()> {
        self.inner.cache.clear();
        Ok(self.store().release_caches()?)
    }

    /// A top directory 0755 at the epoch, without entries: always the same id.
    pub fn empty_root(&self) -> Result<RootId> {
        let top = Entry::directory(0o755, Time::EPOCH);
        self.put_root(
            &RootRecord {
                top,
                has_xattrs: false,
                links: None,
            },
            Flags::default(),
        )
    }

    pub fn root(&self, id: RootId) -> Result<Arc<Root>> {
        Ok(self.loaded_root(id)?.root.clone())
    }

    /// Loads one path of nodes.
    pub fn child(&self, tree: TreeId, name: &[u8]) -> Result<Option<Entry>> {
        Ok(self.child_item(tree, name)?.map(|item| item.entry))
    }

    /// Sorted by the bytes of the name.
    pub fn list(&self, tree: TreeId) -> Result<Vec<(Vec<u8>, Entry)>> {
        self.list_after(tree, None, usize::MAX)
    }

    /// The first `limit` names that sort behind `after`.
    pub fn list_after(
        &self,
        tree: TreeId,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Entry)>> {
        let mut found = Vec::new();
        self.list_node(&*self.node(tree)?, after, limit, &mut found)?;
        Ok(found)
    }

    /// What is at `path` itself; follows no symlink.
    pub fn entry(&self, root: RootId, path: &VaultPath) -> Result<Option<Entry>> {
        let mut entry = self.root(root)?.top.clone();
        for name in path.components() {
            let Kind::Directory { tree, .. } = entry.kind else {
                return Ok(None);
            };
            match self.child(tree, name)? {
                Some(child) => entry = child,
                None => return Ok(None),
            }
        }
        Ok(Some(entry))
    }

    /// Follows symlinks inside the vault, the last one too; an absolute target is a vault path.
    pub fn resolve(&self, root: RootId, path: &VaultPath) -> Result<(VaultPath, Entry)> {
        let mut ahead: Vec<Vec<u8>> = path.components().rev().map(<[u8]>::to_vec).collect();
        let mut trail = vec![(VaultPath::root(), self.root(root)?.top.clone())];
        let mut hops = 0;
        while let Some(name) = ahead.pop() {
            let (at, entry) = trail.last().expect("the top is never popped");
            let Kind::Directory { tree, .. } = entry.kind else {
                return Err(Error::NotADirectory { path: at.clone() });
            };
            match &name[..] {
                b"" | b"." => continue,
                b".." => {
                    trail.truncate(trail.len().saturating_sub(1).max(1));
                    continue;
                }
                _ => {}
            }
            let next = at.child(&name);
            let Some(child) = self.child(tree, &name)? else {
                return Err(Error::PathNotFound { path: next });
            };
            let Kind::Symlink { target } = &child.kind else {
                trail.push((next, child));
                continue;
            };
            hops += 1;
            if hops > SYMLINK_HOPS {
                return Err(Error::SymlinkLoop { path: path.clone() });
            }
            if target.first() == Some(&b'/') {
                trail.truncate(1);
            }
            ahead.extend(target.split(|&byte| byte == b'/').rev().map(<[u8]>::to_vec));
        }
        Ok(trail.pop().expect("the top is never popped"))
    }

    pub fn edit(&self, base: RootId) -> Result<Edit> {
        Edit::new(self.clone(), base)
    }

    /// Makes objects written so far last, in the middle of long work.
    pub fn flush(&self) -> Result<()> {
        Ok(self.store().flush()?)
    }

    pub(crate) fn loaded_root(&self, id: RootId) -> Result<Arc<LoadedRoot>> {
        let corrupt = |what: &str| Error::Corrupt {
            what: format!("{what} {id}"),
        };
        let load = || {
            let bytes = self.store().get(id.object())?;
            let record = codec::decode_root(&bytes).ok_or_else(|| corrupt("root"))?;
            let links = match record.links {
                None => LinkMap::new(),
                Some(object) => codec::decode_links(&self.store().get(object)?)
                    .ok_or_else(|| corrupt("link index of root"))?,
            };
            let names = links
                .values()
                .flatten()
                .map(|path| path.as_bytes().len() + 64);
            let weight = 512 + names.sum::<usize>();
            let root = Root {
                top: record.top,
                has_xattrs: record.has_xattrs,
                links,
            };
            let loaded = LoadedRoot {
                root: Arc::new(root),
                links: record.links,
            };
            Ok((Cached::Root(Arc::new(loaded)), weight))
        };
        match self.cached(id.object(), load)? {
            Cached::Root(root) => Ok(root),
            _ => Err(corrupt("root")),
        }
    }

    pub(crate) fn put_root(&self, root: &RootRecord, beneath: Flags) -> Result<RootId> {
        Ok(RootId::new(
            self.store().put(&codec::encode_root(root, beneath))?,
        ))
    }

    pub(crate) fn child_item(&self, tree: TreeId, name: &[u8]) -> Result<Option<Item>> {
        let mut node = self.node(tree)?;
        loop {
            let below = match &*node {
                Node::Leaf(items) => {
                    let found = items.binary_search_by(|item| item.name[..].cmp(name));
                    return Ok(found.ok().map(|at| items[at].clone()));
                }
                Node::Branch { children, .. } => {
                    let at = children.partition_point(|child| child.last[..] < *name);
                    match children.get(at) {
                        Some(child) => self.node_below(&node, child)?,
                        None => return Ok(None),
                    }
                }
            };
            node = below;
        }
    }

    pub(crate) fn node(&self, tree: TreeId) -> Result<Arc<Node>> {
        if tree == TreeId::EMPTY {
            return Ok(self.inner.empty.clone());
        }
        let id = tree.object();
        let corrupt = || Error::Corrupt {
            what: format!("tree {id}"),
        };
        let load = || {
            let node = codec::decode_node(&self.store().get(id)?).ok_or_else(corrupt)?;
            let weight = node.weight();
            Ok((Cached::Node(Arc::new(node)), weight))
        };
        match self.cached(id, load)? {
            Cached::Node(node) => Ok(node),
            _ => Err(corrupt()),
        }
    }

    /// The node `child` of `parent`, refused unless it is one level down: nothing loops.
    pub(crate) fn node_below(&self, parent: &Node, child: &Child) -> Result<Arc<Node>> {
        let node = self.node(TreeId::new(child.id))?;
        if node.level() + 1 == parent.level() {
            return Ok(node);
        }
        Err(Error::Corrupt {
            what: format!("tree {}: it is on the wrong level", child.id),
        })
    }

    /// Stores a node, which must not be empty.
    pub(crate) fn put_node(&self, node: Node) -> Result<Child> {
        let last = node
            .last_name()
            .expect("only nodes with entries are stored")
            .to_vec();
        let id = self.store().put(&codec::encode_node(&node))?;
        let (summary, weight) = (node.summary(), node.weight());
        self.inner
            .cache
            .insert(id, Cached::Node(Arc::new(node)), weight);
        Ok(Child { last, id, summary })
    }

    pub(crate) fn summary(&self, tree: TreeId) -> Result<Summary> {
        Ok(self.node(tree)?.summary())
    }

    pub(crate) fn cached(
        &self,
        id: ObjectId,
        load: impl FnOnce() -> Result<(Cached, usize)>,
    ) -> Result<Cached> {
        if let Some(found) = self.inner.cache.get(id) {
            return Ok(found);
        }
        let (loaded, weight) = load()?;
        self.inner.cache.insert(id, loaded.clone(), weight);
        Ok(loaded)
    }

    fn list_node(
        &self,
        node: &Node,
        after: Option<&[u8]>,
        limit: usize,
        found: &mut Vec<(Vec<u8>, Entry)>,
    ) -> Result<()> {
        let is_past = |name: &[u8]| after.is_none_or(|after| name > after);
        match node {
            Node::Leaf(items) => {
                let from = items.partition_point(|item| !is_past(&item.name));
                let room = limit - found.len();
                let wanted = items[from..].iter().take(room);
                found.extend(wanted.map(|item| (item.name.clone(), item.entry.clone())));
            }
            Node::Branch { children, .. } => {
                let from = children.partition_point(|child| !is_past(&child.last));
                for child in &children[from..] {
                    if found.len() == limit {
                        break;
                    }
                    self.list_node(&*self.node_below(node, child)?, after, limit, found)?;
                }
            }
        }
        Ok(())
    }
}
