//! Workspaces come and go.

use super::LIST;
use super::network;
use super::workspace::{Marks, Sizes, WorkspaceId, described, mark, resources, start, state, stop};
use crate::mcp::answer::{Json, Plain};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{
    CheckpointList, CheckpointSave, Exec, GitClone, Journal, NetworkShow, VaultCreate, VaultDelete,
    VaultInfo, VaultItem, VaultList,
};
use avfs_runtime::{ErrorKind, ExecId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Instant;

/// Workspaces in one answer.
const LISTED: usize = 200;
/// The state that a prepared workspace is forked from.
const GOLDEN: &str = "golden";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    name: Option<String>,
    base_image: Option<String>,
    vcpus: Option<u32>,
    memory_mb: Option<u64>,
    disk_gb: Option<u64>,
    #[serde(default)]
    allow_internet: bool,
}

impl Asked for Create {
    const NAME: &'static str = "workspace_create";
    const SENTENCE: &'static str =
        "Create a workspace: an isolated file tree in which commands run.";
    const ROWS: &'static [&'static str] = &[
        "vault_create",
        "vault_info",
        "vault_delete",
        "meta_import",
        "network_set",
    ];
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let begun = Instant::now();
        no_image(self.base_image.as_deref())?;
        let sizes = Sizes {
            vcpus: self.vcpus,
            memory_mb: self.memory_mb,
            disk_gb: self.disk_gb,
        };
        let name = self.name.unwrap_or_else(|| fresh_name("workspace"));
        hands.ask("", &VaultCreate::named(name.clone())).await?;
        if self.allow_internet
            && let Err(refused) = network::internet(hands, &name, &[]).await
        {
            hands.ask(&name, &VaultDelete::default()).await?;
            return Err(refused);
        }
        mark(hands, &name, sizes.marks()).await?;
        let vault = described(hands, &name).await?;
        Ok(Json(json!({
            "workspace_id": vault.id,
            "name": name,
            "state": "running",
            "ip": null,
            "boot_time_ms": begun.elapsed().as_millis() as u64,
            "from_pool": false,
            "resources": resources(sizes),
        })))
    }
}

/// A name that nothing else has.
pub(crate) fn fresh_name(prefix: &str) -> String {
    let id = ExecId::new().to_string();
    format!("{prefix}-{}", &id[id.len() - 12..])
}

/// Only the host's own programs are lent to a workspace.
pub(crate) fn no_image(image: Option<&str>) -> Result<(), Failure> {
    match image {
        None | Some("default" | "host") => Ok(()),
        Some(image) => {
            let what =
                format!("there is no image {image:?}: workspaces use the programs of the host");
            Err(Failure::new(ErrorKind::Unavailable, what).hint("leave base_image out"))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Destroy {
    workspace_id: WorkspaceId,
}

impl Asked for Destroy {
    const NAME: &'static str = "workspace_destroy";
    const SENTENCE: &'static str = "Destroy a workspace and end what runs in it.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_delete"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let name = self.workspace_id.name(hands).await?;
        hands.ask(&name, &VaultDelete { force: true }).await?;
        Ok(Plain(format!("Workspace {name} destroyed")))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    workspace_id: WorkspaceId,
}

impl Asked for Start {
    const NAME: &'static str = "workspace_start";
    const SENTENCE: &'static str = "Start a stopped workspace.";
    const ROWS: &'static [&'static str] = &["vault_list", "meta_list", "meta_delete"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let name = self.workspace_id.name(hands).await?;
        start(hands, &name).await?;
        Ok(Plain(format!("Workspace {name} started")))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Stop {
    workspace_id: WorkspaceId,
}

impl Asked for Stop {
    const NAME: &'static str = "workspace_stop";
    const SENTENCE: &'static str = "Stop a workspace: its jobs end, its files stay, and nothing runs in it until it is started.";
    const ROWS: &'static [&'static str] = &["vault_list", "job_list", "job_kill", "meta_import"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let name = self.workspace_id.name(hands).await?;
        stop(hands, &name).await?;
        Ok(Plain(format!("Workspace {name} stopped")))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    state_filter: Option<StateName>,
}

#[derive(Copy, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StateName {
    Running,
    Stopped,
    Suspended,
}

impl StateName {
    fn as_str(self) -> &'static str {
        match self {
            StateName::Running => "running",
            StateName::Stopped => "stopped",
            StateName::Suspended => "suspended",
        }
    }
}

impl Asked for List {
    const NAME: &'static str = "workspace_list";
    const SENTENCE: &'static str = "List the workspaces.";
    const ROWS: &'static [&'static str] = &["vault_list", "meta_list"];
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let mut listed = Vec::new();
        for vault in hands
            .ask("", &VaultList::default())
            .await?
            .vaults
            .into_iter()
            .take(LISTED)
        {
            let marks = Marks::of(hands, &vault.name).await.unwrap_or_default();
            let wanted = self.state_filter.map(StateName::as_str);
            if wanted.is_none_or(|wanted| wanted == state(&marks)) {
                listed.push(line(hands, &vault, &marks));
            }
        }
        Ok(Json(Value::Array(listed)))
    }
}

fn line(hands: &Hands, vault: &VaultItem, marks: &Marks) -> Value {
    json!({
        "workspace_id": vault.id,
        "name": vault.name,
        "state": state(marks),
        "ip": null,
        "owned": vault.made_by == hands.caller.principal.to_string(),
        "resources": resources(marks.sizes),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Info {
    workspace_id: WorkspaceId,
}

impl Asked for Info {
    const NAME: &'static str = "workspace_info";
    const SENTENCE: &'static str =
        "Describe a workspace: state, sizes, snapshots, where it was forked from.";
    const ROWS: &'static [&'static str] = &[
        "vault_list",
        "vault_info",
        "meta_list",
        "checkpoint_list",
        "network_show",
        "port_list",
    ];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let name = self.workspace_id.name(hands).await?;
        let mut network = network::policy(&hands.ask(&name, &NetworkShow {}).await?);
        network["port_forwards"] = json!(network::forwards(hands, &name).await?);
        let marks = Marks::of(hands, &name).await?;
        let details = hands.ask(&name, &VaultInfo {}).await?;
        let snapshots = hands
            .ask(&name, &CheckpointList::default())
            .await?
            .snapshots;
        let snapshots: Vec<Value> = snapshots
            .iter()
            .map(|it| {
                json!({
                    "id": it.root, "name": it.name, "has_memory": false,
                    "parent": null, "created_at": it.created_at,
                })
            })
            .collect();
        let from = details.lineage.first().map(|from| {
            json!({
                "source_workspace_id": from.id,
                "source_workspace_name": from.name,
                "snapshot_name": from.checkpoints.first(),
            })
        });
        let vault = details.item;
        Ok(Json(json!({
            "workspace_id": vault.id,
            "name": vault.name,
            "state": state(&marks),
            "base_image": "host",
            "ip": null,
            "resources": resources(marks.sizes),
            "network": network,
            "snapshots": snapshots,
            "created_at": vault.created_at,
            "disk_used_bytes": vault.size,
            "forked_from": from,
        })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Logs {
    workspace_id: WorkspaceId,
    log_type: Option<LogName>,
    max_lines: Option<usize>,
}

#[derive(Copy, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum LogName {
    Console,
    Stderr,
    #[default]
    All,
}

impl Asked for Logs {
    const NAME: &'static str = "workspace_logs";
    const SENTENCE: &'static str = "Show what happened in a workspace, the newest last.";
    const ROWS: &'static [&'static str] = &["vault_list", "journal"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let name = self.workspace_id.name(hands).await?;
        if let Some(LogName::Stderr) = self.log_type {
            // There is no machine that could complain.
            return Ok(Json(json!({ "console": null, "stderr": "" })));
        }
        let journal: Journal = serde_json::from_value(json!({
            "vault": name,
            "limit": self.max_lines.unwrap_or(100).min(1000),
        }))
        .expect("these are fields of it");
        let entries = hands.ask("", &journal).await?.entries;
        let lines = entries
            .iter()
            .rev()
            .map(|entry| format!("{} {} {}\n", entry.timestamp, entry.by, entry.operation));
        let console: String = lines.collect();
        let stderr = match self.log_type.unwrap_or_default() {
            LogName::Console => Value::Null,
            _ => json!(""),
        };
        Ok(Json(json!({ "console": console, "stderr": stderr })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Adopt {
    workspace_id: WorkspaceId,
    #[serde(default)]
    force: bool,
}

impl Asked for Adopt {
    const NAME: &'static str = "workspace_adopt";
    const SENTENCE: &'static str =
        "Take up a workspace of an earlier session; every workspace can be used at once.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_info", "meta_list"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let name = self.workspace_id.name(hands).await?;
        let vault = described(hands, &name).await?;
        let marks = Marks::of(hands, &name).await?;
        Ok(Json(json!({
            "workspace_id": vault.id,
            "name": vault.name,
            "state": state(&marks),
            "ip": null,
            "adopted": true,
            "forced": self.force,
        })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AdoptAll {}

impl Asked for AdoptAll {
    const NAME: &'static str = "workspace_adopt_all";
    const SENTENCE: &'static str = "Take up all workspaces of earlier sessions.";
    const ROWS: &'static [&'static str] = &["vault_list"];
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vaults = hands.ask("", &VaultList::default()).await?.vaults;
        let adopted: Vec<Value> = vaults
            .iter()
            .take(LISTED)
            .map(|it| json!({ "workspace_id": it.id, "name": it.name, "state": "running" }))
            .collect();
        Ok(Json(json!({
            "adopted_count": adopted.len(),
            "adopted": adopted,
            "error_count": 0,
            "errors": [],
        })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Prepare {
    name: String,
    base_image: Option<String>,
    git_url: Option<String>,
    #[serde(default)]
    setup_commands: Vec<String>,
    timeout_secs: Option<u64>,
}

impl Asked for Prepare {
    const NAME: &'static str = "workspace_prepare";
    const SENTENCE: &'static str = "Make a workspace, run setup commands in it and save the state as the snapshot `golden` to fork from.";
    const ROWS: &'static [&'static str] = &[
        "vault_list",
        "vault_create",
        "vault_info",
        "checkpoint_list",
        "checkpoint_save",
        "exec",
        "git_clone",
    ];
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        no_image(self.base_image.as_deref())?;
        let vaults = hands.ask("", &VaultList::default()).await?.vaults;
        let exists = vaults.iter().any(|vault| vault.name == self.name);
        if exists {
            let snapshots = hands
                .ask(&self.name, &CheckpointList::default())
                .await?
                .snapshots;
            if let Some(golden) = snapshots.into_iter().find(|it| it.name == GOLDEN) {
                return self.prepared(hands, &golden.root, true).await;
            }
        } else {
            let name = self.name.clone();
            hands.ask("", &VaultCreate::named(name)).await?;
        }
        if let Some(url) = &self.git_url {
            let clone = GitClone {
                url: url.clone(),
                path: Some("/workspace".into()),
                ..GitClone::default()
            };
            hands.ask(&self.name, &clone).await?;
        }
        let timeout = self.timeout_secs.unwrap_or(300).saturating_mul(1000);
        for command in &self.setup_commands {
            let exec = Exec {
                shell: Some(command.clone()),
                timeout_ms: Some(timeout),
                ..Exec::default()
            };
            let envelope = hands.run(&self.name, &exec).await?;
            if !envelope.success {
                let end = envelope.result.stderr;
                let end = &end[end.ceil_char_boundary(end.len().saturating_sub(1000))..];
                let what = format!("setup command {command:?} failed: {end}");
                return Err(Failure::new(ErrorKind::Conflict, what));
            }
        }
        let save = CheckpointSave {
            name: Some(GOLDEN.into()),
            description: None,
        };
        let saved = hands.ask(&self.name, &save).await?;
        self.prepared(hands, &saved.root, false).await
    }
}

impl Prepare {
    async fn prepared(&self, hands: &Hands, root: &str, reused: bool) -> Result<Json, Failure> {
        let vault = described(hands, &self.name).await?;
        let mut prepared = json!({
            "workspace_id": vault.id,
            "name": vault.name,
            "snapshot_name": GOLDEN,
            "snapshot_id": root,
            "ip": null,
        });
        if reused {
            prepared["reused_existing"] = json!(true);
        }
        Ok(Json(prepared))
    }
}
