//! `avfs audit`: the journal.

use super::paths;
use crate::args::{AuditArgs, AuditFilter, AuditVerb};
use crate::error::{Error, Result};
use crate::exit;
use crate::output::changes::printable;
use crate::output::table::{table, time};
use crate::output::{Output, raw};
use crate::session::Session;
use avfs_api::wire::{CURRENT, Events, Journal, JournalItem, JournalListing, JournalVerify};

/// How much of an entry's details fits into a line.
const DETAILS_MAX: usize = 80;
/// How long one request waits for an entry.
const FOLLOW_WAIT_MS: u64 = 20_000;
/// How many entries one request asks for.
const PAGE: usize = 1000;

pub fn run(args: AuditArgs, session: &mut Session, output: Output) -> Result<u8> {
    match args.verb {
        Some(AuditVerb::Verify) => verify(session, output),
        Some(AuditVerb::Export { filter }) => export(filter, session),
        None if args.follow => follow(args.after, session, output),
        None => {
            let listing = session.call(&question(args.filter, args.limit, session))?;
            output.answer(&listing, list_text)?;
            Ok(exit::OK)
        }
    }
}

fn question(filter: AuditFilter, limit: usize, session: &Session) -> Journal {
    Journal {
        vault: Some(session.vault().to_owned()).filter(|vault| vault != CURRENT),
        exec: filter.exec,
        principal: filter.principal,
        decision: filter.decision,
        operation: filter.operation,
        path: filter.path.as_deref().map(|path| paths::in_vault(path).0),
        since: filter.since,
        until: filter.until,
        after: None,
        limit,
        oldest_first: false,
    }
}

/// All entries as lines, one page per request.
fn export(filter: AuditFilter, session: &mut Session) -> Result<u8> {
    let mut question = Journal {
        oldest_first: true,
        ..question(filter, PAGE, session)
    };
    loop {
        let page = session.call(&question)?.entries;
        for entry in &page {
            let line = serde_json::to_string(entry).map_err(|error| Error::Io {
                what: "cannot write JSON".into(),
                source: error.into(),
            })?;
            raw(format!("{line}\n").as_bytes())?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE => question.after = Some(last.id),
            _ => return Ok(exit::OK),
        }
    }
}

/// Prints entries as they are made. With `--json`, one object per line.
fn follow(after: Option<u64>, session: &mut Session, output: Output) -> Result<u8> {
    let mut request = Events {
        after,
        wait_ms: Some(FOLLOW_WAIT_MS),
    };
    loop {
        let page = session.call(&request)?;
        for entry in &page.entries {
            let line = match output.is_json() {
                true => serde_json::to_string(entry).map_err(|error| Error::Io {
                    what: "cannot write JSON".into(),
                    source: error.into(),
                })?,
                false => cells(entry).join("  "),
            };
            raw(format!("{line}\n").as_bytes())?;
        }
        request.after = Some(page.after);
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
    let rows = listing.entries.iter().map(cells).collect();
    table(&["ID", "TIME", "BY", "VAULT", "OPERATION", "DETAILS"], rows).trim_fmt()
}

fn cells(entry: &JournalItem) -> Vec<String> {
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
}
