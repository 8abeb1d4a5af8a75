//! `avfs checkpoint`: name a state of the vault and go back to it.

use crate::args::CheckpointVerb;
use crate::error::Result;
use crate::output::Output;
use crate::output::table::{count, table, time};
use crate::session::Session;
use avfs_api::wire::{
    CheckpointDelete, CheckpointList, CheckpointListing, CheckpointRestore, CheckpointSave,
};

pub fn run(verb: CheckpointVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        CheckpointVerb::Save { name } => {
            let saved = session.call(&CheckpointSave { name })?;
            output.answer(&saved, |saved| format!("saved checkpoint {}", saved.name))
        }
        CheckpointVerb::List => {
            let listing = session.call(&CheckpointList {})?;
            output.answer(&listing, list_text)
        }
        CheckpointVerb::Restore { name } => {
            let restored = session.call(&CheckpointRestore { name })?;
            output.answer(&restored, |restored| {
                format!(
                    "restored {}: {} changed\nto undo: avfs checkpoint restore {}",
                    restored.snapshot,
                    count(restored.changes as u64, "path"),
                    restored.undo,
                )
            })
        }
        CheckpointVerb::Delete { name } => {
            let deleted = session.call(&CheckpointDelete { name })?;
            output.answer(&deleted, |deleted| {
                let mut text = format!("deleted checkpoint {}", deleted.name);
                if !deleted.forks.is_empty() {
                    text += "\nforked from it, and not affected: ";
                    text += &deleted.forks.join(", ");
                }
                text
            })
        }
    }
}

fn list_text(listing: &CheckpointListing) -> String {
    if listing.snapshots.is_empty() {
        return "there are no checkpoints".into();
    }
    let rows = listing
        .snapshots
        .iter()
        .map(|it| vec![it.name.clone(), time(&it.created_at), it.origin.clone()])
        .collect();
    table(&["NAME", "CREATED", "ORIGIN"], rows).trim_fmt()
}
