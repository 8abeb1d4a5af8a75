//! Sandboxes: vaults, and what is kept of them beside their files.

use super::answer::{created, done};
use super::asker::{Asker, Asks};
use crate::mcp::{SANDBOX_STATE, SANDBOX_STOPPED, no_image};
use crate::ops::failure::Failure;
use crate::wire::{
    JobKill, JobList, Journal, JournalItem, LimitsAsk, MetaDelete, MetaImport, MetaList,
    ProfileWord, VaultCreate, VaultDelete, VaultFork, VaultInfo, VaultItem, VaultList,
};
use avfs_runtime::ErrorKind;
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What holds a sandbox.
pub(super) const BACKEND: &str = "namespace";
/// The programs in it are the host's.
pub(super) const IMAGE: &str = "host";
const TOP: &str = "/";
const MEMORY: &str = "workspace.memory_mb";
const PROCESSORS: &str = "workspace.vcpus";
const PROFILE: &str = "workspace.profile";
/// Entries of a log.
const LOGGED: usize = 1000;

/// What is kept of a sandbox beside its files, as metadata of its top directory.
#[derive(Default)]
pub(super) struct Marks {
    pub is_stopped: bool,
    pub vcpus: Option<u32>,
    pub memory_mb: Option<u64>,
    pub profile: Option<ProfileWord>,
}

impl Marks {
    pub async fn of(asks: &Asks, name: &str) -> Result<Marks, Failure> {
        let list = MetaList {
            path: TOP.into(),
            path_b64: None,
        };
        let kept = asks.ask(name, list).await?.metadata;
        let profile = kept.get(PROFILE).map(|word| Value::from(word.as_str()));
        Ok(Marks {
            is_stopped: kept
                .get(SANDBOX_STATE)
                .is_some_and(|it| it == SANDBOX_STOPPED),
            vcpus: kept.get(PROCESSORS).and_then(|it| it.parse().ok()),
            memory_mb: kept.get(MEMORY).and_then(|it| it.parse().ok()),
            profile: profile.and_then(|word| serde_json::from_value(word).ok()),
        })
    }

    pub fn limits(&self) -> LimitsAsk {
        LimitsAsk {
            memory: self.memory_mb.map(|mb| mb.saturating_mul(1 << 20)),
            cpus: self.vcpus.map(f64::from),
            ..LimitsAsk::default()
        }
    }

    fn status(&self) -> &'static str {
        match self.is_stopped {
            true => SANDBOX_STOPPED,
            false => "running",
        }
    }
}

/// The marks of a sandbox in which commands may run.
pub(super) async fn running(asks: &Asks, name: &str) -> Result<Marks, Failure> {
    let marks = Marks::of(asks, name).await?;
    match marks.is_stopped {
        false => Ok(marks),
        true => {
            let what = format!("sandbox '{name}' is stopped");
            Err(Failure::new(ErrorKind::Conflict, what).hint("start it"))
        }
    }
}

/// A sandbox as its clients know it.
pub(super) fn item(vault: &VaultItem, marks: &Marks) -> Value {
    json!({
        "name": vault.name,
        "uuid": vault.id,
        "status": marks.status(),
        "backend": BACKEND,
        "image": IMAGE,
        "vcpus": marks.vcpus,
        "memory_mb": marks.memory_mb,
        "created_at": vault.created_at,
    })
}

pub(super) async fn described(asks: &Asks, name: &str) -> Result<Value, Failure> {
    let vault = asks.ask(name, VaultInfo {}).await?.item;
    let marks = Marks::of(asks, name).await?;
    Ok(item(&vault, &marks))
}

pub(in crate::http) async fn list(asker: Asker) -> Result<Response, Failure> {
    let asks = asker.asks();
    let mut listed = Vec::new();
    for vault in asks.ask("", VaultList::default()).await?.vaults {
        let marks = match Marks::of(&asks, &vault.name).await {
            Ok(marks) => marks,
            // It was removed meanwhile.
            Err(failure) if failure.problem().status == 404 => continue,
            Err(failure) => return Err(failure),
        };
        listed.push(item(&vault, &marks));
    }
    Ok(done(listed))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    name: String,
    image: Option<String>,
    vcpus: Option<u32>,
    memory_mb: Option<u64>,
    profile: Option<ProfileWord>,
}

pub(in crate::http) async fn create(asker: Asker) -> Result<Response, Failure> {
    let (asks, create) = asker.read::<Create>().await?;
    no_image(create.image.as_deref())?;
    let name = create.name;
    asks.ask("", VaultCreate::named(name.clone())).await?;
    let profile = create.profile.map(serde_json::to_value);
    let profile = profile.and_then(|it| Some(it.ok()?.as_str()?.to_owned()));
    let marks = [
        (PROCESSORS, create.vcpus.map(|it| it.to_string())),
        (MEMORY, create.memory_mb.map(|it| it.to_string())),
        (PROFILE, profile),
    ];
    let marks = marks.into_iter();
    let marks = marks.filter_map(|(key, value)| Some((key.to_owned(), value?)));
    mark(&asks, &name, marks.collect()).await?;
    Ok(created(described(&asks, &name).await?))
}

async fn mark(asks: &Asks, name: &str, metadata: BTreeMap<String, String>) -> Result<(), Failure> {
    if metadata.is_empty() {
        return Ok(());
    }
    let import = MetaImport {
        path: TOP.into(),
        path_b64: None,
        metadata,
    };
    asks.ask(name, import).await.map(drop)
}

pub(in crate::http) async fn info(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    Ok(done(described(&asker.asks(), &name).await?))
}

pub(in crate::http) async fn remove(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let removed = asker.asks().ask(&name, VaultDelete { force: true }).await?;
    Ok(done(format!("Sandbox '{}' removed", removed.deleted)))
}

pub(in crate::http) async fn start(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let asks = asker.asks();
    if Marks::of(&asks, &name).await?.is_stopped {
        let delete = MetaDelete {
            path: TOP.into(),
            path_b64: None,
            key: SANDBOX_STATE.into(),
        };
        asks.ask(&name, delete).await?;
    }
    Ok(done(described(&asks, &name).await?))
}

/// Lets nothing begin in it any more, and ends its detached commands. Its files stay.
pub(in crate::http) async fn stop(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let asks = asker.asks();
    let stopped = [(SANDBOX_STATE.to_owned(), SANDBOX_STOPPED.to_owned())];
    mark(&asks, &name, stopped.into()).await?;
    let list = JobList {
        vault: Some(name.clone()),
        running: true,
        ..JobList::default()
    };
    for job in asks.ask("", list).await?.jobs {
        let kill = JobKill {
            job_id: job.job_id,
            signal: None,
        };
        match asks.ask("", kill).await {
            // It ended by itself meanwhile.
            Err(failure) if [404, 409].contains(&failure.problem().status) => {}
            Err(failure) => return Err(failure),
            Ok(_) => {}
        }
    }
    Ok(done(described(&asks, &name).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fork {
    as_name: String,
}

pub(in crate::http) async fn fork(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let (asks, fork) = asker.read::<Fork>().await?;
    let fork = VaultFork {
        name: fork.as_name,
        checkpoint: None,
        version: None,
        make_current: false,
    };
    let forked = asks.ask(&name, fork).await?;
    let sandbox = described(&asks, &forked.name).await?;
    Ok(created(
        json!({ "sandbox": sandbox, "security_warning": null }),
    ))
}

pub(in crate::http) async fn logs(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let journal = Journal {
        vault: Some(name),
        limit: LOGGED,
        ..Journal::default()
    };
    let mut entries = asker.asks().ask("", journal).await?.entries;
    entries.reverse();
    Ok(done(entries.iter().map(entry).collect::<Vec<_>>()))
}

/// An entry of the journal as one of its log.
fn entry(entry: &JournalItem) -> Value {
    let kind = match entry.operation.as_str() {
        "vault.create" | "vault.fork" => "sandbox_created",
        "vault.delete" => "sandbox_removed",
        "exec" => "command_executed",
        "write" | "edit" => "file_written",
        other => other,
    };
    json!({
        "timestamp": entry.timestamp,
        "pid": null,
        "user": entry.by,
        "type": kind,
        "sandbox": entry.vault,
        "details": entry.details,
    })
}
