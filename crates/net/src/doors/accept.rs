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
    let failed = |error| Error::Socket(DNS, error);
    let made = service.sockets.udp_and_listener(DNS);
    let (socket, listener) = made.map_err(failed)?;
    let socket = {
        socket.set_nonblocking(true).map_err(failed)?;
        let _entered = service.handle.enter();
        tokio::net::UdpSocket::from_std(socket).map_err(failed)?
    };
    let served = Arc::clone(service);
    service.handle.spawn(async move {
        tokio::select! {
            () = served.stop.cancelled() => {}
            () = dns::serve_udp(&served, socket) => {}
        }
    });
    listen_on(service, listener, Listens::Dns).map_err(failed)
}

/// Opens the two proxies, and what the terms need for connections without one.
pub(crate) fn open_for(service: &Arc<Service>, terms: &Terms) -> Result<(), Error> {
    let proxies = [
        (HTTP_PROXY, Listens::HttpProxy),
        (SOCKS_PROXY, Listens::SocksProxy),
    ];
    service.open_routes(terms)?;
    let listed = service.listed_addresses(terms).into_iter();
    let listed = listed.map(|address| (address, Listens::Transparent));
    open_all(service, proxies.into_iter().chain(listed))
}

/// Opens what the terms need for connections without a proxy.
fn open_listed(service: &Arc<Service>, terms: &Terms) -> Result<(), Error> {
    service.open_routes(terms)?;
    let listed = service.listed_addresses(terms).into_iter();
    open_all(
        service,
        listed.map(|address| (address, Listens::Transparent)),
    )
}

/// Opens all that is not open yet. A port that a command has is noted; of other failures the first is told.
fn open_all(
    service: &Arc<Service>,
    all: impl Iterator<Item = (SocketAddr, Listens)>,
) -> Result<(), Error> {
    let new: Vec<_> = all.filter(|(address, _)| service.claim(*address)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let addresses: Vec<SocketAddr> = new.iter().map(|(address, _)| *address).collect();
    let made = service.sockets.tcp_listeners(&addresses);
    let mut failed = Ok(());
    for ((address, listens), made) in new.into_iter().zip(made) {
        let opened = made.and_then(|listener| listen_on(service, listener, listens));
        let Err(error) = opened else { continue };
        service.unclaim(address);
        if is_taken(address, &error) {
            note_taken(service, address);
        } else if failed.is_ok() {
            failed = Err(Error::Socket(address, error));
        }
    }
    failed
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
    let addresses = service.addresses_of_name(name).into_iter();
    let addresses = addresses.map(|address| (address, Listens::Transparent));
    if let Err(Error::Socket(address, _)) = open_all(service, addresses) {
        note_taken(service, address);
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

fn listen_on(
    service: &Arc<Service>,
    listener: std::net::TcpListener,
    listens: Listens,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = {
        let _entered = service.handle.enter();
        TcpListener::from_std(listener)?
    };
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
