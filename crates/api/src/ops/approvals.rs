//! Approvals over HTTP, and who may give them.

use super::caller::{Caller, Peer, Share};
use super::items;
use super::page::{self, Page};
use super::{Ask, Reply, parse, parse_vault};
use crate::table::Scope;
use crate::wire::{
    ApprovalApprove, ApprovalDeny, ApprovalDetails, ApprovalItem, ApprovalList, ApprovalListing,
    ApprovalReady, ApprovalSetup, ApprovalShow, TriedItem,
};
use avfs_runtime::{
    APPROVAL_LIFETIME, ApprovalInfo, ApprovalState, Driver, Network, Proof, SpeculationDetails,
    Time, safe,
};
use rustix::process::geteuid;
use std::time::Duration;

/// The proof that a caller has. A passphrase counts only from a process with a terminal. Another user, by SO_PEERCRED,
/// needs none.
pub(super) fn proof(caller: &Caller, passphrase: Option<String>) -> Proof {
    if let (Share::Credential(name), true) = (caller.share, caller.grant.has(Scope::Approve)) {
        return Proof::Key { name };
    }
    let own = geteuid().as_raw();
    match (caller.peer.uid(), passphrase) {
        (Some(uid), _) if uid != own => Proof::OtherUser { uid },
        (_, Some(text)) if at_a_terminal(caller.peer) => Proof::Passphrase { text },
        _ => Proof::None,
    }
}

/// Whether the client process has a controlling terminal.
fn at_a_terminal(peer: Peer) -> bool {
    let Some(pid) = peer.pid() else { return false };
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The name, in parentheses, may contain anything; the terminal is the fifth field after it.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let terminal = after.split_ascii_whitespace().nth(4);
    terminal.is_some_and(|number| number != "0")
}

pub(crate) fn setup(ask: &Ask, request: ApprovalSetup) -> Reply<ApprovalSetup> {
    let proof = proof(&ask.caller, request.old);
    ask.session.approval_setup(&request.passphrase, &proof)?;
    Ok(ApprovalReady { set_up: true })
}

pub(crate) fn list(ask: &Ask, request: ApprovalList) -> Reply<ApprovalList> {
    let vault = request.vault.as_deref().map(parse_vault).transpose()?;
    let approvals = ask.session.approval_list(vault, request.all)?;
    let key = |it: &ApprovalInfo| it.approval.id.to_string();
    let approvals = page::after(approvals, request.cursor.as_deref(), key)?;
    let page = Page::of(approvals, request.limit, key);
    Ok(ApprovalListing {
        approvals: page.items.iter().map(item).collect(),
        next_cursor: page.next,
        set_up: ask.session.approval_is_set_up()?,
    })
}

pub(crate) fn show(ask: &Ask, request: ApprovalShow) -> Reply<ApprovalShow> {
    let details = ask.session.approval_show(parse(&request.id)?)?;
    let changed = details.shown.changed;
    Ok(ApprovalDetails {
        approval: item(&details.info),
        shown: details.shown.fingerprint,
        changed_since_asked_count: changed.as_ref().map_or(0, |it| it.count as u64),
        changed_since_asked: changed.map(|it| {
            let paths = it.paths.iter();
            paths.map(|path| safe(path.as_bytes())).collect()
        }),
        speculation: details.tried.map(tried_item),
    })
}

pub(crate) fn approve(ask: &Ask, request: ApprovalApprove) -> Reply<ApprovalApprove> {
    let proof = proof(&ask.caller, request.passphrase);
    let lifetime = request
        .lifetime_ms
        .map_or(APPROVAL_LIFETIME, Duration::from_millis);
    let id = parse(&request.id)?;
    let approved = ask
        .session
        .approval_approve(id, &request.shown, &proof, lifetime)?;
    Ok(item(&approved))
}

pub(crate) fn deny(ask: &Ask, request: ApprovalDeny) -> Reply<ApprovalDeny> {
    Ok(item(&ask.session.approval_deny(parse(&request.id)?)?))
}

fn item(info: &ApprovalInfo) -> ApprovalItem {
    let approval = &info.approval;
    let request = &approval.request;
    let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
    let texts = |key: &str| {
        let all = request[key].as_array().into_iter().flatten();
        all.filter_map(|value| value.as_str().map(str::to_owned))
            .collect::<Vec<String>>()
    };
    let over = matches!(
        approval.state,
        ApprovalState::Pending | ApprovalState::Approved
    ) && approval.is_expired();
    ApprovalItem {
        id: approval.id.to_string(),
        vault: info.vault.as_ref().map(ToString::to_string),
        state: if over {
            "expired"
        } else {
            approval.state.as_str()
        }
        .into(),
        kind: text("kind"),
        lines: texts("lines"),
        cwd: text("cwd"),
        env: texts("env"),
        network: text("network"),
        driver: text("driver"),
        terms: texts("terms"),
        categories: texts("categories"),
        rule: text("rule"),
        smallest_rule: request["smallest_rule"].as_str().map(str::to_owned),
        stale: info.stale,
        reason: request["reason"].as_str().map(str::to_owned),
        asked: items::time(approval.asked),
        expires: items::time(Time {
            secs: approval.expires,
            nanos: 0,
        }),
        exec: approval.exec.to_string(),
        root: approval.root.to_string(),
        version: approval.version,
        speculated: info.speculated,
    }
}

fn tried_item(tried: SpeculationDetails) -> TriedItem {
    TriedItem {
        driver: Driver::Namespace.as_str().into(),
        network: Network::None.name().into(),
        outcome: tried.outcome,
        stdout: safe(&tried.stdout),
        stderr: safe(&tried.stderr),
        changes_total: tried.changes.total,
        changes_truncated: tried.changes.is_truncated(),
        changes: tried.changes.listed.iter().map(items::change).collect(),
        patch: tried
            .patch
            .text
            .split_terminator('\n')
            .map(|line| safe(line.as_bytes()))
            .collect(),
        patch_truncated: tried.patch.truncated,
    }
}
