//! `avfs port`: ports of the host that lead into sandboxes, and where commands listen.

use crate::args::{PortForwardArgs, PortRemoveArgs, PortVerb};
use crate::error::Result;
use crate::output::Output;
use crate::output::table::table;
use crate::session::Session;
use avfs_api::wire::{
    CURRENT, ListeningItem, PortForward, PortItem, PortList, PortListing, PortRemove, PortsRemoved,
};
use std::net::{IpAddr, SocketAddr};

pub fn run(verb: PortVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        PortVerb::Forward(args) => forward(args, session, output),
        PortVerb::List => list(session, output),
        PortVerb::Remove(args) => remove(args, session, output),
    }
}

fn forward(args: PortForwardArgs, session: &mut Session, output: Output) -> Result<()> {
    let request = PortForward {
        guest: args.guest,
        host_port: args.host,
        listen: args.listen.map(|address| address.to_string()),
    };
    let opened = session.call_on(&args.vault, &request)?;
    output.answer(&opened, |port: &PortItem| {
        let PortItem { vault, guest, .. } = port;
        let host = address(port);
        format!(
            "{host} leads to {guest} of vault {vault}\nto end it: avfs port remove {vault} {guest}"
        )
    })
}

fn list(session: &mut Session, output: Output) -> Result<()> {
    let named = session.vault().to_owned();
    let vault = (named != CURRENT).then_some(named);
    let listing = session.call(&PortList { vault })?;
    output.answer(&listing, list_text)
}

fn remove(args: PortRemoveArgs, session: &mut Session, output: Output) -> Result<()> {
    let request = PortRemove {
        guest: args.guest,
        all: args.all,
    };
    let gone = session.call_on(&args.vault, &request)?;
    output.answer(&gone, |gone: &PortsRemoved| {
        if gone.removed.is_empty() {
            return "no port of the host led into the vault".into();
        }
        let lines: Vec<String> = gone.removed.iter().map(removed_line).collect();
        lines.join("\n")
    })
}

fn removed_line(port: &PortItem) -> String {
    let cut = match port.connections {
        0 => String::new(),
        1 => "; 1 connection was cut".into(),
        many => format!("; {many} connections were cut"),
    };
    let PortItem { vault, guest, .. } = port;
    format!(
        "{} no longer leads to {guest} of vault {vault}{cut}",
        address(port)
    )
}

/// As a client takes it: an IPv6 address in brackets.
fn address(port: &PortItem) -> String {
    match port.listen.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port.host_port).to_string(),
        Err(_) => format!("{}:{}", port.listen, port.host_port),
    }
}

fn list_text(listing: &PortListing) -> String {
    let mut parts = Vec::new();
    if !listing.forwards.is_empty() {
        let rows = listing.forwards.iter().map(|port| {
            vec![
                port.vault.clone(),
                port.guest.clone(),
                address(port),
                port.connections.to_string(),
            ]
        });
        let titles = ["VAULT", "GUEST", "HOST", "CONNECTIONS"];
        parts.push(table(&titles, rows.collect()).trim_fmt());
    }
    if !listing.listening.is_empty() {
        let rows = listing.listening.iter().map(listening_row);
        let titles = ["VAULT", "LISTENS ON", "EXEC"];
        parts.push(table(&titles, rows.collect()).trim_fmt());
    }
    if listing.listening_truncated {
        parts.push("commands listen at more places than are listed".into());
    }
    match parts.is_empty() {
        true => "no port is forwarded, and no command listens".into(),
        false => parts.join("\n\n"),
    }
}

fn listening_row(item: &ListeningItem) -> Vec<String> {
    let place = item.address.clone().unwrap_or_else(|| item.guest.clone());
    vec![item.vault.clone(), place, item.execs.join(" or ")]
}
