//! `avfs approval`: what waits for the owner, and the owner's answer.

use crate::args::ApprovalVerb;
use crate::error::{Error, Result};
use crate::output::table::{table, time};
use crate::output::{Output, style};
use crate::session::Session;
use crate::terminal::Terminal;
use avfs_api::wire::{
    ApprovalApprove, ApprovalDeny, ApprovalDetails, ApprovalItem, ApprovalList, ApprovalListing,
    ApprovalSetup, ApprovalShow, CURRENT, TriedItem,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// How much of a command fits into a line of the list.
const LINE: usize = 60;
/// More lines than this are not asked about in passing.
const MOST_LINES: usize = 60;
const LOOK_AGAIN: Duration = Duration::from_millis(300);

pub fn run(verb: ApprovalVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        ApprovalVerb::Setup => setup(session, output),
        ApprovalVerb::List { all } => list(all, session, output),
        ApprovalVerb::Show { id } => {
            let details = session.call(&ApprovalShow { id })?;
            output.answer(&details, details_text)
        }
        ApprovalVerb::Approve { id, expires } => approve(id, expires, session, output),
        ApprovalVerb::Deny { id } => {
            let denied = session.call(&ApprovalDeny { id })?;
            output.answer(&denied, |denied| format!("denied {}", denied.id))
        }
        ApprovalVerb::Watch => watch(session),
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
            text: "the two are not the same; nothing was changed".into(),
            hint: None,
        });
    }
    let ready = session.call(&ApprovalSetup { passphrase, old })?;
    output.answer(
        &ready,
        |_| "commands can now be approved: `avfs approval watch` shows them as they come",
    )
}

fn list(all: bool, session: &mut Session, output: Output) -> Result<()> {
    let vault = Some(session.vault().to_owned()).filter(|vault| vault != CURRENT);
    let listing = session.call(&ApprovalList { vault, all })?;
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
            item.state.clone(),
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

fn one_line(item: &ApprovalItem) -> String {
    let whole = item.lines.join(" ");
    match whole.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}

/// All there is to know before saying yes. Everything in it is escaped already.
fn details_text(details: &ApprovalDetails) -> String {
    let item = &details.approval;
    let mut text = format!(
        "{} {} ({})\n  vault    {} at version {}\n  in       {}\n  network  {}\n  rule     {}\n",
        style::strong("request"),
        item.id,
        item.state,
        item.vault.as_deref().unwrap_or("(gone)"),
        item.version,
        item.cwd,
        item.network,
        item.rule,
    );
    if !item.categories.is_empty() {
        text += &format!("  is       {}\n", item.categories.join(", "));
    }
    if let Some(reason) = &item.reason {
        text += &format!("  because  {reason}\n");
    }
    for variable in &item.env {
        text += &format!("  env      {variable}\n");
    }
    let kind = match item.kind.as_str() {
        "shell" => "shell text",
        _ => "command, one word per line",
    };
    text += &format!("  {kind}:\n");
    for line in &item.lines {
        text += &format!("    {line}\n");
    }
    if let Some(tried) = &details.speculation {
        text += &tried_text(tried);
    }
    text
}

fn tried_text(tried: &TriedItem) -> String {
    let mut text = format!(
        "  tried in a fork without network: {}, {} changed\n",
        tried.outcome,
        tried.changes.len()
    );
    for line in &tried.patch {
        text += &format!("    {line}\n");
    }
    text
}

fn approve(
    id: String,
    lifetime_ms: Option<u64>,
    session: &mut Session,
    output: Output,
) -> Result<()> {
    let details = session.call(&ApprovalShow { id: id.clone() })?;
    let passphrase = match is_other_user()? {
        true => None,
        false => {
            if !session.call(&ApprovalList::default())?.set_up {
                return Err(Error::Unavailable {
                    text: "no approver is set up on this machine".into(),
                    hint: Some("run `avfs approval setup` in a terminal of your own".into()),
                });
            }
            let mut terminal = Terminal::open("approving")?;
            terminal.say(&details_text(&details))?;
            Some(terminal.ask_secret("Passphrase to let it run once: ")?)
        }
    };
    let approved = session.call(&ApprovalApprove {
        id,
        passphrase,
        lifetime_ms,
    })?;
    output.answer(&approved, |approved| {
        format!(
            "approved until {}: it runs when it is asked for again with `--approval {}`",
            time(&approved.expires),
            approved.id
        )
    })
}

/// Whether this home belongs to somebody else than whoever runs this.
fn is_other_user() -> Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let home = crate::environment::home()?;
    let owner = std::fs::metadata(&home)
        .map_err(Error::io("cannot look at the home"))?
        .uid();
    Ok(owner != rustix::process::geteuid().as_raw())
}

/// Asks about each request as it comes, until the terminal is closed.
fn watch(session: &mut Session) -> Result<()> {
    let mut terminal = Terminal::open("watching")?;
    let passphrase = match is_other_user()? {
        true => None,
        false => Some(terminal.ask_secret("Passphrase: ")?),
    };
    terminal.say("waiting for commands; Ctrl-C ends this\n")?;
    let mut seen = BTreeSet::new();
    loop {
        let listing = session.call(&ApprovalList::default())?;
        for item in listing.approvals.into_iter().rev() {
            if !seen.insert(item.id.clone()) {
                continue;
            }
            let details = session.call(&ApprovalShow {
                id: item.id.clone(),
            })?;
            if !decide(&details, passphrase.as_ref(), &mut terminal, session)? {
                return Ok(());
            }
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Asks about one request; false when nobody is there to answer.
fn decide(
    details: &ApprovalDetails,
    passphrase: Option<&String>,
    terminal: &mut Terminal,
    session: &mut Session,
) -> Result<bool> {
    let id = details.approval.id.clone();
    let text = details_text(details);
    if text.lines().count() > MOST_LINES {
        terminal.say(&format!(
            "\nrequest {id} is too long to be asked about here: see `avfs approval show {id}`\n"
        ))?;
        return Ok(true);
    }
    terminal.say(&format!("\n{text}"))?;
    let Some(answer) = terminal.ask("Let it run once? [y = yes, n = deny, Enter = later] ")? else {
        return Ok(false);
    };
    let done = match answer.as_str() {
        "y" | "yes" => {
            let approve = ApprovalApprove {
                id,
                passphrase: passphrase.cloned(),
                lifetime_ms: None,
            };
            session.call(&approve).map(|_| "approved")
        }
        "n" | "no" => session.call(&ApprovalDeny { id }).map(|_| "denied"),
        _ => Ok("left for later"),
    };
    match done {
        Ok(word) => terminal.say(&format!("{word}\n"))?,
        Err(error) => terminal.say(&format!("error: {}\n", error.message()))?,
    }
    Ok(true)
}
