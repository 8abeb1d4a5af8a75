//! The journal.

use super::failure::Failure;
use super::items as item;
use super::{Ask, Reply, parse};
use crate::wire::{Journal, JournalItem, JournalListing, JournalVerified, JournalVerify};
use avfs_runtime::bounds::JOURNAL_MAX;
use avfs_runtime::{
    Action, JournalCheck, JournalEntry, JournalFilter, JournalOrder, JournalProblem, Time,
    VaultName, VaultPath,
};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::HashMap;

pub(crate) fn list(ask: &Ask, request: Journal) -> Reply<Journal> {
    let vault: Option<VaultName> = ask.named_if_any(request.vault.as_deref())?;
    let path: Option<VaultPath> = request.path.as_deref().map(parse).transpose()?;
    let filter = JournalFilter {
        vault: None,
        exec: request.exec.as_deref().map(parse).transpose()?,
        principal: request.principal.as_deref().map(parse).transpose()?,
        decision: request.decision.as_deref().map(decision).transpose()?,
        operation: request.operation,
        path,
        since: request.since.as_deref().map(moment).transpose()?,
        until: request.until.as_deref().map(moment).transpose()?,
        after: request.after,
        limit: Some(request.limit),
        order: match request.oldest_first {
            true => JournalOrder::OldestFirst,
            false => JournalOrder::NewestFirst,
        },
    };
    let entries = ask.session.journal(vault.as_ref(), filter)?;
    let truncated = request.limit > entries.len() && entries.len() == JOURNAL_MAX;
    let entries = items(ask, entries)?;
    Ok(JournalListing {
        total_count: entries.len(),
        truncated,
        entries,
    })
}

/// Entries with the names of their vaults.
pub(super) fn items(ask: &Ask, entries: Vec<JournalEntry>) -> Result<Vec<JournalItem>, Failure> {
    let names: HashMap<String, String> = ask
        .session
        .vault_list()?
        .iter()
        .map(|info| (info.vault.id.to_string(), info.vault.name.to_string()))
        .collect();
    let entries = entries
        .into_iter()
        .map(|entry| {
            let vault_id = entry.vault.map(|id| id.to_string());
            JournalItem {
                id: entry.seq,
                timestamp: item::time(entry.time),
                operation: entry.operation.to_string(),
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
    Ok(entries)
}

/// One of the actions of policy.
fn decision(word: &str) -> Result<String, Failure> {
    let known = Action::ALL.iter().any(|action| action.as_str() == word);
    known
        .then(|| word.to_owned())
        .ok_or_else(|| Failure::invalid(format!("{word:?} is not a decision")))
}

/// A time: RFC 3339, a date, seconds since 1970, or an age such as `2h`.
fn moment(text: &str) -> Result<Time, Failure> {
    let at = |stamp: Timestamp| Time {
        secs: stamp.as_second(),
        nanos: stamp.subsec_nanosecond().unsigned_abs(),
    };
    if let Ok(secs) = text.parse::<i64>() {
        return Ok(Time { secs, nanos: 0 });
    }
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Ok(at(stamp));
    }
    if let Some(stamp) = text
        .parse::<Date>()
        .ok()
        .and_then(|date| date.to_zoned(TimeZone::UTC).ok())
    {
        return Ok(at(stamp.timestamp()));
    }
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        _ => 0,
    };
    let number = text.get(..text.len().saturating_sub(1));
    match number.and_then(|number| number.parse::<i64>().ok()) {
        Some(number) if unit > 0 => {
            let now = Time::now();
            let age = number.saturating_mul(unit);
            let secs = now.secs.saturating_sub(age);
            Ok(Time { secs, ..now })
        }
        _ => Err(Failure::invalid(format!("{text:?} is not a time"))
            .hint("for example 2026-01-31, 2026-01-31T12:00:00Z, 90m, 2h or 7d")),
    }
}

/// The path of an entry, or the first of several.
fn path_in(details: &serde_json::Value) -> Option<String> {
    let path = details["path"]
        .as_str()
        .or_else(|| details["paths"][0].as_str());
    path.map(str::to_owned)
}

pub(crate) fn verify(ask: &Ask, _: JournalVerify) -> Reply<JournalVerify> {
    Ok(match ask.session.journal_verify()? {
        JournalCheck::Intact { entries, .. } => JournalVerified {
            valid: true,
            entries,
            problem: None,
        },
        JournalCheck::Broken { seq, problem } => JournalVerified {
            valid: false,
            entries: seq,
            problem: Some(problem_text(seq, problem)),
        },
    })
}

pub(crate) fn problem_text(seq: u64, problem: JournalProblem) -> String {
    let problem = match problem {
        JournalProblem::Edited => "was edited",
        JournalProblem::OutOfOrder => "does not follow the one before it",
        JournalProblem::Removed => "is gone",
    };
    format!("entry {seq} {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let secs = |text: &str| moment(text).unwrap().secs;
        assert_eq!(secs("1700000000"), 1_700_000_000);
        assert_eq!(secs("2026-01-02"), 1_767_312_000);
        assert_eq!(secs("2026-01-02T00:00:01Z"), 1_767_312_001);
        let now = Time::now().secs;
        for (text, age) in [("5s", 5), ("2m", 120), ("3h", 10_800), ("1d", 86_400)] {
            assert!((now - age - secs(text)).abs() <= 1, "{text}");
        }
        for wrong in ["", "yesterday", "d", "5x", "2026-13-01", "ä"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
