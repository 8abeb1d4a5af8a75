//! Snapshots of sandboxes. agentkernel knows each by its name alone, so it is looked for in every sandbox.

use super::LIST;
use crate::mcp::answer::{Json, Plain};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{
    CheckpointDelete, CheckpointItem, CheckpointList, CheckpointSave, VaultFork, VaultList,
};
use avfs_runtime::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// What is called when a snapshot is not there.
const LIST_SNAPSHOTS: Option<&str> = Some("snapshot_list");

/// Every snapshot with the sandbox that it is of.
async fn all(hands: &Hands) -> Result<Vec<(String, CheckpointItem)>, Failure> {
    let mut found = Vec::new();
    for vault in hands
        .ask("", &VaultList::default())
        .await?
        .vaults
        .into_iter()
        .take(200)
    {
        let listing = hands.ask(&vault.name, &CheckpointList::default()).await?;
        let snapshots = listing.snapshots.into_iter();
        found.extend(snapshots.map(|snapshot| (vault.name.clone(), snapshot)));
    }
    Ok(found)
}

/// The one snapshot of that name.
async fn named(hands: &Hands, name: &str) -> Result<(String, CheckpointItem), Failure> {
    let found = all(hands).await?.into_iter();
    let mut found: Vec<_> = found
        .filter(|(_, snapshot)| snapshot.name == name)
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => {
            let what = format!("there is no snapshot {name:?}");
            Err(Failure::new(ErrorKind::NotFound, what))
        }
        (Some(_), false) => {
            let what = format!("several sandboxes have a snapshot {name:?}");
            Err(Failure::new(ErrorKind::Conflict, what))
        }
    }
}

fn item(sandbox: &str, snapshot: &CheckpointItem) -> Value {
    json!({
        "name": snapshot.name,
        "sandbox": sandbox,
        "image_tag": snapshot.root,
        "backend": "namespace",
        "base_image": "host",
        "vcpus": null,
        "memory_mb": null,
        "created_at": snapshot.created_at,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {}

impl Asked for List {
    const NAME: &'static str = "snapshot_list";
    const SENTENCE: &'static str = "List the snapshots of all sandboxes.";
    const ROWS: &'static [&'static str] = &["vault_list", "checkpoint_list"];
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let all = all(hands).await?;
        let items = all.iter().take(500);
        let items = items.map(|(sandbox, snapshot)| item(sandbox, snapshot));
        Ok(Json(items.collect::<Vec<Value>>().into()))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Take {
    sandbox: String,
    name: Option<String>,
}

impl Asked for Take {
    const NAME: &'static str = "snapshot_take";
    const SENTENCE: &'static str = "Save the files of a sandbox under a name.";
    const ROWS: &'static [&'static str] = &["checkpoint_save"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let save = CheckpointSave {
            name: self.name,
            description: None,
        };
        let saved = hands.ask(&self.sandbox, &save).await?;
        Ok(Json(item(&self.sandbox, &saved)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    name: String,
}

impl Asked for Get {
    const NAME: &'static str = "snapshot_get";
    const SENTENCE: &'static str = "Describe a snapshot.";
    const ROWS: &'static [&'static str] = &["vault_list", "checkpoint_list"];
    const IF_MISSING: Option<&'static str> = LIST_SNAPSHOTS;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let (sandbox, snapshot) = named(hands, &self.name).await?;
        Ok(Json(item(&sandbox, &snapshot)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    name: String,
}

impl Asked for Delete {
    const NAME: &'static str = "snapshot_delete";
    const SENTENCE: &'static str = "Delete a snapshot.";
    const ROWS: &'static [&'static str] = &["vault_list", "checkpoint_list", "checkpoint_delete"];
    const IF_MISSING: Option<&'static str> = LIST_SNAPSHOTS;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let (sandbox, snapshot) = named(hands, &self.name).await?;
        let name = snapshot.name;
        let deleted = hands
            .ask(&sandbox, &CheckpointDelete { name, force: true })
            .await?;
        Ok(Plain(format!("Snapshot '{}' deleted", deleted.name)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Restore {
    name: String,
    as_name: String,
}

impl Asked for Restore {
    const NAME: &'static str = "snapshot_restore";
    const SENTENCE: &'static str = "Make a sandbox that begins as a snapshot.";
    const ROWS: &'static [&'static str] = &["vault_list", "checkpoint_list", "vault_fork"];
    const IF_MISSING: Option<&'static str> = LIST_SNAPSHOTS;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let (sandbox, snapshot) = named(hands, &self.name).await?;
        let fork = VaultFork {
            name: self.as_name,
            checkpoint: Some(snapshot.name.clone()),
            version: None,
            make_current: false,
        };
        let forked = hands.ask(&sandbox, &fork).await?;
        Ok(Json(
            json!({ "sandbox": forked.name, "from_snapshot": snapshot.name }),
        ))
    }
}
