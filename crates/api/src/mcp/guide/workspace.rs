//! A vault as a workspace: its name or id, whether it is stopped, its variables and sizes. What a vault has no place for
//! is kept as metadata of its top directory, so it goes with snapshots and forks.

use crate::mcp::hands::Hands;
use crate::ops::failure::Failure;
use crate::wire::{
    JobKill, JobList, LimitsAsk, MetaDelete, MetaImport, MetaList, VaultInfo, VaultItem, VaultList,
};
use avfs_runtime::ErrorKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A vault's name or its id.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct WorkspaceId(pub String);

impl WorkspaceId {
    /// The name of the vault; it is looked for only where an id may be meant.
    pub async fn name(&self, hands: &Hands) -> Result<String, Failure> {
        let may_be_id = self.0.len() == 36 && self.0.split('-').count() == 5;
        if may_be_id {
            let vaults = hands.ask("", &VaultList::default()).await?.vaults;
            if let Some(found) = vaults.into_iter().find(|vault| vault.id == self.0) {
                return Ok(found.name);
            }
        }
        Ok(self.0.clone())
    }

    /// The name, if its commands may run.
    pub async fn running(&self, hands: &Hands) -> Result<(String, Marks), Failure> {
        let name = self.name(hands).await?;
        let marks = Marks::of(hands, &name).await?;
        if marks.is_stopped {
            let what = format!("workspace {name} is stopped");
            return Err(Failure::new(ErrorKind::Conflict, what).hint("call workspace_start"));
        }
        Ok((name, marks))
    }
}

const TOP: &str = "/";
pub(crate) const STATE: &str = "workspace.state";
pub(crate) const STOPPED: &str = "stopped";
const VARIABLE: &str = "workspace.env.";
const MEMORY: &str = "workspace.memory_mb";
const PROCESSORS: &str = "workspace.vcpus";
const DISK: &str = "workspace.disk_gb";

/// What is kept of a workspace beside its files.
#[derive(Default)]
pub(crate) struct Marks {
    pub is_stopped: bool,
    pub env: BTreeMap<String, String>,
    pub sizes: Sizes,
}

/// What its commands may use; what is none is as the vault's settings say.
#[derive(Copy, Clone, Default, Serialize)]
pub(crate) struct Sizes {
    pub vcpus: Option<u32>,
    pub memory_mb: Option<u64>,
    pub disk_gb: Option<u64>,
}

impl Sizes {
    pub fn limits(self) -> LimitsAsk {
        LimitsAsk {
            memory: self.memory_mb.map(|mb| mb.saturating_mul(1 << 20)),
            cpus: self.vcpus.map(f64::from),
            pids: None,
            disk: self.disk_gb.map(|gb| gb.saturating_mul(1 << 30)),
        }
    }

    /// As metadata.
    pub fn marks(self) -> BTreeMap<String, String> {
        let marks = [
            (PROCESSORS, self.vcpus.map(u64::from)),
            (MEMORY, self.memory_mb),
            (DISK, self.disk_gb),
        ];
        let said = marks.into_iter();
        said.filter_map(|(key, value)| Some((key.to_owned(), value?.to_string())))
            .collect()
    }
}

impl Marks {
    pub async fn of(hands: &Hands, vault: &str) -> Result<Marks, Failure> {
        let list = MetaList {
            path: TOP.into(),
            path_b64: None,
        };
        let metadata = hands.ask(vault, &list).await?.metadata;
        let number = |key: &str| metadata.get(key).and_then(|text| text.parse().ok());
        let variables = metadata.iter();
        let variables = variables.filter_map(|(key, value)| {
            let name = key.strip_prefix(VARIABLE)?;
            Some((name.to_owned(), value.clone()))
        });
        Ok(Marks {
            is_stopped: metadata.get(STATE).is_some_and(|state| state == STOPPED),
            env: variables.collect(),
            sizes: Sizes {
                vcpus: metadata.get(PROCESSORS).and_then(|it| it.parse().ok()),
                memory_mb: number(MEMORY),
                disk_gb: number(DISK),
            },
        })
    }

    /// The variables of a command: those of the workspace, and its own over them.
    pub fn with(&self, own: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        env.extend(own);
        env
    }
}

/// Keeps marks beside those that are there.
pub(crate) async fn mark(
    hands: &Hands,
    vault: &str,
    metadata: BTreeMap<String, String>,
) -> Result<(), Failure> {
    if metadata.is_empty() {
        return Ok(());
    }
    let import = MetaImport {
        path: TOP.into(),
        path_b64: None,
        metadata,
    };
    hands.ask(vault, &import).await.map(drop)
}

pub(crate) async fn set_env(
    hands: &Hands,
    vault: &str,
    vars: BTreeMap<String, String>,
) -> Result<usize, Failure> {
    let marks: BTreeMap<String, String> = vars
        .into_iter()
        .map(|(name, value)| (format!("{VARIABLE}{name}"), value))
        .collect();
    let count = marks.len();
    mark(hands, vault, marks).await?;
    Ok(count)
}

/// Lets nothing begin in it any more, and ends what runs.
pub(crate) async fn stop(hands: &Hands, vault: &str) -> Result<(), Failure> {
    let stopped = [(STATE.to_owned(), STOPPED.to_owned())];
    mark(hands, vault, stopped.into()).await?;
    let list = JobList {
        vault: Some(vault.to_owned()),
        running: true,
        ..JobList::default()
    };
    for job in hands.ask("", &list).await?.jobs {
        let kill = JobKill {
            job_id: job.job_id,
            signal: None,
        };
        match hands.ask("", &kill).await {
            // It ended by itself meanwhile.
            Err(failure) if failure.problem().kind == ErrorKind::NotFound.as_str() => {}
            done => {
                done?;
            }
        }
    }
    Ok(())
}

pub(crate) async fn start(hands: &Hands, vault: &str) -> Result<(), Failure> {
    if !Marks::of(hands, vault).await?.is_stopped {
        return Ok(());
    }
    let delete = MetaDelete {
        path: TOP.into(),
        path_b64: None,
        key: STATE.into(),
    };
    hands.ask(vault, &delete).await.map(drop)
}

/// The id of a vault, and what else is known of it.
pub(crate) async fn described(hands: &Hands, vault: &str) -> Result<VaultItem, Failure> {
    Ok(hands.ask(vault, &VaultInfo {}).await?.item)
}

/// `running` or `stopped`.
pub(crate) fn state(marks: &Marks) -> &'static str {
    match marks.is_stopped {
        true => STOPPED,
        false => "running",
    }
}

/// Such as `{"vcpus": …, "memory_mb": …, "disk_gb": …}`.
pub(crate) fn resources(sizes: Sizes) -> Value {
    json!(sizes)
}
