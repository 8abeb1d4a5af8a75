//! Vaults, and the states that they can go back to.

use super::LIST_VAULTS;
use crate::mcp::answer::{Object, Outcome, beginning, bytes_of, fitting, word};
use crate::mcp::hands::Hands;
use crate::mcp::resources;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{
    ChangeItem, CheckpointDelete, CheckpointList, CheckpointRestore, CheckpointSave, Diff,
    VaultCreate, VaultDelete, VaultFork, VaultInfo, VaultItem, VaultList, VaultLog,
};
use rmcp::model::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VaultTool {
    action: VaultAction,
    /// The one to look at, fork or delete.
    vault: Option<String>,
    /// Of the new one.
    name: Option<String>,
    /// Fork from this state.
    checkpoint: Option<String>,
}

#[derive(Copy, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VaultAction {
    List,
    Info,
    Log,
    Create,
    Fork,
    Delete,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct VaultSaid {
    #[serde(skip_serializing_if = "Option::is_none")]
    vaults: Option<Vec<VaultLine>>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    vault: Option<VaultLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    versions: Vec<VersionLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    forks: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct VaultLine {
    name: String,
    current: bool,
    files: u64,
    size: u64,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    parent: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct VersionLine {
    version: u64,
    cause: String,
    by: String,
    at: String,
}

impl Asked for VaultTool {
    const NAME: &'static str = "vault";
    const SENTENCE: &'static str = "List, make, fork, describe and delete vaults: file trees with a history and a \
        sandbox each.";
    const ROWS: &'static [&'static str] = &[
        "vault_list",
        "vault_info",
        "vault_log",
        "vault_create",
        "vault_fork",
        "vault_delete",
    ];
    const IF_MISSING: Option<&'static str> = LIST_VAULTS;
    type Answer = Object<VaultSaid>;

    async fn run(self, hands: &Hands) -> Result<Object<VaultSaid>, Failure> {
        let vault = hands.vault(self.vault.as_deref()).to_owned();
        let name = self.name.clone();
        let name = name.ok_or_else(|| Failure::invalid("this action needs a name"));
        let said = match self.action {
            VaultAction::List => list(hands).await?,
            VaultAction::Info => info(hands, &vault).await?,
            VaultAction::Log => log(hands, &vault).await?,
            VaultAction::Create => {
                let created = hands.ask("", &VaultCreate::named(name?)).await?;
                done(format!("created {}", created.created))
            }
            VaultAction::Fork => {
                let fork = VaultFork {
                    name: name?,
                    checkpoint: self.checkpoint,
                    version: None,
                    make_current: false,
                };
                let forked = hands.ask(&vault, &fork).await?;
                done(format!("forked {} from {}", forked.name, forked.source))
            }
            VaultAction::Delete => {
                // Never the one that happens to be meant.
                let vault = self
                    .vault
                    .ok_or_else(|| Failure::invalid("name the vault"))?;
                let deleted = hands.ask(&vault, &VaultDelete { force: false }).await?;
                done(format!("deleted {}", deleted.deleted))
            }
        };
        Ok(Object(said))
    }
}

fn done(what: String) -> VaultSaid {
    VaultSaid {
        done: Some(what),
        ..VaultSaid::default()
    }
}

async fn list(hands: &Hands) -> Result<VaultSaid, Failure> {
    let vaults = hands.ask("", &VaultList::default()).await?.vaults;
    let lines = vaults.into_iter().map(vault_line).collect();
    let (vaults, whole) = fitting(lines, bytes_of(None));
    Ok(VaultSaid {
        vaults: Some(vaults),
        next: (!whole).then(|| "there are more".into()),
        ..VaultSaid::default()
    })
}

async fn info(hands: &Hands, vault: &str) -> Result<VaultSaid, Failure> {
    let details = hands.ask(vault, &VaultInfo {}).await?;
    Ok(VaultSaid {
        vault: Some(vault_line(details.item)),
        forks: Some(fitting(details.forks, bytes_of(None)).0),
        next: details.uncommitted.into_iter().find_map(|it| it.hint),
        ..VaultSaid::default()
    })
}

async fn log(hands: &Hands, vault: &str) -> Result<VaultSaid, Failure> {
    let versions = hands.ask(vault, &VaultLog::newest(50)).await?.versions;
    let versions = versions.into_iter().map(|item| VersionLine {
        version: item.version,
        cause: item.cause,
        by: item.by,
        at: item.created_at,
    });
    Ok(VaultSaid {
        versions: fitting(versions.collect(), bytes_of(None)).0,
        ..VaultSaid::default()
    })
}

fn vault_line(item: VaultItem) -> VaultLine {
    VaultLine {
        name: item.name,
        current: item.current,
        files: item.files,
        size: item.size,
        version: item.version,
        parent: item.parent,
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointTool {
    action: CheckpointAction,
    vault: Option<String>,
    /// A checkpoint; for diff where from, also BASE, HEAD, vN, vault:NAME.
    name: Option<String>,
    /// For diff: where to.
    to: Option<String>,
    path: Option<String>,
    /// Add the text of the changes.
    #[serde(default)]
    patch: bool,
    max_tokens: Option<usize>,
}

#[derive(Copy, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckpointAction {
    Save,
    Restore,
    UndoRestore,
    List,
    Delete,
    Diff,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct CheckpointSaid {
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoints: Option<Vec<CheckpointLine>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckpointLine {
    name: String,
    created_at: String,
    files: u64,
    size: u64,
}

impl Asked for CheckpointTool {
    const NAME: &'static str = "checkpoint";
    const SENTENCE: &'static str =
        "Save the state of a vault, go back to one, and compare two. A restore can be undone.";
    const ROWS: &'static [&'static str] = &[
        "checkpoint_save",
        "checkpoint_restore",
        "checkpoint_list",
        "checkpoint_delete",
        "diff",
    ];
    const IF_MISSING: Option<&'static str> = Some("checkpoint {\"action\":\"list\"}");
    type Answer = Outcome<CheckpointSaid>;

    async fn run(self, hands: &Hands) -> Result<Outcome<CheckpointSaid>, Failure> {
        let vault = hands.vault(self.vault.as_deref()).to_owned();
        let mut links = Vec::new();
        let said = match self.action {
            CheckpointAction::Save => self.save(hands, &vault).await?,
            CheckpointAction::Restore | CheckpointAction::UndoRestore => {
                self.restore(hands, &vault).await?
            }
            CheckpointAction::List => list_checkpoints(hands, &vault).await?,
            CheckpointAction::Delete => {
                // A tool has no flag for it, and the forks stay.
                let (name, force) = (self.named()?, true);
                let deleted = hands.ask(&vault, &CheckpointDelete { name, force }).await?;
                checkpoint_done(format!("deleted {}", deleted.name))
            }
            CheckpointAction::Diff => self.diff(hands, &vault, &mut links).await?,
        };
        Ok(Outcome {
            said,
            failed: false,
            links,
        })
    }
}

fn checkpoint_done(what: String) -> CheckpointSaid {
    CheckpointSaid {
        done: Some(what),
        ..CheckpointSaid::default()
    }
}

async fn list_checkpoints(hands: &Hands, vault: &str) -> Result<CheckpointSaid, Failure> {
    let listing = hands.ask(vault, &CheckpointList::default()).await?;
    let lines = listing.snapshots.into_iter().map(|item| CheckpointLine {
        name: item.name,
        created_at: item.created_at,
        files: item.file_count,
        size: item.total_size,
    });
    Ok(CheckpointSaid {
        checkpoints: Some(fitting(lines.collect(), bytes_of(None)).0),
        ..CheckpointSaid::default()
    })
}

impl CheckpointTool {
    fn named(&self) -> Result<String, Failure> {
        let name = self.name.clone();
        name.ok_or_else(|| {
            Failure::invalid("this action needs a name").hint("list gives the names")
        })
    }

    async fn save(self, hands: &Hands, vault: &str) -> Result<CheckpointSaid, Failure> {
        let save = CheckpointSave {
            name: self.name,
            description: None,
        };
        let saved = hands.ask(vault, &save).await?;
        Ok(checkpoint_done(format!("saved {}", saved.name)))
    }

    async fn restore(self, hands: &Hands, vault: &str) -> Result<CheckpointSaid, Failure> {
        let undo = matches!(self.action, CheckpointAction::UndoRestore);
        let restore = CheckpointRestore {
            name: match undo {
                true => None,
                false => Some(self.named()?),
            },
            undo,
            force: false,
        };
        let restored = hands.ask(vault, &restore).await?;
        let what = format!(
            "restored {}; {} paths differ from before",
            restored.snapshot, restored.changes
        );
        Ok(CheckpointSaid {
            version: Some(restored.version),
            next: Some("undo_restore takes it back".into()),
            ..checkpoint_done(what)
        })
    }

    async fn diff(
        self,
        hands: &Hands,
        vault: &str,
        links: &mut Vec<Resource>,
    ) -> Result<CheckpointSaid, Failure> {
        let budget = bytes_of(self.max_tokens);
        let defaults = Diff::default();
        let diff = Diff {
            from: self.name.unwrap_or(defaults.from),
            to: self.to.unwrap_or(defaults.to),
            path: self.path,
            patch: self.patch,
            ..Diff::default()
        };
        let report = hands.ask(vault, &diff).await?;
        let lines = report.changes.iter().map(change_line).collect();
        let (changes, whole) = fitting(lines, budget / 2);
        let text = report
            .patch
            .as_deref()
            .map(|patch| beginning(patch, budget / 2));
        let cut = text.map(str::len) != report.patch.as_ref().map(String::len);
        if cut || !whole {
            let uri = resources::diff_uri(vault, &diff.from, &diff.to);
            links.push(Resource::new(uri, "the whole diff").with_mime_type("text/x-diff"));
        }
        let next = "the diff is longer: give a path, or read the linked resource";
        Ok(CheckpointSaid {
            changes: Some(changes),
            patch: text.map(str::to_owned),
            next: (cut || !whole || report.truncated || report.patch_truncated)
                .then(|| next.into()),
            ..CheckpointSaid::default()
        })
    }
}

/// `modified /a`, `renamed /a from /b`.
pub(crate) fn change_line(change: &ChangeItem) -> String {
    let kind = word(change.kind);
    match &change.from {
        Some(from) => format!("{kind} {} from {from}", change.path),
        None => format!("{kind} {}", change.path),
    }
}
