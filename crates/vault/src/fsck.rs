//! Checking: every stored byte against its hash, every reference against what is stored.

use std::collections::{BTreeMap, HashMap, HashSet};

use avfs_store::rusqlite::{self, Connection};
use avfs_store::{ObjectId, Store};

use crate::codec;
use crate::node::Node;
use crate::parts::{DEPTH_MAX, Part};
use crate::schema::ROOTS;
use crate::vaults::vault_row;
use crate::{
    Content, JournalCheck, Kind, Result, RootId, TreeId, Trees, Vault, VaultId, VaultName,
    VaultPath, Vaults,
};

const PAGE: usize = 10_000;

/// What a check of everything found.
#[derive(Clone, Debug)]
pub struct FsckReport {
    pub objects: u64,
    /// Of their content, before compression.
    pub bytes: u64,
    /// Different roots that were walked.
    pub roots: u64,
    /// Objects that are damaged or missing, each with where that matters.
    pub damaged: Vec<Damage>,
    /// What the database itself complains of.
    pub database: Vec<String>,
    /// None when it cannot be read.
    pub journal: Option<JournalCheck>,
}

/// An object that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub object: ObjectId,
    pub problem: String,
    /// Empty when nothing refers to it.
    pub seen: Vec<Sighting>,
}

/// A path that a damaged object concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub vault: VaultName,
    pub path: VaultPath,
    /// The states of the vault in which it does: `head`, `v3`, `checkpoint NAME`…
    pub states: Vec<String>,
}

impl FsckReport {
    pub fn is_clean(&self) -> bool {
        let intact = matches!(self.journal, Some(JournalCheck::Intact { .. }));
        self.damaged.is_empty() && self.database.is_empty() && intact
    }
}

impl Vaults {
    /// Reads everything there is. Others may write meanwhile; nothing is removed.
    pub fn fsck(&self) -> FsckReport {
        let _nothing_goes = self.shared().collecting();
        let mut report = FsckReport {
            objects: 0,
            bytes: 0,
            roots: 0,
            damaged: Vec::new(),
            database: Vec::new(),
            journal: None,
        };
        // A database that cannot be read is a finding like any other; the rest is still looked at.
        let problems = self.store().check_database();
        report.database = problems.unwrap_or_else(|error| vec![error.to_string()]);
        match self.verify_journal() {
            Ok(journal) => report.journal = Some(journal),
            Err(error) => report.database.push(format!("journal: {error}")),
        }
        let mut problems = Problems::new();
        if let Err(error) = check_objects(self.store(), &mut problems, &mut report) {
            report.database.push(format!("objects: {error}"));
        }
        let states = self.store().read(all_states).unwrap_or_else(|error| {
            report.database.push(format!("vaults: {error}"));
            States::new()
        });
        let mut check = Check {
            trees: self.trees(),
            problems: &mut problems,
            bad: HashMap::new(),
        };
        let mut sightings = Sightings::new();
        for (root, states) in &states {
            report.roots += 1;
            if check.root(*root) {
                let found = check.paths(*root);
                for (object, path) in found {
                    for (order, vault, state) in states {
                        let key = (object, vault.clone(), path.clone());
                        let known = sightings.entry(key).or_default();
                        known.insert(*order, state.clone());
                    }
                }
            }
        }
        report.damaged = damages(problems, sightings);
        report.database.sort();
        report.database.dedup();
        report
    }
}

type Problems = BTreeMap<ObjectId, String>;
type Sightings = BTreeMap<(ObjectId, VaultName, VaultPath), BTreeMap<usize, String>>;

/// Verifies every object that the index knows.
fn check_objects(store: &Store, problems: &mut Problems, report: &mut FsckReport) -> Result<()> {
    let mut after = None;
    loop {
        let page = store.list(after, PAGE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.id);
        for stored in &page {
            report.objects += 1;
            report.bytes += stored.size;
            match store.verify(stored.id) {
                Ok(()) => {}
                Err(avfs_store::Error::Corrupt { id, reason }) => {
                    problems.insert(id, reason);
                }
                Err(error @ avfs_store::Error::Io { .. }) => {
                    problems.insert(stored.id, error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Walks trees, each node once, and knows of each whether something beneath it is wrong.
struct Check<'a> {
    trees: &'a Trees,
    problems: &'a mut Problems,
    /// Of roots, nodes and chunk lists that were walked: whether anything in them is wrong.
    bad: HashMap<ObjectId, bool>,
}

enum Visit {
    Enter(ObjectId),
    /// With what is known of the node itself, and the nodes below it.
    Leave(ObjectId, bool, Vec<ObjectId>),
}

impl Check<'_> {
    /// Whether anything is wrong with a root or with what it refers to.
    fn root(&mut self, root: RootId) -> bool {
        let id = root.object();
        if let Some(bad) = self.bad.get(&id) {
            return *bad;
        }
        let record = self.open(id, "it is no root", codec::decode_root);
        let bad = match record {
            None => true,
            Some(record) => {
                let links = record.links.is_some_and(|links| {
                    self.open(links, "it is no link index", codec::decode_links)
                        .is_none()
                });
                let tree = match record.top.kind {
                    Kind::Directory { tree, .. } => tree,
                    _ => TreeId::EMPTY,
                };
                self.node(tree) || links
            }
        };
        self.bad.insert(id, bad);
        bad
    }

    /// Without recursion: however deep a tree is, it must not bring the check down.
    fn node(&mut self, tree: TreeId) -> bool {
        let mut ahead = vec![Visit::Enter(tree.object())];
        while let Some(visit) = ahead.pop() {
            match visit {
                Visit::Enter(id) if self.bad.contains_key(&id) => {}
                Visit::Enter(id) => {
                    let (own, below) = self.look_into(id);
                    ahead.push(Visit::Leave(id, own, below.clone()));
                    ahead.extend(below.into_iter().map(Visit::Enter));
                }
                Visit::Leave(id, own, below) => {
                    let bad = own || below.iter().any(|id| self.bad.get(id) == Some(&true));
                    self.bad.insert(id, bad);
                }
            }
        }
        self.bad.get(&tree.object()) == Some(&true)
    }

    /// Whether something is wrong with a node or with the files in it, and the nodes below it.
    fn look_into(&mut self, id: ObjectId) -> (bool, Vec<ObjectId>) {
        if id == TreeId::EMPTY.object() {
            return (false, Vec::new());
        }
        match self.open(id, "it is no directory", codec::decode_node) {
            None => (true, Vec::new()),
            Some(Node::Branch { children, .. }) => {
                (false, children.iter().map(|child| child.id).collect())
            }
            Some(Node::Leaf(items)) => {
                let (mut bad, mut below) = (false, Vec::new());
                for item in &items {
                    match item.entry.kind {
                        Kind::Directory { tree, .. } => below.push(tree.object()),
                        Kind::File { content, size, .. } => bad |= self.content(content, size),
                        Kind::Symlink { .. } | Kind::Fifo => {}
                    }
                }
                (bad, below)
            }
        }
    }

    fn content(&mut self, content: Content, size: u64) -> bool {
        let list = match content {
            Content::EMPTY => return false,
            Content::Object(id) => return !self.is_good(id),
            Content::Chunks(list) => list,
        };
        self.parts(list, size, 0)
    }

    /// Whether something is wrong with a list or what is in it. Lists of lists are few levels deep.
    fn parts(&mut self, list: ObjectId, size: u64, depth: usize) -> bool {
        if let Some(bad) = self.bad.get(&list) {
            return *bad;
        }
        let bad = match self.open(list, "it is no chunk list", codec::decode_parts) {
            None => true,
            Some(parts) => {
                if parts.iter().map(Part::length).sum::<u64>() != size {
                    let problem = "its chunks have another length than its file";
                    self.problems.insert(list, problem.to_owned());
                }
                if depth == DEPTH_MAX {
                    let problem = "its lists are too deep";
                    self.problems.insert(list, problem.to_owned());
                }
                let mut bad = self.problems.contains_key(&list);
                for part in &parts {
                    bad |= match *part {
                        Part::Hole { .. } => false,
                        Part::Chunk { id, .. } => !self.is_good(id),
                        Part::List { id, length, .. } => {
                            depth < DEPTH_MAX && self.parts(id, length, depth + 1)
                        }
                    };
                }
                bad
            }
        };
        self.bad.insert(list, bad);
        bad
    }

    /// Reads an object that must be of one kind, and notes what is wrong with it.
    fn open<T>(
        &mut self,
        id: ObjectId,
        otherwise: &str,
        decode: fn(&[u8]) -> Option<T>,
    ) -> Option<T> {
        if !self.is_good(id) {
            return None;
        }
        let problem = match self.trees.store().get(id) {
            Ok(bytes) => match decode(&bytes) {
                Some(decoded) => return Some(decoded),
                None => otherwise.to_owned(),
            },
            Err(error) => error.to_string(),
        };
        self.problems.insert(id, problem);
        None
    }

    /// Whether the object is there and has not been found to be damaged.
    fn is_good(&mut self, id: ObjectId) -> bool {
        if self.problems.contains_key(&id) {
            return false;
        }
        let problem = match self.trees.store().contains(id) {
            Ok(true) => return true,
            Ok(false) => "it is missing".to_owned(),
            Err(error) => error.to_string(),
        };
        self.problems.insert(id, problem);
        false
    }

    /// The objects with problems beneath a root that has been walked, and the paths they are at.
    fn paths(&self, root: RootId) -> Vec<(ObjectId, VaultPath)> {
        let mut found = Vec::new();
        let top = VaultPath::root();
        if self.problems.contains_key(&root.object()) {
            return vec![(root.object(), top)];
        }
        let bytes = self.trees.store().get(root.object());
        let Some(record) = bytes.ok().and_then(|bytes| codec::decode_root(&bytes)) else {
            return found;
        };
        let links = record.links.filter(|id| self.problems.contains_key(id));
        found.extend(links.map(|id| (id, top.clone())));
        if let Kind::Directory { tree, .. } = record.top.kind {
            self.paths_in(tree.object(), &mut found);
        }
        found
    }

    fn paths_in(&self, top: ObjectId, found: &mut Vec<(ObjectId, VaultPath)>) {
        let mut ahead = vec![(top, VaultPath::root())];
        while let Some((id, path)) = ahead.pop() {
            if self.problems.contains_key(&id) {
                found.push((id, path));
                continue;
            }
            if self.bad.get(&id) != Some(&true) {
                continue;
            }
            let bytes = self.trees.store().get(id);
            match bytes.ok().and_then(|bytes| codec::decode_node(&bytes)) {
                None => {}
                Some(Node::Branch { children, .. }) => {
                    ahead.extend(children.iter().map(|child| (child.id, path.clone())));
                }
                Some(Node::Leaf(items)) => {
                    for item in items {
                        let path = path.child(&item.name);
                        match item.entry.kind {
                            Kind::Directory { tree, .. } => ahead.push((tree.object(), path)),
                            Kind::File { content, .. } => self.paths_of(content, &path, found),
                            Kind::Symlink { .. } | Kind::Fifo => {}
                        }
                    }
                }
            }
        }
    }

    fn paths_of(&self, content: Content, path: &VaultPath, found: &mut Vec<(ObjectId, VaultPath)>) {
        let (Content::Object(id) | Content::Chunks(id)) = content;
        if self.problems.contains_key(&id) {
            found.push((id, path.clone()));
        }
        if let Content::Chunks(list) = content {
            let (mut ahead, mut seen) = (vec![list], HashSet::new());
            while let Some(list) = ahead.pop() {
                if !seen.insert(list) {
                    continue;
                }
                // A list that cannot be read has been named where it stands.
                for part in self.trees.parts_of(list).unwrap_or_default() {
                    let id = match part {
                        Part::Hole { .. } => continue,
                        Part::Chunk { id, .. } => id,
                        Part::List { id, .. } => {
                            ahead.push(id);
                            id
                        }
                    };
                    if self.problems.contains_key(&id) {
                        found.push((id, path.clone()));
                    }
                }
            }
        }
    }
}

fn damages(problems: Problems, sightings: Sightings) -> Vec<Damage> {
    let mut damages: BTreeMap<ObjectId, Damage> = BTreeMap::new();
    for (object, problem) in problems {
        let seen = Vec::new();
        damages.insert(
            object,
            Damage {
                object,
                problem,
                seen,
            },
        );
    }
    for ((object, vault, path), states) in sightings {
        if let Some(damage) = damages.get_mut(&object) {
            damage.seen.push(Sighting {
                vault,
                path,
                states: states.into_values().collect(),
            });
        }
    }
    damages.into_values().collect()
}

/// The order is that of the rows: heads, beginnings, versions, checkpoints.
type States = BTreeMap<RootId, Vec<(usize, VaultName, String)>>;

/// Every root that a row names, with all that it is called.
fn all_states(connection: &Connection) -> Result<States> {
    let mut select = connection.prepare("SELECT * FROM vault")?;
    let vaults = select.query_map([], vault_row)?;
    let vaults = vaults.collect::<rusqlite::Result<Vec<Vault>>>()?;
    let names: HashMap<VaultId, VaultName> = vaults
        .into_iter()
        .map(|vault| (vault.id, vault.name))
        .collect();
    let mut select = connection.prepare(ROOTS)?;
    let rows = select.query_map([], |row| {
        let vault = VaultId::from_bytes(row.get(0)?);
        let root = RootId::new(ObjectId::from_bytes(row.get(2)?));
        Ok((vault, root, row.get::<_, String>(3)?))
    })?;
    let mut states = States::new();
    for (order, row) in rows.enumerate() {
        let (vault, root, state) = row?;
        if let Some(name) = names.get(&vault) {
            let known = states.entry(root).or_default();
            known.push((order, name.clone(), state));
        }
    }
    Ok(states)
}
