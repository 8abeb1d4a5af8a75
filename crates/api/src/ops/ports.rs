//! Ports of the host that lead into sandboxes.

use super::failure::Failure;
use super::{Ask, Reply, parse};
use crate::wire::{
    ListeningItem, PortForward, PortItem, PortList, PortListing, PortRemove, PortsRemoved, to_text,
};
use avfs_runtime::{Guest, ListeningAt, ListeningPort, PortInfo, Select, VaultName};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(crate) fn forward(ask: &Ask, vault: Select, request: PortForward) -> Reply<PortForward> {
    let guest: Guest = parse(&request.guest)?;
    let listen = match request.listen.as_deref() {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => text.parse().map_err(|_| {
            Failure::invalid(format!("{text:?} is not an IP address"))
                .hint("as 127.0.0.1, ::1, or 0.0.0.0 for every address of the host")
        })?,
    };
    // None is picked if it is named: 0 would mean a free one.
    if request.host_port == Some(0) {
        return Err(Failure::invalid("0 is no port").hint("leave it out, and a free one is picked"));
    }
    let host = SocketAddr::new(listen, request.host_port.unwrap_or_default());
    Ok(item(ask.session.port_forward(&vault, guest, host)?))
}

pub(crate) fn list(ask: &Ask, request: PortList) -> Reply<PortList> {
    let vault: Option<VaultName> = ask.named_if_any(request.vault.as_deref())?;
    if let Some(vault) = &vault {
        ask.check_name(vault)?;
    }
    let reaches = |vault: &VaultName| ask.caller.grant.reaches(vault);
    let mut forwards = ask.session.ports(vault.as_ref())?;
    forwards.retain(|it| reaches(&it.vault));
    let mut found = ask.session.listening(vault.as_ref())?;
    found.ports.retain(|it| reaches(&it.vault));
    Ok(PortListing {
        forwards: forwards.into_iter().map(item).collect(),
        listening: found.ports.into_iter().map(listening).collect(),
        listening_truncated: !found.is_complete,
    })
}

pub(crate) fn remove(ask: &Ask, vault: Select, request: PortRemove) -> Reply<PortRemove> {
    let guest = match (&request.guest, request.all) {
        (Some(guest), false) => Some(parse(guest)?),
        (None, true) => None,
        _ => return Err(Failure::invalid("name a guest, or all")),
    };
    let removed = ask.session.port_remove(&vault, guest.as_ref())?;
    Ok(PortsRemoved {
        removed: removed.into_iter().map(item).collect(),
    })
}

fn item(info: PortInfo) -> PortItem {
    PortItem {
        vault: info.vault.to_string(),
        guest: info.guest.to_string(),
        listen: info.host.ip().to_string(),
        host_port: info.host.port(),
        connections: info.connections,
    }
}

fn listening(port: ListeningPort) -> ListeningItem {
    let (guest, guest_b64, address) = match port.at {
        ListeningAt::Tcp(address) => (address.port().to_string(), None, Some(address.to_string())),
        ListeningAt::Unix(path) => {
            let (path, exact) = to_text(path);
            (path, exact, None)
        }
    };
    ListeningItem {
        vault: port.vault.to_string(),
        guest,
        guest_b64,
        address,
        execs: port.execs.iter().map(ToString::to_string).collect(),
    }
}
