//! Checkpoints over HTTP.

use super::App;
use super::items;
use super::routes::{Reply, Routes, parse};
use crate::wire::{
    CheckpointDelete, CheckpointDeleted, CheckpointList, CheckpointListing, CheckpointRestore,
    CheckpointRestored, CheckpointSave,
};
use avfs_runtime::{CheckpointName, Select};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .on_vault::<CheckpointSave>(save)
        .on_vault::<CheckpointList>(list)
        .on_vault::<CheckpointRestore>(restore)
        .on_vault::<CheckpointDelete>(delete)
}

fn save(app: &App, vault: Select, request: CheckpointSave) -> Reply<CheckpointSave> {
    let name: Option<CheckpointName> = request.name.as_deref().map(parse).transpose()?;
    Ok(items::checkpoint(
        &app.runtime.checkpoint_save(vault, name.as_ref())?,
    ))
}

fn list(app: &App, vault: Select, _: CheckpointList) -> Reply<CheckpointList> {
    let checkpoints = app.runtime.checkpoint_list(vault)?;
    Ok(CheckpointListing {
        snapshots: checkpoints.iter().map(items::checkpoint).collect(),
    })
}

fn restore(app: &App, vault: Select, request: CheckpointRestore) -> Reply<CheckpointRestore> {
    let name: CheckpointName = parse(&request.name)?;
    let restored = app.runtime.checkpoint_restore(vault, &name)?;
    Ok(CheckpointRestored {
        snapshot: name.to_string(),
        version: restored.version,
        undo: restored.undo.to_string(),
        changes: restored.changes,
    })
}

fn delete(app: &App, vault: Select, request: CheckpointDelete) -> Reply<CheckpointDelete> {
    let name: CheckpointName = parse(&request.name)?;
    let forks = app.runtime.checkpoint_delete(vault, &name)?;
    Ok(CheckpointDeleted {
        action: "delete".into(),
        name: name.to_string(),
        forks: forks.iter().map(ToString::to_string).collect(),
    })
}
