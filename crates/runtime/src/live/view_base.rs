//! What a view stands on: where that will do, a root of which the kernel knows the names already.
//!
//! Of a root that nobody looked at yet the kernel knows no name, and asking the lens for each takes a while. But a
//! fork of a vault in use, or a vault that a file verb changed between two commands, differs only in a few files from a
//! root that is shown: its view stands on that root, with those files in its layer from the start.

use std::path::PathBuf;
use std::sync::Arc;

use avfs_vault::{Change, Entry, Hold, RootId, Trees, Vault};
use avfs_view::{HashCache, Layer, LayerUse, LensRoot};

use crate::Result;
use crate::live::engine::Engine;
use crate::live::layer_commit::make_ready;
use crate::live::served::begin_at_head;
use crate::live::view::remove_in_background;
use crate::owners::layer_owner;
use crate::runtime::Runtime;

/// To ask for the names of fewer files takes no longer than to see that a layer amounts to the head.
const WORTH_IT: u64 = 1_000;
/// To put one path into a layer takes an eighth of what it takes to ask for so many names,
const FILES_PER_CHANGE: u64 = 64;
/// and to put so many bytes there, of what it takes to ask for one. git's index, which most of its commands touch, has
/// a hundred for each file.
const BYTES_PER_FILE: u64 = 256;
const MOST_CHANGES: u64 = 64;

/// A root that is shown for as long as this lives.
pub(crate) struct ViewBase {
    pub root: RootId,
    /// None where the root is shown by other means.
    pub lens: Option<LensRoot>,
    /// Where the keeper and its helpers see it.
    pub shown: PathBuf,
    /// Versions may be forgotten; what a layer stands on may not.
    pub _hold: Hold,
}

impl ViewBase {
    pub fn at(runtime: &Runtime, engine: &Engine, root: RootId) -> Result<ViewBase> {
        let vaults = &runtime.inner.vaults;
        let hold = vaults.hold(root);
        let (lens, shown) = engine.show(vaults.trees(), root)?;
        Ok(ViewBase {
            root,
            lens,
            shown,
            _hold: hold,
        })
    }
}

/// What a view of a vault begins with.
pub(crate) struct Beginning {
    pub base: Arc<ViewBase>,
    pub layer: Layer,
    pub cache: HashCache,
    /// How many names the layer holds.
    pub entries: usize,
}

impl Beginning {
    /// Begins at the vault's head, or at a base from which it is not far to there.
    pub fn of(
        runtime: &Runtime,
        engine: &Arc<Engine>,
        vault: &Vault,
        near: &[Arc<ViewBase>],
    ) -> Result<Beginning> {
        for base in near {
            if let Some(beginning) = begin_at(runtime, engine, vault, base)? {
                return Ok(beginning);
            }
        }
        begin_at_head(runtime, engine, vault)
    }

    /// An empty layer on a base; where that is not the head, only the draft of one.
    pub fn on(runtime: &Runtime, vault: &Vault, base: Arc<ViewBase>) -> Result<Beginning> {
        let inner = &runtime.inner;
        let top = inner.vaults.trees().root(base.root)?.top.meta.clone();
        let (layers, sandbox) = (&inner.layers, LayerUse::Sandbox);
        let layer = match base.root == vault.head {
            true => layers.create(vault.id, vault.head, &top, sandbox)?,
            false => layers.draft(vault.id, (base.root, vault.head), &top, sandbox)?,
        };
        Ok(Beginning {
            base,
            layer,
            cache: HashCache::default(),
            entries: 0,
        })
    }

    /// Fills the layer with what the head has otherwise. False if that does not give the head, to the last detail.
    pub fn lead(&mut self, runtime: &Runtime, engine: &Engine, changes: &[Change]) -> Result<bool> {
        let trees = runtime.inner.vaults.trees();
        self.layer.fill(trees, changes, layer_owner())?;
        let entries = make_ready(runtime, engine, &self.layer, &mut self.cache)?;
        self.entries = entries.unwrap_or_default();
        Ok(entries.is_some())
    }
}

/// Begins at this base, if that is shown and worth it.
fn begin_at(
    runtime: &Runtime,
    engine: &Arc<Engine>,
    vault: &Vault,
    base: &Arc<ViewBase>,
) -> Result<Option<Beginning>> {
    if !base.lens.as_ref().is_some_and(|it| engine.shows(it)) {
        return Ok(None);
    }
    let Some(changes) = way(runtime, base.root, vault.head)? else {
        return Ok(None);
    };
    let mut beginning = Beginning::on(runtime, vault, base.clone())?;
    if base.root == vault.head {
        return Ok(Some(beginning));
    }
    // It is only for speed: what stands in its way stands in the way of nothing else, or will be met again.
    if let Ok(true) = beginning.lead(runtime, engine, &changes) {
        return Ok(Some(beginning));
    }
    remove_in_background(beginning.layer.retire()?, engine.clone());
    Ok(None)
}

/// What leads from one root to another, if that is little.
fn way(runtime: &Runtime, from: RootId, to: RootId) -> Result<Option<Vec<Change>>> {
    if from == to {
        return Ok(Some(Vec::new()));
    }
    let trees = runtime.inner.vaults.trees();
    let files = trees.root(from)?.files();
    if files < WORTH_IT {
        return Ok(None);
    }
    let most = MOST_CHANGES.min(files / FILES_PER_CHANGE);
    differing_little(trees, (from, to), most as usize, files * BYTES_PER_FILE)
}

/// What differs between two roots, if it is no more than `most` paths with `bytes` in the files that are new, and no file
/// of several names: one that is shown goes on saying how many it had.
pub(crate) fn differing_little(
    trees: &Trees,
    (from, to): (RootId, RootId),
    most: usize,
    bytes: u64,
) -> Result<Option<Vec<Change>>> {
    let changes = trees.diff_up_to(from, to, most)?;
    Ok(changes.filter(|changes| {
        let new = changes.iter().filter_map(|change| change.after.as_ref());
        let old = changes.iter().filter_map(|change| change.before.as_ref());
        new.clone().map(Entry::size).sum::<u64>() <= bytes
            && new.chain(old).all(|entry| entry.link().is_none())
    }))
}
