//! `avfs key`: the keys with which others reach this home over the network.

use super::approval::is_other_user;
use crate::args::KeyVerb;
use crate::error::Result;
use crate::output::Output;
use crate::output::table::{table, time};
use crate::session::Session;
use crate::terminal::Terminal;
use avfs_api::wire::{KeyCreate, KeyItem, KeyList, KeyListing, KeyMade, KeyRevoke, KeyRotate};

pub fn run(verb: KeyVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        KeyVerb::Create(args) => {
            let approves = args.asks_user || args.scopes.iter().any(|scope| scope == "approve");
            let request = KeyCreate {
                passphrase: passphrase(approves)?,
                name: args.name,
                scopes: args.scopes,
                vaults: args.reach.vaults,
                expires_s: args.expires.0,
                rate: args.rate,
                asks_user: args.asks_user,
            };
            output.answer(&session.call(&request)?, made)
        }
        KeyVerb::List => output.answer(&session.call(&KeyList {})?, listing),
        KeyVerb::Revoke { name } => output.answer(&session.call(&KeyRevoke { name })?, |key| {
            format!("revoked {} and closed its connections", key.name)
        }),
        KeyVerb::Rotate(args) => {
            let keys = session.call(&KeyList {})?.keys;
            let key = keys.iter().find(|key| key.name == args.name);
            let approves =
                key.is_some_and(|key| key.asks_user || key.scopes.iter().any(|it| it == "approve"));
            let request = KeyRotate {
                passphrase: passphrase(approves)?,
                name: args.name,
                expires_s: args.expires.and_then(|lifetime| lifetime.0),
                forever: args.expires.is_some_and(|lifetime| lifetime.0.is_none()),
            };
            output.answer(&session.call(&request)?, made)
        }
    }
}

/// The passphrase for approvals, for a key that approves.
fn passphrase(approves: bool) -> Result<Option<String>> {
    if !approves || is_other_user()? {
        return Ok(None);
    }
    let mut terminal = Terminal::open("an approver's key")?;
    terminal.ask_secret("Passphrase for approvals: ").map(Some)
}

fn made(made: &KeyMade) -> String {
    let item = &made.item;
    let until = item
        .expires_at
        .as_deref()
        .map_or("without an end".into(), |end| {
            format!("until {}", time(end))
        });
    format!(
        "{}\n\n{}: class {}, scopes {}, vaults {}, {until}\nThe key is shown only now.",
        made.key,
        item.name,
        item.class,
        item.scopes.join(", "),
        item.vaults.join(", "),
    )
}

fn listing(listing: &KeyListing) -> String {
    if listing.keys.is_empty() {
        return "there are no keys; `avfs key create NAME` makes one".into();
    }
    let row = |key: &KeyItem| {
        vec![
            key.name.clone(),
            key.class.clone(),
            key.scopes.join(","),
            key.vaults.join(","),
            key.expires_at.as_deref().map_or("never".into(), time),
            key.state.clone(),
        ]
    };
    let headings = ["NAME", "CLASS", "SCOPES", "VAULTS", "EXPIRES", "STATE"];
    table(&headings, listing.keys.iter().map(row).collect()).trim_fmt()
}
