//! The hard links of a root while it is being edited: which names are one file.

use std::collections::{BTreeMap, BTreeSet};

use super::codec::LinkMap;
use crate::{LinkId, VaultPath};

#[derive(Default)]
pub struct Links {
    groups: LinkMap,
    by_path: BTreeMap<VaultPath, LinkId>,
    /// Groups that have gained or lost a name, or whose names may now differ.
    touched: BTreeSet<LinkId>,
}

impl Links {
    pub fn new(groups: LinkMap) -> Links {
        let mut by_path = BTreeMap::new();
        for (id, paths) in &groups {
            by_path.extend(paths.iter().map(|path| (path.clone(), *id)));
        }
        Links {
            groups,
            by_path,
            touched: BTreeSet::new(),
        }
    }

    pub fn is_used(&self, id: LinkId) -> bool {
        self.groups.contains_key(&id)
    }

    /// All names of the file at `path`; none if it has only this one.
    pub fn names(&self, path: &VaultPath) -> Option<&BTreeSet<VaultPath>> {
        self.groups.get(self.by_path.get(path)?)
    }

    pub fn insert(&mut self, path: VaultPath, id: LinkId) {
        self.touched.insert(id);
        self.groups.entry(id).or_default().insert(path.clone());
        self.by_path.insert(path, id);
    }

    /// Parts the names at and beneath `path` from names elsewhere that are the same file.
    /// Says which id each has now.
    pub fn part(&mut self, path: &VaultPath) -> Vec<(VaultPath, LinkId)> {
        let mut names = self.beneath(path);
        let mut parted: BTreeMap<LinkId, LinkId> = BTreeMap::new();
        for (name, id) in &mut names {
            let own = match parted.get(id) {
                Some(own) => *own,
                None => *parted.entry(*id).or_insert(self.unused(name)),
            };
            self.forget(name, *id);
            self.insert(name.clone(), own);
            *id = own;
        }
        names
    }

    /// An id that no file here has.
    pub fn unused(&self, path: &VaultPath) -> LinkId {
        let mut id = LinkId::of(path);
        while self.is_used(id) {
            id = LinkId::hash(id.as_bytes());
        }
        id
    }

    fn beneath(&self, path: &VaultPath) -> Vec<(VaultPath, LinkId)> {
        let subtree = self
            .by_path
            .range(path..)
            .take_while(|(name, _)| name.starts_with(path));
        subtree.map(|(name, id)| (name.clone(), *id)).collect()
    }

    fn forget(&mut self, name: &VaultPath, id: LinkId) {
        self.by_path.remove(name);
        self.touched.insert(id);
        if let Some(group) = self.groups.get_mut(&id) {
            group.remove(name);
            if group.is_empty() {
                self.groups.remove(&id);
            }
        }
    }

    /// Forgets `path` and everything beneath it.
    pub fn remove(&mut self, path: &VaultPath) {
        for (name, id) in self.beneath(path) {
            self.forget(&name, id);
        }
    }

    /// Takes out the groups that must be looked at again before the root is stored.
    pub fn take_touched(&mut self) -> Vec<(LinkId, BTreeSet<VaultPath>)> {
        let touched = std::mem::take(&mut self.touched);
        touched
            .into_iter()
            .filter_map(|id| Some((id, self.groups.remove(&id)?)))
            .collect()
    }

    pub fn put_back(&mut self, id: LinkId, paths: BTreeSet<VaultPath>) {
        self.groups.insert(id, paths);
    }

    pub fn into_groups(self) -> LinkMap {
        self.groups
    }
}
