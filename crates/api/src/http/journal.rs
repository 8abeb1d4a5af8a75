//! The journal over HTTP.

use super::App;
use super::items;
use super::routes::{Reply, Routes, parse};
use crate::wire::{Journal, JournalItem, JournalListing, JournalVerified, JournalVerify};
use avfs_runtime::{JournalCheck, JournalProblem, VaultName};
use std::collections::HashMap;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.plain::<Journal>(list).plain::<JournalVerify>(verify)
}

fn list(app: &App, request: Journal) -> Reply<Journal> {
    let vault: Option<VaultName> = request.vault.as_deref().map(parse).transpose()?;
    let entries = app.runtime.journal(vault.as_ref(), request.limit)?;
    let names: HashMap<String, String> = app
        .runtime
        .vault_list()?
        .iter()
        .map(|info| (info.vault.id.to_string(), info.vault.name.to_string()))
        .collect();
    let entries: Vec<JournalItem> = entries
        .into_iter()
        .map(|entry| {
            let vault_id = entry.vault.map(|id| id.to_string());
            JournalItem {
                id: entry.seq,
                timestamp: items::time(entry.time),
                operation: entry.operation,
                vault: vault_id.as_ref().and_then(|id| names.get(id).cloned()),
                vault_id,
                exec: entry.exec.map(|exec| exec.to_string()),
                by: entry.principal.to_string(),
                path: path_in(&entry.details),
                details: entry.details,
                hash: entry
                    .hash
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            }
        })
        .collect();
    Ok(JournalListing {
        total_count: entries.len(),
        entries,
    })
}

/// The path an entry is about, or the first of several.
fn path_in(details: &serde_json::Value) -> Option<String> {
    let path = details["path"]
        .as_str()
        .or_else(|| details["paths"][0].as_str());
    path.map(str::to_owned)
}

fn verify(app: &App, _: JournalVerify) -> Reply<JournalVerify> {
    Ok(match app.runtime.journal_verify()? {
        JournalCheck::Intact { entries, .. } => JournalVerified {
            valid: true,
            entries,
            problem: None,
        },
        JournalCheck::Broken { seq, problem } => {
            let problem = match problem {
                JournalProblem::Edited => "was edited",
                JournalProblem::OutOfOrder => "does not follow the one before it",
                JournalProblem::Removed => "is gone",
            };
            JournalVerified {
                valid: false,
                entries: seq,
                problem: Some(format!("entry {seq} {problem}")),
            }
        }
    })
}
