//! `avfs approval`: commands that wait for the owner, and the answers.

mod always;

use crate::args::{ApprovalVerb, Time};
use crate::error::{Error, Result};
use crate::output::changes::printable_lines;
use crate::output::quoted::{field, quoted};
use crate::output::table::{count, table, time};
use crate::output::{Output, note, style};
use crate::session::Session;
use crate::terminal::Terminal;
use always::AddRule;
use avfs_api::wire::{
    ApprovalApprove, ApprovalDeny, ApprovalDetails, ApprovalItem, ApprovalList, ApprovalListing,
    ApprovalSetup, ApprovalShow, CURRENT, TriedItem,
};
use avfs_runtime::ErrorKind;
use std::collections::BTreeSet;
use std::time::Duration;

/// How much of a command fits into a line of the list.
const LINE: usize = 60;
/// `watch` does not ask about longer requests.
const MOST_LINES: usize = 60;
/// How many changed paths are listed.
const MOST_PATHS: usize = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(300);

pub fn run(verb: ApprovalVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        ApprovalVerb::Setup => setup(session, output),
        ApprovalVerb::List { all } => list(all, session, output),
        ApprovalVerb::Show { id } => {
            let details = session.call(&ApprovalShow { id })?;
            output.answer(&details, details_text)
        }
        ApprovalVerb::Approve {
            id,
            expires,
            shown,
            always,
            yes,
        } => {
            let rule = match (always, yes) {
                (false, _) => AddRule::No,
                (true, false) => AddRule::IfConfirmed,
                (true, true) => AddRule::Yes,
            };
            approve(id, (expires, shown), rule, session, output)
        }
        ApprovalVerb::Deny { id } => {
            let denied = session.call(&ApprovalDeny { id })?;
            output.answer(&denied, |denied| format!("denied {}", denied.id))
        }
        ApprovalVerb::Watch => watch(session, output),
    }
}

fn setup(session: &mut Session, output: Output) -> Result<()> {
    let set_up = session.call(&ApprovalList::default())?.set_up;
    let mut terminal = Terminal::open("a passphrase")?;
    let old = match set_up {
        true => Some(terminal.ask_secret("Present passphrase: ")?),
        false => None,
    };
    let passphrase = terminal.ask_secret("New passphrase: ")?;
    if passphrase != terminal.ask_secret("Once more: ")? {
        return Err(Error::Invalid {
            text: "the passphrases differ; nothing was changed".into(),
            hint: None,
        });
    }
    let ready = session.call(&ApprovalSetup { passphrase, old })?;
    output.answer(
        &ready,
        |_| "commands can now be approved: `avfs approval watch` shows them as they arrive",
    )
}

fn list(all: bool, session: &mut Session, output: Output) -> Result<()> {
    let vault = Some(session.vault().to_owned()).filter(|vault| vault != CURRENT);
    let listing = session.call(&ApprovalList {
        vault,
        all,
        ..ApprovalList::default()
    })?;
    output.answer(&listing, list_text)
}

fn list_text(listing: &ApprovalListing) -> String {
    if listing.approvals.is_empty() {
        return "nothing waits for approval".into();
    }
    let rows = listing.approvals.iter().map(|item| {
        vec![
            item.id.clone(),
            item.vault.clone().unwrap_or_default(),
            state_of(item),
            time(&item.asked),
            one_line(item),
        ]
    });
    table(
        &["ID", "VAULT", "STATE", "ASKED", "COMMAND"],
        rows.collect(),
    )
    .trim_fmt()
}

/// The state in words, with a mark for what was asked for on another state of the vault.
fn state_of(item: &ApprovalItem) -> String {
    match item.stale {
        true => format!("{}, stale", item.state),
        false => item.state.clone(),
    }
}

fn one_line(item: &ApprovalItem) -> String {
    let whole = item.lines.join(" ");
    match whole.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}

/// Everything to know before approving. Every line of foreign text is marked.
fn details_text(details: &ApprovalDetails) -> String {
    let item = &details.approval;
    let mut text = format!(
        "{} {} ({})\n",
        style::strong("request"),
        item.id,
        state_of(item)
    );
    let vault = item.vault.as_deref().unwrap_or("(gone)");
    text += &field("vault", &format!("{vault} at version {}", item.version));
    text += &field("in", &item.cwd);
    text += &field("network", &item.network);
    text += &match item.driver.as_str() {
        "process" => field("driver", "process: on the host, without isolation"),
        driver => field("driver", driver),
    };
    text += &field("terms", &item.terms.join(", "));
    text += &field("rule", &item.rule);
    if !item.categories.is_empty() {
        text += &field("is", &item.categories.join(", "));
    }
    if let Some(reason) = &item.reason {
        text += &field("because", reason);
    }
    for variable in &item.env {
        text += &field("env", variable);
    }
    text += "  alone in the vault, with /tmp, /var/tmp, /run and /dev/shm empty\n";
    text += &changed_text(details);
    text += match item.kind.as_str() {
        "shell" => "  shell text:\n",
        _ => "  command, one argument per line:\n",
    };
    text += &quoted(item.lines.iter().map(String::as_str));
    if let Some(tried) = &details.speculation {
        text += &tried_text(tried);
    }
    text += &field("shown as", &details.shown);
    text
}

/// What changed in the vault since the request.
fn changed_text(details: &ApprovalDetails) -> String {
    let changed = match &details.changed_since_asked {
        None => return "  what changed since the request is not known any more\n".into(),
        Some(changed) if changed.is_empty() => return String::new(),
        Some(changed) => changed,
    };
    let all = details.changed_since_asked_count;
    let number = count(all, "path");
    let mut text = format!("  since the request, {number} of the vault changed:\n");
    text += &quoted(changed.iter().take(MOST_PATHS).map(String::as_str));
    let more = all.saturating_sub(MOST_PATHS as u64);
    if more > 0 {
        text += &format!("    and {more} more\n");
    }
    text
}

fn tried_text(tried: &TriedItem) -> String {
    let mut text = format!(
        "  tried in a fork, driver {}, network {}: {}, {} changed; approved, this is what is\n  \
         published, and nothing runs again:\n",
        tried.driver,
        tried.network,
        tried.outcome,
        count(tried.changes.len() as u64, "path")
    );
    text += &quoted(tried.patch.iter().map(String::as_str));
    text
}

fn approve(
    id: String,
    (expires, shown): (Option<Time>, Option<String>),
    add: AddRule,
    session: &mut Session,
    output: Output,
) -> Result<()> {
    let details = session.call(&ApprovalShow { id: id.clone() })?;
    // Before anything is approved: what cannot be written is refused as a whole.
    let rule = always::rule(&details.approval, add)?;
    let passphrase = match is_other_user()? {
        true => {
            note(&details_text(&details).trim_end())?;
            if let Some(rule) = &rule {
                always::confirm(rule, add, &mut Terminal::open("adding a rule")?)?;
            }
            None
        }
        false => {
            if !session.call(&ApprovalList::default())?.set_up {
                return Err(Error::Unavailable {
                    text: "no approver is set up on this machine".into(),
                    hint: Some("run `avfs approval setup` in a terminal of your own".into()),
                });
            }
            let mut terminal = Terminal::open("approving")?;
            terminal.say(&details_text(&details))?;
            if let Some(rule) = &rule {
                always::confirm(rule, add, &mut terminal)?;
            }
            Some(terminal.ask_secret("Passphrase to let it run once: ")?)
        }
    };
    let approved = session.call(&ApprovalApprove {
        id,
        shown: shown.unwrap_or(details.shown),
        passphrase,
        lifetime_ms: expires.map(Time::millis),
    })?;
    if let Some(rule) = rule {
        always::write(&rule, session)?;
    }
    output.answer(&approved, |approved| {
        format!(
            "approved until {}: the command runs when it is repeated with `--approval {}`",
            time(&approved.expires),
            approved.id
        )
    })
}

/// Whether this home belongs to another user.
pub(super) fn is_other_user() -> Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let home = crate::environment::home()?;
    let owner = std::fs::metadata(&home)
        .map_err(Error::io("cannot read the home"))?
        .uid();
    Ok(owner != rustix::process::geteuid().as_raw())
}

/// Asks about each request as it arrives, until the terminal is closed.
fn watch(session: &mut Session, output: Output) -> Result<()> {
    if output.is_json() {
        return Err(Error::Invalid {
            text: "`approval watch` talks to somebody at a terminal, and prints no JSON".into(),
            hint: Some("`avfs approval list --json` lists what waits".into()),
        });
    }
    let mut terminal = Terminal::open("watching")?;
    let passphrase = match is_other_user()? {
        true => None,
        false => Some(terminal.ask_secret("Passphrase: ")?),
    };
    terminal.say("waiting for commands; Ctrl-C ends this\n")?;
    let mut seen = BTreeSet::new();
    loop {
        let listing = session.call(&ApprovalList::default())?;
        for item in listing.approvals {
            if !seen.insert(item.id.clone()) {
                continue;
            }
            let details = session.call(&ApprovalShow {
                id: item.id.clone(),
            })?;
            match decide(&details, passphrase.as_ref(), &mut terminal, session)? {
                Asked::Done => {}
                Asked::Refused => drop(seen.remove(&item.id)),
                Asked::NobodyThere => return Ok(()),
            }
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The result of asking about a request.
enum Asked {
    Done,
    /// The vault has changed: if the request still waits, it is shown again.
    Refused,
    NobodyThere,
}

/// Asks about one request.
fn decide(
    details: &ApprovalDetails,
    passphrase: Option<&String>,
    terminal: &mut Terminal,
    session: &mut Session,
) -> Result<Asked> {
    let id = details.approval.id.clone();
    let text = details_text(details);
    if text.lines().count() > MOST_LINES {
        terminal.say(&format!(
            "\nrequest {id} is too long to be asked about here: see `avfs approval show {id}`\n"
        ))?;
        return Ok(Asked::Done);
    }
    terminal.say(&format!("\n{text}"))?;
    let Some(answer) = terminal.ask("Let it run once? [y = yes, n = deny, Enter = later] ")? else {
        return Ok(Asked::NobodyThere);
    };
    let done = match answer.as_str() {
        "y" | "yes" => {
            let approve = ApprovalApprove {
                id,
                shown: details.shown.clone(),
                passphrase: passphrase.cloned(),
                lifetime_ms: None,
            };
            session.call(&approve).map(|_| "approved")
        }
        "n" | "no" => session.call(&ApprovalDeny { id }).map(|_| "denied"),
        _ => Ok("left for later"),
    };
    match done {
        Ok(word) => {
            terminal.say(&format!("{word}\n"))?;
            Ok(Asked::Done)
        }
        Err(error) => {
            terminal.say(&format!("error: {}\n", printable_lines(&error.message())))?;
            if let Some(hint) = error.hint() {
                terminal.say(&format!("hint: {}\n", printable_lines(&hint)))?;
            }
            Ok(match error.kind() {
                ErrorKind::Conflict => Asked::Refused,
                _ => Asked::Done,
            })
        }
    }
}
