//! The short report after a command, for a reader.

use super::changes::{printable_lines, unlisted};
use super::quoted::quoted as quoted_lines;
use super::retried_line;
use super::style;
use super::summary::{self, ignored_lines};
use super::table::count;
use avfs_api::wire::{AttemptItem, Envelope, EnvelopeResult, NetworkUse, StatusWord};

/// How many refused hosts are shown.
const REFUSED_MAX: usize = 5;

/// The outcome of a command and its changes, in a few lines.
pub fn report(envelope: &Envelope) -> String {
    let result = &envelope.result;
    let mut lines = vec![headline(result)];
    if let Some(reason) = &result.decision.reason {
        lines.push(format!("  {}", printable_lines(reason)));
    }
    lines.extend(smallest_rule(result));
    if let Some(tried) = &result.speculation {
        let changed = count(tried.changes_total, "path");
        lines.push(format!(
            "  tried in the namespace sandbox, without network, in a temporary fork: {changed} changed"
        ));
        let more = unlisted(tried.changes_total, &tried.changes);
        let ignored = ignored_lines(&tried.ignored_changes);
        let tried = summary::lines(&tried.changes, more, None).into_iter();
        lines.extend(tried.chain(ignored).map(|line| format!("    {line}")));
    }
    if result.status == StatusWord::NeedsApproval
        && let Some(id) = &result.approval_id
    {
        lines.push(format!("  request {id}"));
    }
    if let Some(reason) = &result.ending.reason {
        lines.push(format!("  {}", printable_lines(reason)));
    }
    let more = unlisted(result.changes_total, &result.changes);
    let changes = summary::lines(&result.changes, more, Some(&result.exec));
    lines.extend(changes.into_iter().map(|line| format!("  {line}")));
    if let Some(uncommitted) = &result.uncommitted {
        lines.push(format!(
            "  {} {}",
            style::bad("error:"),
            printable_lines(&uncommitted.message)
        ));
        let hint = uncommitted.hint.iter();
        lines.extend(hint.map(|hint| format!("  {} {hint}", style::good("hint:"))));
    }
    lines.extend(network(&result.network).map(|line| format!("  {line}")));
    lines.extend(
        asides(result)
            .into_iter()
            .map(|aside| format!("  {}", style::faint(aside))),
    );
    lines.join("\n")
}

/// The narrowest rule that would let a refused command run.
fn smallest_rule(result: &EnvelopeResult) -> Vec<String> {
    let is_refused = matches!(
        result.status,
        StatusWord::Denied | StatusWord::NeedsApproval
    );
    let Some(rule) = result
        .decision
        .smallest_rule
        .as_ref()
        .filter(|_| is_refused)
    else {
        return Vec::new();
    };
    let head = "  the smallest rule that would allow it (`avfs policy edit`):".to_owned();
    let rule = quoted_lines([rule.as_str()]);
    std::iter::once(head)
        .chain(rule.lines().map(str::to_owned))
        .collect()
}

/// What was refused, and what a command needs that was run to find out.
fn network(used: &NetworkUse) -> impl Iterator<Item = String> {
    let refused = used.denied.iter().take(REFUSED_MAX).map(|attempt| {
        let host = printable_lines(&address(attempt));
        format!("not reached: {host} ({})", printable_lines(&attempt.rule))
    });
    let hidden = used.denied.len().saturating_sub(REFUSED_MAX) as u64 + used.more;
    let hidden = (hidden > 0).then(|| format!("and {hidden} more: avfs network log"));
    let needs = used.needs.iter().map(|needs| match needs.is_empty() {
        true => "it needs no network".to_owned(),
        false => format!("it needs: avfs network allow {}", quoted(needs)),
    });
    refused
        .chain(hidden)
        .chain(needs)
        .collect::<Vec<_>>()
        .into_iter()
}

/// Rules as words of a shell. Brackets and `*` are all that a shell could read otherwise.
fn quoted(rules: &[String]) -> String {
    let quoted = rules.iter().map(|rule| match rule.contains(['[', '*']) {
        true => format!("'{rule}'"),
        false => rule.clone(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn headline(result: &EnvelopeResult) -> String {
    let mut parts = vec![outcome(result), result.decision.action.clone()];
    if let Some(checkpoint) = &result.checkpoint {
        parts.push(format!("checkpoint {checkpoint}"));
    }
    if ran(result) && result.uncommitted.is_none() {
        parts.push(match (result.changes_total, result.changes_truncated) {
            (0, _) if result.ignored_changes.is_empty() => "nothing changed".into(),
            (0, _) => "only ignored paths changed".into(),
            (total, true) => format!("{} changed", count(total, "path")),
            (_, false) => format!("{} changed", count(result.changes.len() as u64, "path")),
        });
    }
    parts.push(format!("{} ms", result.duration_ms));
    let separator = style::faint(" · ").to_string();
    format!("{} {}", style::faint("avfs:"), parts.join(&separator))
}

fn outcome(result: &EnvelopeResult) -> String {
    let code = result.ending.exit_code.unwrap_or_default();
    let signal = result.ending.signal.unwrap_or_default();
    match result.status {
        StatusWord::Exited if code == 0 => style::good("exited 0").to_string(),
        StatusWord::Exited => style::bad(format!("exited {code}")).to_string(),
        StatusWord::Signaled => style::bad(format!("ended by signal {signal}")).to_string(),
        StatusWord::OutOfMemory => style::bad("out of memory").to_string(),
        StatusWord::LimitExceeded => style::bad("limit exceeded").to_string(),
        StatusWord::TimedOut => style::bad("timed out").to_string(),
        StatusWord::Cancelled => style::bad("cancelled").to_string(),
        StatusWord::Denied => style::bad("denied").to_string(),
        StatusWord::NeedsApproval => style::notable("needs approval").to_string(),
        StatusWord::NotFound => style::bad("command not found").to_string(),
        StatusWord::CouldNotStart => style::bad("could not start").to_string(),
        StatusWord::Interrupted => style::bad("interrupted").to_string(),
    }
}

/// Whether a process was started.
fn ran(result: &EnvelopeResult) -> bool {
    match result.status {
        StatusWord::Exited
        | StatusWord::Signaled
        | StatusWord::OutOfMemory
        | StatusWord::LimitExceeded
        | StatusWord::TimedOut
        | StatusWord::Cancelled
        | StatusWord::Interrupted => true,
        StatusWord::Denied
        | StatusWord::NeedsApproval
        | StatusWord::NotFound
        | StatusWord::CouldNotStart => false,
    }
}

fn asides(result: &EnvelopeResult) -> Vec<String> {
    let mut asides = ignored_lines(&result.ignored_changes);
    if result.home_changes > 0 {
        asides.push(format!(
            "{} in /home/agent; --home-changes lists them",
            count(result.home_changes, "change")
        ));
    }
    if let Some(changes) = &result.home_change_list {
        let more = unlisted(result.home_changes, changes);
        asides.extend(summary::lines(changes, more, None));
    }
    if result.output.stdout.spilled > 0 || result.output.stderr.spilled > 0 {
        asides.push(format!("full output: avfs output {}", result.exec));
    }
    if result.masked > 0 {
        asides.push(format!(
            "{} masked in its output",
            count(result.masked, "secret")
        ));
    }
    if let Some(fork) = &result.fork {
        asides.push(match fork.kept {
            true => format!("kept its fork: {}", fork.name),
            false => "ran in a temporary fork".into(),
        });
    }
    if result.leftovers > 0 {
        asides.push(format!(
            "{} still running at its end and ended with it; for what shall go on use `avfs job start`",
            processes(result.leftovers)
        ));
    }
    if !result.skipped.is_empty() {
        asides.push(format!(
            "{} not stored (sockets, devices)",
            count(result.skipped.len() as u64, "file")
        ));
    }
    asides.extend(retried_line(result.retried.iter().copied()));
    let (mounts, execs): (Vec<_>, Vec<_>) = result
        .shared_with
        .iter()
        .partition(|other| *other == Envelope::SHARED_WITH_MOUNT);
    if !mounts.is_empty() {
        asides.push("the vault is mounted; changes may come from there".to_owned());
    }
    if !execs.is_empty() {
        let others = count(execs.len() as u64, "other command");
        asides.push(format!(
            "{others} ran in this vault at the same time; changes may be theirs"
        ));
    }
    asides
}

fn processes(number: u32) -> String {
    match number {
        1 => "1 process was".into(),
        number => format!("{number} processes were"),
    }
}

/// The host, and the port if it was more than a look-up.
pub fn address(attempt: &AttemptItem) -> String {
    match attempt.port {
        Some(port) => format!("{}:{port}", attempt.host),
        None => attempt.host.clone(),
    }
}
