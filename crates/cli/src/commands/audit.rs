//! `avfs audit`: the journal of all that happened.

use super::paths;
use crate::args::{AuditArgs, AuditVerb};
use crate::error::Result;
use crate::exit;
use crate::output::Output;
use crate::output::changes::printable;
use crate::output::table::{table, time};
use crate::session::Session;
use avfs_api::wire::{CURRENT, Journal, JournalListing, JournalVerify};

/// How much of an entry's details fits into a line.
const DETAILS_MAX: usize = 80;

pub fn run(args: AuditArgs, session: &mut Session, output: Output) -> Result<u8> {
    match args.verb {
        Some(AuditVerb::Verify) => verify(session, output),
        None => {
            let vault = Some(session.vault().to_owned()).filter(|vault| vault != CURRENT);
            let listing = session.call(&Journal {
                vault,
                operation: args.operation,
                path: args.path.as_deref().map(|path| paths::in_vault(path).0),
                since: args.since,
                until: args.until,
                limit: args.limit,
            })?;
            output.answer(&listing, list_text)?;
            Ok(exit::OK)
        }
    }
}

fn verify(session: &mut Session, output: Output) -> Result<u8> {
    let verified = session.call(&JournalVerify {})?;
    output.answer(&verified, |verified| match &verified.problem {
        None => format!(
            "the journal is whole: {} in order",
            entries(verified.entries)
        ),
        Some(problem) => format!("the journal is broken: {problem}"),
    })?;
    Ok(if verified.valid { exit::OK } else { 1 })
}

fn entries(number: u64) -> String {
    if number == 1 {
        "1 entry".into()
    } else {
        format!("{number} entries")
    }
}

fn list_text(listing: &JournalListing) -> String {
    let rows = listing
        .entries
        .iter()
        .map(|entry| {
            let details: String = printable(&entry.details.to_string())
                .chars()
                .take(DETAILS_MAX)
                .collect();
            vec![
                entry.id.to_string(),
                time(&entry.timestamp),
                entry.by.clone(),
                entry.vault.clone().unwrap_or_default(),
                entry.operation.clone(),
                details,
            ]
        })
        .collect();
    table(&["ID", "TIME", "BY", "VAULT", "OPERATION", "DETAILS"], rows).trim_fmt()
}
