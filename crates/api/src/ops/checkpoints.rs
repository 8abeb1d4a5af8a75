//! Checkpoints.

use super::failure::Failure;
use super::items;
use super::page::{self, Page};
use super::{Ask, Reply, parse};
use crate::wire::{
    CheckpointDelete, CheckpointDeleted, CheckpointDetailsItem, CheckpointInfo, CheckpointItem,
    CheckpointList, CheckpointListing, CheckpointRestore, CheckpointRestored, CheckpointSave,
};
use avfs_runtime::{
    CheckpointLabel, CheckpointName, Description, IfForked, RestorePoint, Select, VaultName,
};

pub(crate) fn save(ask: &Ask, vault: Select, request: CheckpointSave) -> Reply<CheckpointSave> {
    let name: Option<CheckpointName> = request.name.as_deref().map(parse).transpose()?;
    let description: Option<Description> = request.description.as_deref().map(parse).transpose()?;
    let label = CheckpointLabel {
        name: name.as_ref(),
        description: description.as_ref(),
    };
    let (info, stillness) = ask.session.checkpoint_save(vault, label)?;
    Ok(CheckpointItem {
        freeze: stillness.map(items::freeze),
        ..items::checkpoint(&info)
    })
}

pub(crate) fn list(ask: &Ask, vault: Select, request: CheckpointList) -> Reply<CheckpointList> {
    let checkpoints = match request.brief {
        true => ask.session.checkpoint_list(vault)?,
        false => ask.session.checkpoint_list_counted(vault)?,
    };
    let key = |info: &avfs_runtime::CheckpointInfo| info.checkpoint.name.to_string();
    let checkpoints = page::after(checkpoints, request.cursor.as_deref(), key)?;
    let page = Page::of(checkpoints, request.limit, key);
    Ok(CheckpointListing {
        snapshots: page.items.iter().map(items::checkpoint).collect(),
        next_cursor: page.next,
    })
}

pub(crate) fn info(ask: &Ask, vault: Select, request: CheckpointInfo) -> Reply<CheckpointInfo> {
    let name: CheckpointName = parse(&request.name)?;
    let details = ask.session.checkpoint_info(vault, &name)?;
    Ok(CheckpointDetailsItem {
        item: items::checkpoint(&details.info),
        version: details.version,
        forks: names(&details.forks),
    })
}

pub(crate) fn restore(
    ask: &Ask,
    vault: Select,
    request: CheckpointRestore,
) -> Reply<CheckpointRestore> {
    let point = match (&request.name, request.undo) {
        (Some(name), false) => RestorePoint::Checkpoint(parse(name)?),
        (None, true) => RestorePoint::Undo,
        _ => return Err(Failure::invalid("name a checkpoint, or ask to undo")),
    };
    let if_busy = super::if_busy(request.force);
    let restored = ask.session.checkpoint_restore(vault, &point, if_busy)?;
    Ok(CheckpointRestored {
        snapshot: restored.checkpoint.to_string(),
        version: restored.version,
        undo: restored.undo.to_string(),
        changes: restored.files + restored.directories,
        files_restored: restored.files,
        dirs_restored: restored.directories,
        damage: restored.uncounted,
    })
}

pub(crate) fn delete(
    ask: &Ask,
    vault: Select,
    request: CheckpointDelete,
) -> Reply<CheckpointDelete> {
    let name: CheckpointName = parse(&request.name)?;
    let if_forked = match request.force {
        true => IfForked::Delete,
        false => IfForked::Refuse,
    };
    let forks = ask.session.checkpoint_delete(vault, &name, if_forked)?;
    Ok(CheckpointDeleted {
        action: "delete".into(),
        name: name.to_string(),
        dependent_forks: names(&forks),
    })
}

fn names(vaults: &[VaultName]) -> Vec<String> {
    vaults.iter().map(ToString::to_string).collect()
}
