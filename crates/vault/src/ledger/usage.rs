//! What a home holds: objects, bytes, and what each vault is about.

use std::collections::HashMap;
use std::time::Duration;

use avfs_store::{Compacted, DiskUsage, ObjectId, StoreStats, Swept, WayOut};

use crate::tree::node::Node;
use crate::{
    Damage, GcMode, GcOptions, Kind, Principal, Result, RootId, TreeId, Vault, VaultId, Vaults,
};

#[derive(Clone, Debug)]
pub struct HomeUsage {
    pub store: StoreStats,
    pub disk: DiskUsage,
    /// What a gc without grace would find dead now.
    pub dead: Swept,
    /// What cannot be read: what counts as dead may belong to it.
    pub held_back: Vec<Damage>,
    pub vaults: Vec<VaultUsage>,
}

#[derive(Clone, Debug)]
pub struct VaultUsage {
    pub vault: Vault,
    pub files: u64,
    pub directories: u64,
    /// Of all files, as a reader would count them.
    pub bytes: u64,
    pub versions: u64,
    pub checkpoints: u64,
    /// What is wrong with it. What could not be counted is left out of the figures.
    pub damaged: Option<String>,
}

impl HomeUsage {
    /// What all vaults would take if none shared anything.
    pub fn logical_bytes(&self) -> u64 {
        let bytes = self.vaults.iter().map(|usage| usage.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// What the home takes on the disk, layers excepted.
    pub fn on_disk(&self) -> u64 {
        let disk = &self.disk;
        disk.pack_bytes + disk.loose_bytes + disk.database_bytes
    }
}

impl Vaults {
    /// Counts everything. `roots` are those in use that no vault needs to name.
    pub fn usage(&self, roots: Vec<RootId>) -> Result<HomeUsage> {
        let options = GcOptions {
            mode: GcMode::DryRun,
            grace: Duration::from_secs(u64::MAX),
            roots,
        };
        // Whatever goes meanwhile, what was listed can be read to the end.
        let _nothing_goes = self.shared().collecting();
        let collected = self.collect(&options, &Principal::SYSTEM)?;
        let listed = self.list()?;
        // Counted in one go: a vault that is deleted meanwhile is simply not there.
        let (versions, checkpoints) = (self.version_counts()?, self.checkpoint_counts()?);
        let mut damaged = self.damaged(listed.iter().map(|vault| vault.head))?;
        let mut known = HashMap::new();
        let mut vaults = Vec::new();
        for vault in listed {
            let mut usage = VaultUsage {
                files: 0,
                directories: 0,
                bytes: 0,
                versions: versions.get(&vault.id).copied().unwrap_or(0),
                checkpoints: checkpoints.get(&vault.id).copied().unwrap_or(0) as u64,
                damaged: None,
                vault,
            };
            if let Err(error) = self.count(&mut usage, &mut known) {
                match error.is_damage() {
                    true => usage.damaged = Some(error.to_string()),
                    false => return Err(error),
                }
            }
            if let Some(problem) = damaged.remove(&usage.vault.head) {
                usage.damaged = Some(problem);
            }
            vaults.push(usage);
        }
        Ok(HomeUsage {
            store: self.stats()?,
            disk: self.store().disk_usage()?,
            dead: collected.dead,
            held_back: collected.held_back,
            vaults,
        })
    }

    fn count(&self, usage: &mut VaultUsage, known: &mut HashMap<ObjectId, u64>) -> Result<()> {
        let root = self.trees().root(usage.vault.head)?;
        (usage.files, usage.bytes) = (root.files(), root.bytes());
        usage.directories = self.directories(root.tree(), known)?;
        Ok(())
    }

    /// How many versions each vault has.
    fn version_counts(&self) -> Result<HashMap<VaultId, u64>> {
        let counts = self.store().read(|rows| rows.version_counts())?;
        let counts = counts.into_iter();
        Ok(counts
            .map(|(id, count)| (VaultId::from_bytes(id), count))
            .collect())
    }

    /// Gives back what is dead on the disk: in packs, and in the database.
    pub fn compact(&self) -> Result<Compacted> {
        let _alone = self.shared().collecting();
        self.way_out(WayOut::Large, || {
            let compacted = self.store().compact()?;
            self.store().vacuum()?;
            Ok(compacted)
        })
    }

    /// Directories beneath a tree. Each node is read once, however often it appears, and without
    /// recursion: a small store can hold a tree of any size and depth.
    fn directories(&self, tree: TreeId, known: &mut HashMap<ObjectId, u64>) -> Result<u64> {
        let mut ahead = vec![Visit::Enter(tree.object())];
        while let Some(visit) = ahead.pop() {
            match visit {
                Visit::Enter(id) if known.contains_key(&id) => {}
                Visit::Enter(id) => {
                    let (own, below) = self.look_into(id)?;
                    ahead.push(Visit::Leave(id, own, below.clone()));
                    ahead.extend(below.into_iter().map(Visit::Enter));
                }
                Visit::Leave(id, own, below) => {
                    let count = |id: &ObjectId| known.get(id).copied().unwrap_or(0);
                    let total = below.iter().map(count).fold(own, u64::saturating_add);
                    known.insert(id, total);
                }
            }
        }
        Ok(known.get(&tree.object()).copied().unwrap_or(0))
    }

    /// The directories named in a node, and the nodes below it.
    fn look_into(&self, id: ObjectId) -> Result<(u64, Vec<ObjectId>)> {
        let tree = TreeId::new(id);
        Ok(match &*self.trees().node(tree)? {
            Node::Branch { children, .. } => (0, children.iter().map(|child| child.id).collect()),
            Node::Leaf(items) => {
                let below = items.iter().filter_map(|item| match item.entry.kind {
                    Kind::Directory { tree, .. } => Some(tree.object()),
                    _ => None,
                });
                let below: Vec<_> = below.collect();
                (below.len() as u64, below)
            }
        })
    }
}

enum Visit {
    Enter(ObjectId),
    Leave(ObjectId, u64, Vec<ObjectId>),
}
