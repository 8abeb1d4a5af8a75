//! Sockets that listen in the sandbox, and what becomes of the connections that they accept.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use avfs_policy::{HostName, HostPort};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::{dns, http, socks, transparent};
use crate::attempts::Door;
use crate::error::Error;
use crate::execs::{Connection, Who};
use crate::refusal::Refusal;
use crate::sandbox::{DNS, Ends, HTTP_PROXY, SOCKS_PROXY, Transport};
use crate::service::{COMMANDS_PORTS, Service};
use crate::terms::Terms;

/// What a socket listens for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listens {
    Dns,
    HttpProxy,
    SocksProxy,
    /// Connections to the addresses of hosts.
    Transparent,
}

/// How long to wait after accepting failed, which it does when descriptors are used up.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Opens the door for names, over UDP and TCP.
pub(crate) fn open_names(service: &Arc<Service>) -> Result<(), Error> {
    if !service.claim(DNS) {
        return Ok(());
    }
    let made = service.sockets.udp(DNS).and_then(|socket| {
        socket.set_nonblocking(true)?;
        let _entered = service.handle.enter();
        tokio::net::UdpSocket::from_std(socket)
    });
    let socket = made.map_err(|error| Error::Socket(DNS, error))?;
    let served = Arc::clone(service);
    service.handle.spawn(async move {
        tokio::select! {
            () = served.stop.cancelled() => {}
            () = dns::serve_udp(&served, socket) => {}
        }
    });
    listen(service, DNS, Listens::Dns)
}

/// Opens the two proxies.
pub(crate) fn open_proxies(service: &Arc<Service>) -> Result<(), Error> {
    let proxies = [
        (HTTP_PROXY, Listens::HttpProxy),
        (SOCKS_PROXY, Listens::SocksProxy),
    ];
    for (address, listens) in proxies {
        open(service, address, listens)?;
    }
    Ok(())
}

/// Opens what the terms need for connections without a proxy.
pub(crate) fn open_listed(service: &Arc<Service>, terms: &Terms) -> Result<(), Error> {
    service.open_routes(terms)?;
    for address in service.listed_addresses(terms) {
        match open(service, address, Listens::Transparent) {
            Err(Error::Socket(_, error)) if is_taken(address, &error) => {
                note_taken(service, address)
            }
            opened => opened?,
        }
    }
    Ok(())
}

/// Opens what a name needs that a client has just asked for. Blocks.
pub(super) fn open_name(service: &Arc<Service>, name: &HostName, v6: bool) {
    if v6 {
        service.open_v6(|| {
            for terms in service.execs.all_terms() {
                // Its command was let in, and can use IPv4 and the proxies if this fails.
                let _ = open_listed(service, &terms);
            }
        });
    }
    for address in service.addresses_of_name(name) {
        if open(service, address, Listens::Transparent).is_err() {
            note_taken(service, address);
        }
    }
}

/// Whether a command listens on the port itself. That must not keep others from running: they can use a proxy.
fn is_taken(address: SocketAddr, error: &io::Error) -> bool {
    address.port() >= COMMANDS_PORTS && error.kind() == io::ErrorKind::AddrInUse
}

/// Says among the attempts that a port is not served without a proxy.
fn note_taken(service: &Service, address: SocketAddr) {
    let at = HostPort::new(service.names.host_at(address.ip()), address.port());
    let why = "a command in the sandbox listens on the port; use a proxy".to_owned();
    let refusal = Refusal::Unreachable(at, why);
    service.execs.refused(&Who::Unknown, Door::Raw, &refusal);
}

fn open(service: &Arc<Service>, address: SocketAddr, listens: Listens) -> Result<(), Error> {
    match service.claim(address) {
        true => listen(service, address, listens).inspect_err(|_| service.unclaim(address)),
        false => Ok(()),
    }
}

fn listen(service: &Arc<Service>, address: SocketAddr, listens: Listens) -> Result<(), Error> {
    let made = service.sockets.tcp_listener(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let _entered = service.handle.enter();
        TcpListener::from_std(listener)
    });
    let listener = made.map_err(|error| Error::Socket(address, error))?;
    let served = Arc::clone(service);
    service.handle.spawn(async move {
        tokio::select! {
            () = served.stop.cancelled() => {}
            () = accept(&served, listener, listens) => {}
        }
    });
    Ok(())
}

async fn accept(service: &Arc<Service>, listener: TcpListener, listens: Listens) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(AFTER_FAILURE).await;
            continue;
        };
        let own = Arc::clone(&service.connections).try_acquire_owned();
        let all = Arc::clone(&service.common.connections).try_acquire_owned();
        let (Ok(own), Ok(all)) = (own, all) else {
            reset(stream);
            continue;
        };
        let service = Arc::clone(service);
        tokio::spawn(async move { serve(service, stream, peer, listens, [own, all]).await });
    }
}

async fn serve(
    service: Arc<Service>,
    stream: TcpStream,
    peer: SocketAddr,
    listens: Listens,
    permits: [OwnedSemaphorePermit; 2],
) {
    let _ = stream.set_nodelay(true);
    if listens == Listens::Dns {
        let _permits = permits;
        tokio::select! {
            () = service.stop.cancelled() => {}
            () = dns::serve_tcp(&service, stream, peer) => {}
        }
        return;
    }
    let Ok(server) = stream.local_addr() else {
        return;
    };
    let ends = Ends {
        transport: Transport::Tcp,
        client: peer,
        server,
    };
    let connection = Connection::accepted(&service.execs, ends, &service.stop, permits).await;
    let connection = Arc::new(connection);
    match listens {
        Listens::HttpProxy => http::serve_proxy(&service, &connection, stream).await,
        Listens::SocksProxy => socks::serve(&service, &connection, stream).await,
        Listens::Transparent | Listens::Dns => {
            transparent::serve(&service, &connection, stream).await;
        }
    }
}

/// Closes a connection so that the client gets ECONNRESET.
pub(crate) fn reset(stream: TcpStream) {
    let _ = stream.set_zero_linger();
}
