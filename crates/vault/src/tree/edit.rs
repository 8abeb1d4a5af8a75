//! A batch of changes to one root. Only what is touched is read, and only that is written again.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::build::Edits;
use super::codec::{self, RootRecord};
use super::links::Links;
use super::node::{Flags, Item};
use super::trees::LoadedRoot;
use crate::{Entry, Error, Kind, LinkId, Meta, Result, RootId, TreeId, Trees, VaultPath};

/// The base root is never changed; nothing is seen by others until `finish` and a publish.
pub struct Edit {
    trees: Trees,
    base: Arc<LoadedRoot>,
    top: Folder,
    /// Loaded when the first hard-linked name is touched.
    links: Option<Links>,
}

/// A directory with changes in it or beneath it.
struct Folder {
    meta: Meta,
    base: TreeId,
    changes: BTreeMap<Vec<u8>, Pending>,
    /// The directory with its changes, stored; emptied by the next change.
    built: OnceLock<(Entry, Flags)>,
}

enum Pending {
    Item(Item),
    Folder(Box<Folder>),
    Removed,
}

/// What a lookup ends in.
enum Found<'a> {
    Item(Item),
    Folder(&'a Folder),
}

impl Folder {
    fn new(meta: Meta, base: TreeId) -> Folder {
        Folder {
            meta,
            base,
            changes: BTreeMap::new(),
            built: OnceLock::new(),
        }
    }

    /// This directory, stored with all changes in it.
    fn build(&self, trees: &Trees) -> Result<(Entry, Flags)> {
        if let Some(built) = self.built.get() {
            return Ok(built.clone());
        }
        // First, so that no more is on the stack for each level than this.
        for pending in self.changes.values() {
            if let Pending::Folder(folder) = pending {
                folder.build(trees)?;
            }
        }
        let edits = Edits::new(self.changes.iter(), |name, pending| {
            Ok(match pending {
                Pending::Item(item) => Some(item.clone()),
                Pending::Folder(folder) => {
                    let (entry, beneath) = folder.build(trees)?;
                    Some(Item {
                        name: name.to_vec(),
                        entry,
                        beneath,
                    })
                }
                Pending::Removed => None,
            })
        });
        let (tree, summary) = trees.rebuild(self.base, edits)?;
        let kind = Kind::Directory {
            tree,
            files: summary.files,
            bytes: summary.bytes,
        };
        let entry = Entry {
            kind,
            meta: self.meta.clone(),
        };
        Ok(self.built.get_or_init(|| (entry, summary.flags)).clone())
    }

    /// The directory called `name` in this one, ready to be changed.
    fn folder_mut(&mut self, trees: &Trees, name: &[u8], path: &VaultPath) -> Result<&mut Folder> {
        let stored = match self.changes.get(name) {
            Some(Pending::Folder(_)) => None,
            Some(Pending::Item(item)) => Some(item.entry.clone()),
            Some(Pending::Removed) => return Err(Error::PathNotFound { path: path.clone() }),
            None => match trees.child(self.base, name)? {
                Some(entry) => Some(entry),
                None => return Err(Error::PathNotFound { path: path.clone() }),
            },
        };
        if let Some(entry) = stored {
            let Kind::Directory { tree, .. } = entry.kind else {
                return Err(Error::NotADirectory { path: path.clone() });
            };
            let folder = Box::new(Folder::new(entry.meta, tree));
            self.changes.insert(name.to_vec(), Pending::Folder(folder));
        }
        self.built.take();
        match self.changes.get_mut(name) {
            Some(Pending::Folder(folder)) => Ok(folder),
            _ => Err(Error::NotADirectory { path: path.clone() }),
        }
    }
}

impl Edit {
    pub(crate) fn new(trees: Trees, base: RootId) -> Result<Edit> {
        let base = trees.loaded_root(base)?;
        let top = Folder::new(base.root.top.meta.clone(), base.root.tree());
        Ok(Edit {
            trees,
            base,
            top,
            links: None,
        })
    }

    /// What is at `path`, pending changes included; follows no symlink. Asking for a directory
    /// with changes in it stores those, so ask once rather than after each change.
    pub fn get(&self, path: &VaultPath) -> Result<Option<Entry>> {
        match self.find(path)? {
            Some(Found::Item(item)) => Ok(Some(item.entry)),
            Some(Found::Folder(folder)) => Ok(Some(folder.build(&self.trees)?.0)),
            None => Ok(None),
        }
    }

    /// What is in the directory at `path`, pending changes included, sorted by name.
    pub fn list(&self, path: &VaultPath) -> Result<Vec<(Vec<u8>, Entry)>> {
        match self.find(path)? {
            None => Err(Error::PathNotFound { path: path.clone() }),
            Some(Found::Item(item)) => match item.entry.kind {
                Kind::Directory { tree, .. } => self.trees.list(tree),
                _ => Err(Error::NotADirectory { path: path.clone() }),
            },
            Some(Found::Folder(folder)) => {
                let mut entries: BTreeMap<_, _> =
                    self.trees.list(folder.base)?.into_iter().collect();
                for (name, pending) in &folder.changes {
                    let entry = match pending {
                        Pending::Item(item) => Some(item.entry.clone()),
                        Pending::Folder(folder) => Some(folder.build(&self.trees)?.0),
                        Pending::Removed => None,
                    };
                    match entry {
                        Some(entry) => entries.insert(name.clone(), entry),
                        None => entries.remove(name),
                    };
                }
                Ok(entries.into_iter().collect())
            }
        }
    }

    /// Puts `entry` at `path` in place of what is there. A directory brings its whole subtree,
    /// hard links included, so `get`, `put`, `remove` in this order are a rename. Its parent must
    /// be a directory. A hard-linked file changes at this name alone: names that end up
    /// different are no longer one file.
    pub fn put(&mut self, path: &VaultPath, entry: Entry) -> Result<()> {
        let mut item = Item {
            name: Vec::new(),
            entry,
            beneath: Flags::default(),
        };
        if let Kind::Directory { tree, files, bytes } = &mut item.entry.kind {
            let summary = self.trees.summary(*tree)?;
            (*files, *bytes, item.beneath) = (summary.files, summary.bytes, summary.flags);
        }
        let Some(name) = path.file_name() else {
            return self.put_top(item);
        };
        item.name = name.to_vec();
        // First of all, so that a refusal leaves the link index alone.
        self.parent_mut(path)?;
        self.forget_links(path)?;
        self.add_links(path, &item)?;
        self.set(path, Pending::Item(item))
    }

    /// Changes the metadata of what is at `path`, also of "/". A hard-linked file has one, so it
    /// changes under all its names.
    pub fn set_meta(&mut self, path: &VaultPath, meta: Meta) -> Result<()> {
        let item = match self.find(path)? {
            None => return Err(Error::PathNotFound { path: path.clone() }),
            Some(Found::Item(item)) => item,
            Some(Found::Folder(_)) => return self.set_folder_meta(path, meta),
        };
        if item.entry.is_dir() {
            return self.set_folder_meta(path, meta);
        }
        for name in self.linked_names(path)? {
            if let Some(Found::Item(mut item)) = self.find(&name)? {
                item.entry.meta = meta.clone();
                self.set(&name, Pending::Item(item))?;
            }
        }
        Ok(())
    }

    /// Removes what is at `path`, with everything beneath it.
    pub fn remove(&mut self, path: &VaultPath) -> Result<()> {
        if path.is_root() {
            return Err(Error::TopDirectory {
                path: path.clone(),
                action: "removed",
            });
        }
        if self.find(path)?.is_none() {
            return Err(Error::PathNotFound { path: path.clone() });
        }
        self.forget_links(path)?;
        self.set(path, Pending::Removed)
    }

    /// A link id for a new hard-linked file first seen at `path`, which no other file here has.
    /// `finish` replaces it by the one that follows from the file's first name.
    pub fn fresh_link(&self, path: &VaultPath) -> LinkId {
        let is_used = |id| match &self.links {
            Some(links) => links.is_used(id),
            None => self.base.root.links.contains_key(&id),
        };
        let mut id = LinkId::of(path);
        while is_used(id) {
            id = LinkId::hash(id.as_bytes());
        }
        id
    }

    /// All names of the file at `path`, itself included: more than one only for hard links.
    pub fn linked_names(&self, path: &VaultPath) -> Result<Vec<VaultPath>> {
        let names = match (&self.links, self.find(path)?) {
            (_, None) => return Err(Error::PathNotFound { path: path.clone() }),
            (Some(links), _) => links.names(path),
            (None, Some(Found::Item(item))) => item
                .entry
                .link()
                .and_then(|link| self.base.root.links.get(&link)),
            (None, Some(Found::Folder(_))) => None,
        };
        Ok(names.map_or_else(
            || vec![path.clone()],
            |names| names.iter().cloned().collect(),
        ))
    }

    /// Stores the edited tree. Equal content gives an equal root, whatever the way to it.
    pub fn finish(mut self) -> Result<RootId> {
        let links = match self.links.take() {
            None => self.base.links,
            Some(links) => self.settle_links(links)?,
        };
        let (top, beneath) = self.top.build(&self.trees)?;
        let has_xattrs = beneath.xattrs || !top.meta.xattrs.is_empty();
        self.trees.put_root(
            &RootRecord {
                top,
                has_xattrs,
                links,
            },
            beneath,
        )
    }

    /// Gives every touched group the id that follows from its first name, parts names whose
    /// entries differ, and makes a file with one name an ordinary one.
    fn settle_links(&mut self, mut links: Links) -> Result<Option<avfs_store::ObjectId>> {
        let mut settled = Vec::new();
        for (_, paths) in links.take_touched() {
            let mut files: Vec<(Entry, Vec<VaultPath>)> = Vec::new();
            for path in paths {
                let Some(Found::Item(item)) = self.find(&path)? else {
                    continue;
                };
                match files.iter_mut().find(|(entry, _)| *entry == item.entry) {
                    Some((_, names)) => names.push(path),
                    None => files.push((item.entry, vec![path])),
                }
            }
            for (entry, names) in files {
                let link = (names.len() > 1).then(|| LinkId::of(&names[0]));
                if entry.link() != link {
                    names
                        .iter()
                        .try_for_each(|name| self.set_link(name, &entry, link))?;
                }
                settled.extend(link.map(|link| (link, names.into_iter().collect())));
            }
        }
        settled
            .into_iter()
            .for_each(|(link, names)| links.put_back(link, names));
        let groups = links.into_groups();
        if groups.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.trees.store().put(&codec::encode_links(&groups))?))
    }

    fn set_link(&mut self, path: &VaultPath, entry: &Entry, to: Option<LinkId>) -> Result<()> {
        let mut entry = entry.clone();
        if let Kind::File { link, .. } = &mut entry.kind {
            *link = to;
        }
        let name = path.file_name().unwrap_or_default().to_vec();
        self.set(
            path,
            Pending::Item(Item {
                name,
                entry,
                beneath: Flags::default(),
            }),
        )
    }

    fn find(&self, path: &VaultPath) -> Result<Option<Found<'_>>> {
        let mut at = Found::Folder(&self.top);
        for name in path.components() {
            let next = match &at {
                Found::Folder(folder) => match folder.changes.get(name) {
                    Some(Pending::Item(item)) => Some(Found::Item(item.clone())),
                    Some(Pending::Folder(folder)) => Some(Found::Folder(folder)),
                    Some(Pending::Removed) => None,
                    None => self.trees.child_item(folder.base, name)?.map(Found::Item),
                },
                Found::Item(item) => match item.entry.kind {
                    Kind::Directory { tree, .. } => {
                        self.trees.child_item(tree, name)?.map(Found::Item)
                    }
                    _ => None,
                },
            };
            match next {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    fn folder_mut(&mut self, path: &VaultPath) -> Result<&mut Folder> {
        let mut folder = &mut self.top;
        let mut at = VaultPath::root();
        for name in path.components() {
            at = at.child(name);
            folder = folder.folder_mut(&self.trees, name, &at)?;
        }
        folder.built.take();
        Ok(folder)
    }

    fn parent_mut(&mut self, path: &VaultPath) -> Result<&mut Folder> {
        self.folder_mut(&path.parent().unwrap_or_default())
    }

    fn set(&mut self, path: &VaultPath, pending: Pending) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_vec();
        self.parent_mut(path)?.changes.insert(name, pending);
        Ok(())
    }

    fn set_folder_meta(&mut self, path: &VaultPath, meta: Meta) -> Result<()> {
        self.folder_mut(path)?.meta = meta;
        Ok(())
    }

    fn put_top(&mut self, item: Item) -> Result<()> {
        let Kind::Directory { tree, .. } = item.entry.kind else {
            return Err(Error::NotADirectory {
                path: VaultPath::root(),
            });
        };
        self.forget_links(&VaultPath::root())?;
        self.add_links(&VaultPath::root(), &item)?;
        self.top = Folder::new(item.entry.meta, tree);
        Ok(())
    }

    /// Gives the hard-linked names at and beneath `path` groups of their own.
    pub(crate) fn part_links(&mut self, path: &VaultPath) -> Result<()> {
        let parted = match &mut self.links {
            Some(links) => links.part(path),
            None => Vec::new(),
        };
        for (name, link) in parted {
            if let Some(Found::Item(item)) = self.find(&name)? {
                self.set_link(&name, &item.entry, Some(link))?;
            }
        }
        Ok(())
    }

    /// The link index, read from the base when first needed.
    fn links_mut(&mut self) -> &mut Links {
        let groups = &self.base.root.links;
        self.links.get_or_insert_with(|| Links::new(groups.clone()))
    }

    fn forget_links(&mut self, path: &VaultPath) -> Result<()> {
        if self.links.is_none() {
            let linked = !self.base.root.links.is_empty()
                && match self.find(path)? {
                    Some(Found::Item(item)) => item.summary().flags.links,
                    // It has changes; whether links are beneath, only the index can tell.
                    Some(Found::Folder(_)) => true,
                    None => false,
                };
            if !linked {
                return Ok(());
            }
        }
        self.links_mut().remove(path);
        Ok(())
    }

    fn add_links(&mut self, path: &VaultPath, item: &Item) -> Result<()> {
        if let Some(link) = item.entry.link() {
            self.links_mut().insert(path.clone(), link);
        }
        let Kind::Directory { tree, .. } = item.entry.kind else {
            return Ok(());
        };
        if !item.beneath.links {
            return Ok(());
        }
        let mut items = Vec::new();
        self.trees.collect(&*self.trees.node(tree)?, &mut items)?;
        items
            .iter()
            .try_for_each(|below| self.add_links(&path.child(&below.name), below))
    }
}
