//! Snapshots of workspaces, and forks of them.

use super::LIST;
use super::lifecycle::fresh_name;
use super::workspace::{WorkspaceId, described, start};
use crate::mcp::answer::{Json, Plain, word};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{
    ChangeItem, ChangeWord, CheckpointDelete, CheckpointList, CheckpointRestore, CheckpointSave,
    Diff, TypeWord, VaultFork,
};
use avfs_runtime::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// What is called when a snapshot is not there.
const LIST_SNAPSHOTS: Option<&str> = Some("snapshot_list");
/// Snapshots whose own size is worked out in one answer.
const SIZED: usize = 50;
/// Files in one answer.
const FILES: usize = 1_000;
/// The most forks at once.
const FORKS: u32 = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    workspace_id: WorkspaceId,
    name: String,
    #[serde(default)]
    include_memory: bool,
}

impl Asked for Create {
    const NAME: &'static str = "snapshot_create";
    const SENTENCE: &'static str = "Save the files of a workspace under a name.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_info", "checkpoint_save"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        if self.include_memory {
            let what = "include_memory: a snapshot holds files, not processes";
            return Err(Failure::new(ErrorKind::Unavailable, what).hint("leave it out"));
        }
        let vault = self.workspace_id.name(hands).await?;
        let save = CheckpointSave {
            name: Some(self.name),
            description: None,
        };
        let saved = hands.ask(&vault, &save).await?;
        Ok(Json(json!({
            "snapshot_id": saved.root,
            "name": saved.name,
            "workspace_id": described(hands, &vault).await?.id,
            "has_memory": false,
            "created_at": saved.created_at,
        })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Restore {
    workspace_id: WorkspaceId,
    snapshot_name: String,
}

impl Asked for Restore {
    const NAME: &'static str = "snapshot_restore";
    const SENTENCE: &'static str =
        "Bring a workspace back to a snapshot; what runs in it is ended.";
    const ROWS: &'static [&'static str] = &[
        "vault_list",
        "checkpoint_restore",
        "meta_list",
        "meta_delete",
    ];
    const IF_MISSING: Option<&'static str> = LIST_SNAPSHOTS;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let restore = CheckpointRestore {
            name: Some(self.snapshot_name),
            undo: false,
            force: true,
        };
        let restored = hands.ask(&vault, &restore).await?;
        // It runs again, whatever it did when the snapshot was made.
        start(hands, &vault).await?;
        let what = restored.snapshot;
        Ok(Plain(format!(
            "Workspace {vault} restored to snapshot {what}"
        )))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    workspace_id: WorkspaceId,
}

impl Asked for List {
    const NAME: &'static str = "snapshot_list";
    const SENTENCE: &'static str = "List the snapshots of a workspace with their sizes.";
    const ROWS: &'static [&'static str] = &["vault_list", "checkpoint_list", "diff"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let snapshots = hands
            .ask(&vault, &CheckpointList::default())
            .await?
            .snapshots;
        let mut listed = Vec::new();
        for (number, snapshot) in snapshots.into_iter().enumerate() {
            let used = match number < SIZED {
                true => Some(used(&since(hands, &vault, &snapshot.name).await?)),
                false => None,
            };
            listed.push(json!({
                "id": snapshot.root,
                "name": snapshot.name,
                "has_memory": false,
                "parent": null,
                "created_at": snapshot.created_at,
                "used_bytes": used,
                "referenced_bytes": snapshot.total_size,
            }));
        }
        Ok(Json(json!({ "snapshots": listed })))
    }
}

/// What changed since a snapshot. What is kept of the workspace itself is no file of it.
async fn since(hands: &Hands, vault: &str, snapshot: &str) -> Result<Vec<ChangeItem>, Failure> {
    let diff = Diff {
        from: snapshot.to_owned(),
        stat: false,
        ..Diff::default()
    };
    let mut changes = hands.ask(vault, &diff).await?.changes;
    changes.retain(|change| change.path != "/");
    Ok(changes)
}

/// Bytes of files that the workspace has no more, or has otherwise.
fn used(changes: &[ChangeItem]) -> u64 {
    let gone = changes
        .iter()
        .filter(|change| matches!(change.kind, ChangeWord::Deleted | ChangeWord::Modified));
    let files = gone.filter_map(|change| change.before.as_ref());
    let files = files.filter(|entry| entry.kind == TypeWord::File);
    files.map(|entry| entry.size).sum()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    workspace_id: WorkspaceId,
    snapshot_name: String,
}

impl Asked for Delete {
    const NAME: &'static str = "snapshot_delete";
    const SENTENCE: &'static str = "Delete a snapshot; forks of it stay.";
    const ROWS: &'static [&'static str] = &["vault_list", "checkpoint_delete"];
    const IF_MISSING: Option<&'static str> = LIST_SNAPSHOTS;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let name = self.snapshot_name;
        let deleted = hands
            .ask(&vault, &CheckpointDelete { name, force: true })
            .await?;
        Ok(Plain(format!("Snapshot {} deleted", deleted.name)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Compare {
    workspace_id: WorkspaceId,
    snapshot_name: String,
}

impl Asked for Compare {
    const NAME: &'static str = "snapshot_diff";
    const SENTENCE: &'static str =
        "Say which files of a workspace differ from a snapshot, and how.";
    const ROWS: &'static [&'static str] = &["vault_list", "checkpoint_list", "diff"];
    const IF_MISSING: Option<&'static str> = LIST_SNAPSHOTS;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let snapshots = hands
            .ask(&vault, &CheckpointList::default())
            .await?
            .snapshots;
        let named = |name: &str| name == self.snapshot_name;
        let Some(snapshot) = snapshots.iter().find(|it| named(&it.name)) else {
            let what = format!("there is no snapshot {:?}", self.snapshot_name);
            return Err(Failure::new(ErrorKind::NotFound, what));
        };
        let changes = since(hands, &vault, &self.snapshot_name).await?;
        let files: Vec<Value> = changes
            .iter()
            .take(FILES)
            .map(|change| {
                let size = |entry: &Option<_>| entry.as_ref().map(size_of);
                json!({
                    "path": change.path,
                    "change": word(change.kind),
                    "from": change.from,
                    "size_before": size(&change.before),
                    "size_after": size(&change.after),
                })
            })
            .collect();
        Ok(Json(json!({
            "snapshot_name": self.snapshot_name,
            "files": files,
            "total_changes": changes.len(),
            "truncated": changes.len() > FILES,
            "used_bytes": used(&changes),
            "referenced_bytes": snapshot.total_size,
        })))
    }
}

fn size_of(entry: &crate::wire::EntryItem) -> u64 {
    entry.size
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    workspace_id: WorkspaceId,
    snapshot_name: String,
    new_name: Option<String>,
}

impl Asked for Fork {
    const NAME: &'static str = "workspace_fork";
    const SENTENCE: &'static str = "Make a workspace that begins as a snapshot of another.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_info", "vault_fork"];
    const IF_MISSING: Option<&'static str> = LIST_SNAPSHOTS;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let source = described(hands, &vault).await?;
        let name = self.new_name.unwrap_or_else(|| fresh_name(&vault));
        let forked = fork(hands, &vault, &self.snapshot_name, name).await?;
        Ok(Json(json!({
            "workspace_id": forked["workspace_id"],
            "name": forked["name"],
            "state": "running",
            "ip": null,
            "forked_from": {
                "source_workspace_id": source.id,
                "source_workspace_name": vault,
                "snapshot_name": self.snapshot_name,
            },
        })))
    }
}

async fn fork(hands: &Hands, vault: &str, snapshot: &str, name: String) -> Result<Value, Failure> {
    let fork = VaultFork {
        name,
        checkpoint: Some(snapshot.to_owned()),
        version: None,
        make_current: false,
    };
    let forked = hands.ask(vault, &fork).await?;
    Ok(json!({ "workspace_id": forked.id, "name": forked.name, "ip": null }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchFork {
    workspace_id: WorkspaceId,
    /// 1 to 20.
    count: u32,
    /// `golden` when left out.
    snapshot_name: Option<String>,
    /// `worker` when left out.
    name_prefix: Option<String>,
}

impl Asked for BatchFork {
    const NAME: &'static str = "workspace_batch_fork";
    const SENTENCE: &'static str = "Make several workspaces that begin as a snapshot of another.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_info", "vault_fork"];
    const IF_MISSING: Option<&'static str> = LIST_SNAPSHOTS;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        if !(1..=FORKS).contains(&self.count) {
            return Err(Failure::invalid(format!(
                "count is 1 to {FORKS}, not {}",
                self.count
            )));
        }
        let vault = self.workspace_id.name(hands).await?;
        let source = described(hands, &vault).await?;
        let snapshot = self.snapshot_name.unwrap_or_else(|| "golden".into());
        let prefix = self.name_prefix.unwrap_or_else(|| "worker".into());
        let (mut workers, mut failures) = (Vec::new(), Vec::new());
        for index in 1..=self.count {
            let name = format!("{prefix}-{index}");
            match fork(hands, &vault, &snapshot, name.clone()).await {
                Ok(worker) => workers.push(worker),
                Err(failure) => {
                    let error = &failure.problem().detail;
                    failures.push(json!({ "index": index, "name": name, "error": error }));
                }
            }
        }
        Ok(Json(json!({
            "source_workspace_id": source.id,
            "snapshot_name": snapshot,
            "requested_count": self.count,
            "success_count": workers.len(),
            "failure_count": failures.len(),
            "workers": workers,
            "failures": failures,
        })))
    }
}
