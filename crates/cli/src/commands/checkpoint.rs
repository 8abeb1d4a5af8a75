//! `avfs checkpoint`: save, list and restore named states of the vault.

use crate::args::CheckpointVerb;
use crate::error::Result;
use crate::output::table::{align_right, count, size, table, time};
use crate::output::{Output, style};
use crate::session::Session;
use avfs_api::wire::{
    CheckpointDelete, CheckpointDetailsItem, CheckpointInfo, CheckpointList, CheckpointListing,
    CheckpointRestore, CheckpointSave,
};

pub fn run(verb: CheckpointVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        CheckpointVerb::Save { name, description } => {
            let saved = session.call(&CheckpointSave { name, description })?;
            output.answer(&saved, |saved| format!("saved checkpoint {}", saved.name))
        }
        CheckpointVerb::List => {
            let listing = session.call(&CheckpointList::default())?;
            output.answer(&listing, list_text)
        }
        CheckpointVerb::Info { name } => {
            let details = session.call(&CheckpointInfo { name })?;
            output.answer(&details, info_text)
        }
        CheckpointVerb::Restore { name, undo, force } => {
            let restored = session.call(&CheckpointRestore { name, undo, force })?;
            output.answer(&restored, |restored| {
                let more = match restored.damage {
                    Some(_) => " or more, because the state before is damaged",
                    None => "",
                };
                format!(
                    "restored {}: {} changed{more}\nto undo: avfs checkpoint restore --undo",
                    restored.snapshot,
                    count(restored.changes as u64, "path"),
                )
            })
        }
        CheckpointVerb::Delete { name, force } => {
            let deleted = session.call(&CheckpointDelete { name, force })?;
            output.answer(&deleted, |deleted| {
                let forks = match &deleted.dependent_forks[..] {
                    [] => String::new(),
                    forks => format!("; forks made from it stay: {}", forks.join(", ")),
                };
                format!("deleted checkpoint {}{forks}", deleted.name)
            })
        }
    }
}

fn info_text(details: &CheckpointDetailsItem) -> String {
    let item = &details.item;
    let files = count(item.file_count, "file");
    let mut rows = vec![
        ("name", item.name.clone()),
        ("created", time(&item.created_at)),
        ("description", item.description.clone().unwrap_or_default()),
        ("origin", item.origin.clone()),
        ("files", format!("{files}, {}", item.total_size_human)),
        ("root", item.root.clone()),
    ];
    rows.extend(item.damage.clone().map(|damage| ("damaged", damage)));
    rows.extend(
        details
            .version
            .map(|number| ("version", format!("v{number}"))),
    );
    if !details.forks.is_empty() {
        rows.push(("forks", details.forks.join(", ")));
    }
    let rows = rows.into_iter();
    table(
        &[],
        rows.map(|(name, value)| vec![name.into(), value]).collect(),
    )
    .trim_fmt()
}

fn list_text(listing: &CheckpointListing) -> String {
    if listing.snapshots.is_empty() {
        return "there are no checkpoints".into();
    }
    let rows = listing
        .snapshots
        .iter()
        .map(|it| {
            vec![
                it.name.clone(),
                time(&it.created_at),
                it.origin.clone(),
                it.file_count.to_string(),
                it.total_size_human.clone(),
                it.used_bytes.map(size).unwrap_or_default(),
                it.description.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let mut table = table(
        &[
            "NAME",
            "CREATED",
            "ORIGIN",
            "FILES",
            "SIZE",
            "USED",
            "DESCRIPTION",
        ],
        rows,
    );
    for column in [3, 4, 5] {
        align_right(&mut table, column);
    }
    let mut text = table.trim_fmt();
    for it in listing.snapshots.iter().filter(|it| it.damage.is_some()) {
        text += &format!("\n{} {} cannot be read", style::bad("damaged:"), it.name);
    }
    text
}
