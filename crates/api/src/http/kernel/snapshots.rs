//! Snapshots: checkpoints, by a name that is looked for in all sandboxes.

use super::answer::{created, done};
use super::asker::{Asker, Asks};
use super::sandboxes::{BACKEND, IMAGE, described};
use crate::ops::failure::Failure;
use crate::wire::{
    CheckpointDelete, CheckpointItem, CheckpointList, CheckpointSave, VaultFork, VaultList,
};
use avfs_runtime::ErrorKind;
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

fn item(sandbox: &str, snapshot: &CheckpointItem) -> Value {
    json!({
        "name": snapshot.name,
        "sandbox": sandbox,
        "image_tag": snapshot.root,
        "backend": BACKEND,
        "base_image": IMAGE,
        "created_at": snapshot.created_at,
    })
}

/// Every snapshot with its sandbox.
async fn all(asks: &Asks) -> Result<Vec<(String, CheckpointItem)>, Failure> {
    let mut found = Vec::new();
    for vault in asks.ask("", VaultList::default()).await?.vaults {
        let listing = asks.ask(&vault.name, CheckpointList::default()).await?;
        let snapshots = listing.snapshots.into_iter();
        found.extend(snapshots.map(|it| (vault.name.clone(), it)));
    }
    Ok(found)
}

/// The one of this name.
async fn named(asks: &Asks, name: &str) -> Result<(String, CheckpointItem), Failure> {
    let mut found = all(asks).await?.into_iter().filter(|it| it.1.name == name);
    match (found.next(), found.next()) {
        (Some(found), None) => Ok(found),
        (None, _) => {
            let what = format!("there is no snapshot '{name}'");
            Err(Failure::new(ErrorKind::NotFound, what))
        }
        (Some(_), Some(_)) => {
            let what = format!("several sandboxes have a snapshot '{name}'");
            Err(Failure::new(ErrorKind::Conflict, what))
        }
    }
}

pub(in crate::http) async fn list(asker: Asker) -> Result<Response, Failure> {
    let all = all(&asker.asks()).await?;
    let all: Vec<Value> = all.iter().map(|(name, it)| item(name, it)).collect();
    Ok(done(all))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Take {
    sandbox: String,
    name: String,
}

pub(in crate::http) async fn take(asker: Asker) -> Result<Response, Failure> {
    let (asks, take) = asker.read::<Take>().await?;
    let save = CheckpointSave {
        name: Some(take.name),
        description: None,
    };
    let saved = asks.ask(&take.sandbox, save).await?;
    Ok(created(item(&take.sandbox, &saved)))
}

pub(in crate::http) async fn info(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let (sandbox, snapshot) = named(&asker.asks(), &name).await?;
    Ok(done(item(&sandbox, &snapshot)))
}

pub(in crate::http) async fn remove(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let asks = asker.asks();
    let (sandbox, _) = named(&asks, &name).await?;
    let deleted = asks
        .ask(&sandbox, CheckpointDelete { name, force: true })
        .await?;
    Ok(done(format!("Snapshot '{}' deleted", deleted.name)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Restore {
    as_name: String,
}

/// Makes a sandbox that begins as a snapshot.
pub(in crate::http) async fn restore(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let (asks, restore) = asker.read::<Restore>().await?;
    let (sandbox, snapshot) = named(&asks, &name).await?;
    let fork = VaultFork {
        name: restore.as_name,
        checkpoint: Some(snapshot.name.clone()),
        version: None,
        make_current: false,
    };
    let forked = asks.ask(&sandbox, fork).await?;
    let sandbox = described(&asks, &forked.name).await?;
    Ok(created(
        json!({ "sandbox": sandbox, "from_snapshot": snapshot.name }),
    ))
}
