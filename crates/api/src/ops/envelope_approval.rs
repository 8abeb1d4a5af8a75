//! The approval in an envelope.

use super::envelope::Ended;
use super::items;
use crate::wire::{SpeculationItem, to_text};
use avfs_runtime::{ApprovalReport, ChangeKind, ExecReport, ExecStatus, SpeculationReport};

/// The approval's id, if there is one.
pub(crate) fn id(report: &ExecReport) -> Option<String> {
    match report.approval.as_ref()? {
        ApprovalReport::Pending(id) | ApprovalReport::Used(id) => Some(id.to_string()),
        ApprovalReport::Refused { .. } => None,
    }
}

/// What to do about a waiting command, or why it cannot be approved.
pub(crate) fn reason(report: &ExecReport) -> Option<String> {
    match report.approval.as_ref()? {
        ApprovalReport::Used(_) => None,
        ApprovalReport::Pending(id) if report.status == ExecStatus::Denied => {
            Some(format!("the owner denied request {id}"))
        }
        ApprovalReport::Pending(_) if !report.approver_set_up => Some(
            "no approver is set up: the owner runs `avfs approval setup` in a terminal".to_owned(),
        ),
        ApprovalReport::Pending(id) => Some(format!(
            "the owner can let it run with `avfs approval approve {id}`; then repeat it with \
             `--approval {id}`"
        )),
        ApprovalReport::Refused { reason, hint } => Some(match hint {
            Some(hint) => format!("{reason}: {hint}"),
            None => reason.clone(),
        }),
    }
}

pub(crate) fn speculation(tried: SpeculationReport) -> SpeculationItem {
    let ended = Ended::of(&tried.status);
    let mut changed = Vec::new();
    for change in &tried.changes.listed {
        if let ChangeKind::Renamed { from } = &change.kind {
            changed.push(from.to_string());
        }
        changed.push(change.path.to_string());
    }
    SpeculationItem {
        status: ended.status,
        exit_code: ended.ending.exit_code,
        signal: ended.ending.signal,
        stdout: to_text(tried.stdout.bytes).0,
        stderr: to_text(tried.stderr.bytes).0,
        changed_files: changed,
        changes_total: tried.changes.total,
        changes_truncated: tried.changes.is_truncated(),
        changes: tried.changes.listed.iter().map(items::change).collect(),
        ignored_changes: items::ignored(&tried.ignored),
        duration_ms: tried.duration.as_millis() as u64,
    }
}
