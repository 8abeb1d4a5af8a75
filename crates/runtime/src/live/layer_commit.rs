//! How one layer is committed: base and layer become the head of its vault.

use std::ffi::CStr;

use avfs_vault::{
    Cause, Change, ChangeKind, CheckpointName, CheckpointOrigin, ExecId, NewVersion, Principal,
    RootId, VaultId, Vaults,
};
use avfs_view::{
    Allowance, CommitInput, HashCache, Layer, LayerUse, OwnWork, Skipped, Staging, StagingUse,
    Writers,
};
use serde_json::json;

use crate::Result;
use crate::live::admission::{Stop, allowance, refusal};
use crate::live::engine::Engine;
use crate::live::host::HOME;
use crate::live::room::weighed;
use crate::owners::{STORED_OWNER, layer_owner};
use crate::runtime::Runtime;

/// The outcome of a commit.
pub(crate) struct Committed {
    pub after: RootId,
    pub version: Option<u64>,
    pub skipped: Vec<Skipped>,
    /// The checkpoint that holds what the quota kept out of the head.
    pub aside: Option<CheckpointName>,
}

impl Committed {
    pub fn unchanged(head: RootId) -> Committed {
        Committed {
            after: head,
            version: None,
            skipped: Vec::new(),
            aside: None,
        }
    }
}

/// Which layer is committed, and how.
pub(crate) struct CommitPlan<'a> {
    pub vault: VaultId,
    pub layer: &'a mut Layer,
    pub cache: &'a mut HashCache,
    pub writers: Writers,
    pub staging: StagingUse,
    pub version: NewVersion,
    /// What a command began with that this commit is for: the journal is told how many paths it changed.
    pub since: Option<RootId>,
    pub on_quota: OnQuota,
    pub stop: Stop<'a>,
}

/// What becomes of a commit that the vault's quota refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnQuota {
    /// It is an error, and the layer stays as it is.
    Refuse,
    /// The layer cannot stay: what it holds becomes a checkpoint, and the head stays.
    KeepAside,
}

/// What in a layer is work of our own.
pub(crate) fn own_work(layer: &Layer, used: StagingUse) -> OwnWork<'_> {
    let Some(token) = layer.token() else {
        return OwnWork::None;
    };
    match layer.record().used_by {
        LayerUse::Host => OwnWork::Names(token.as_bytes()),
        // As root, the overlay renames every directory by itself.
        LayerUse::Sandbox if layer_owner().is_some() => OwnWork::None,
        LayerUse::Sandbox => OwnWork::Staging(Staging {
            hidden: avfs_sandbox::STAGING_IN.as_bytes(),
            name: token.as_bytes(),
            exchange_ends: avfs_sandbox::EXCHANGE_ENDS.map(CStr::to_bytes),
            exchange_copies: avfs_sandbox::EXCHANGE_COPIES.map(CStr::to_bytes),
            used,
        }),
    }
}

/// Publishes base + layer as the head; gives how many names the layer holds, too.
pub(crate) fn commit_layer(
    runtime: &Runtime,
    engine: &Engine,
    plan: CommitPlan<'_>,
) -> Result<(Committed, usize)> {
    let vaults = &runtime.inner.vaults;
    let _lease = vaults.lease();
    let CommitPlan { layer, cache, .. } = plan;
    let vault = vaults.by_id(plan.vault)?;
    let beside = runtime.check_scratch(engine, &vault)?;
    let terms = Terms {
        allowance: allowance(runtime, &vault, beside, plan.on_quota)?,
        writers: plan.writers,
        staging: plan.staging,
        stop: plan.stop,
    };
    let committed = root_of(runtime, engine, layer, cache, &terms);
    let committed = committed.map_err(|error| weighed(engine, layer, refusal(error, &vault)))?;
    let expected = layer.record().last_commit;
    layer.begin_commit(committed.root)?;
    let mut version = plan.version;
    if let Some(since) = plan.since {
        version.details["changed_paths"] = json!(changed_paths(vaults, since, committed.root)?);
    }
    let published = vaults.publish(plan.vault, expected, committed.root, version);
    let mut outcome = Committed {
        after: committed.root,
        version: None,
        skipped: committed.skipped,
        aside: None,
    };
    match published {
        Ok(published) => {
            layer.finish_commit()?;
            outcome.version = (committed.root != expected).then_some(published.number);
        }
        Err(error) => {
            // What it remembers is in no vault, and may go.
            *cache = HashCache::default();
            let quota = matches!(error, avfs_vault::Error::QuotaExceeded { .. });
            if !quota || plan.on_quota == OnQuota::Refuse {
                return Err(weighed(engine, layer, error.into()));
            }
            outcome.aside = Some(keep_aside(runtime, plan.vault, committed.root)?);
            outcome.after = expected;
        }
    }
    Ok((outcome, committed.entries))
}

/// How many paths differ outside of the home directory; none if what was there cannot be read.
fn changed_paths(vaults: &Vaults, before: RootId, after: RootId) -> Result<Option<u64>> {
    let mut paths = 0;
    let counted = vaults.trees().diff_each(before, after, &mut |change| {
        paths += u64::from(change.kind != ChangeKind::Times && !is_of_home(&change));
        true
    });
    match counted {
        Err(error) if error.is_damage() => Ok(None),
        counted => Ok(Some(counted.map(|()| paths)?)),
    }
}

/// Whether a change belongs to the home directory. The directories above it come with its first file.
pub(crate) fn is_of_home(change: &Change) -> bool {
    let (path, home) = (change.path.as_bytes(), HOME.as_bytes());
    is_beneath(path, home) || (change.kind == ChangeKind::Created && is_beneath(home, path))
}

/// Whether a path is another one or beneath it.
pub(crate) fn is_beneath(path: &[u8], above: &[u8]) -> bool {
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// The root that base and layer amount to; to be asked for while leased.
pub(crate) fn root_of(
    runtime: &Runtime,
    engine: &Engine,
    layer: &Layer,
    cache: &mut HashCache,
    terms: &Terms<'_>,
) -> Result<avfs_view::Committed, avfs_view::Error> {
    let skeleton = runtime.inner.host.skeleton_paths();
    let input = CommitInput {
        trees: runtime.inner.vaults.trees(),
        base: layer.record().base,
        last_commit: layer.record().last_commit,
        skeleton: &skeleton,
        own_work: own_work(layer, terms.staging),
        owner: STORED_OWNER,
        writers: terms.writers,
        allowance: terms.allowance,
        spool: &runtime.inner.config.home,
        stopped: terms.stop,
    };
    avfs_view::commit(&input, &engine.scanner, layer.upper(), cache)
}

/// On what terms a layer is read.
pub(crate) struct Terms<'a> {
    pub allowance: Allowance,
    pub writers: Writers,
    pub staging: StagingUse,
    pub stop: Stop<'a>,
}

/// Has the draft of a layer count, if it amounts to the root that it shall amount to, to the last detail; gives how many
/// names it holds.
pub(crate) fn make_ready(
    runtime: &Runtime,
    engine: &Engine,
    layer: &Layer,
    cache: &mut HashCache,
) -> Result<Option<usize>> {
    let _lease = runtime.inner.vaults.lease();
    let terms = Terms {
        allowance: Allowance::default(),
        writers: Writers::None,
        staging: StagingUse::InUse,
        stop: &|| false,
    };
    let reached = root_of(runtime, engine, layer, cache, &terms)?;
    if reached.root != layer.record().last_commit {
        return Ok(None);
    }
    layer.make_ready()?;
    Ok(Some(reached.entries))
}

fn keep_aside(runtime: &Runtime, vault: VaultId, root: RootId) -> Result<CheckpointName> {
    let name: CheckpointName = format!("uncommitted-{}", ExecId::new()).parse()?;
    let origin = CheckpointOrigin::Automatic;
    let by = &Principal::SYSTEM;
    runtime
        .inner
        .vaults
        .save_checkpoint(vault, Some(&name), root, origin, by)?;
    Ok(name)
}

/// The version of work that was cut off.
pub(crate) fn interrupted_version(details: serde_json::Value) -> NewVersion {
    NewVersion {
        by: Principal::SYSTEM,
        exec: None,
        cause: Cause::Interrupted,
        details,
    }
}

/// The version of a commit that no exec ended with.
pub(crate) fn commit_version(by: Principal, details: serde_json::Value) -> NewVersion {
    NewVersion {
        by,
        exec: None,
        cause: Cause::Commit,
        details,
    }
}
