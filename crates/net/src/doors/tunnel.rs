//! Bytes for a host that has been allowed, checked as far as their protocol can be.

use std::io::Cursor;
use std::sync::Arc;

use avfs_policy::{Host, HostPort};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::hello::{NoHello, ServerName, read_hello};
use super::http;
use crate::attempts::Door;
use crate::dial::{self, Dialled, Stream};
use crate::execs::{Connection, Speaks};
use crate::refusal::Refusal;
use crate::relay::relay;
use crate::service::Service;

/// The sandbox's end of a connection.
pub(super) trait Inside: Stream + 'static {
    /// Makes closing it a reset, where that can be, so that the client does not take what it has for all there is.
    fn abort(&self);
}

impl Inside for TcpStream {
    fn abort(&self) {
        let _ = self.set_zero_linger();
    }
}

/// The inside of a tunnel that a proxy has answered for.
impl Inside for TokioIo<Upgraded> {
    fn abort(&self) {}
}

/// Serves a connection for a host: on port 443 TLS whose server name is the host, on port 80 HTTP requests for the host,
/// on other ports whatever it is, unless the terms say. `dialled` is the connection to the host where it has been made before.
pub(super) async fn run(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    door: Door,
    at: &HostPort,
    mut stream: impl Inside,
    dialled: Option<Dialled>,
) {
    let speaks = connection.speaks(at);
    if speaks == Speaks::Http {
        return http::serve_host(service, connection, at, stream).await;
    }
    if has_requests(connection, at) {
        return opened(service, connection, door, at, stream).await;
    }
    let ran = async {
        match speaks {
            Speaks::Tls => secure(service, connection, at, &mut stream, dialled).await,
            _ => raw(service, connection, at, &mut stream, dialled, &[]).await,
        }
    };
    let ended = tokio::select! {
        ended = ran => ended,
        () = connection.cut.cancelled() => Err(Refusal::Cut),
    };
    if let Err(refusal) = ended {
        connection.refused(door, &refusal);
        stream.abort();
    }
}

/// Whether what comes is read as requests, each of which dials for itself.
pub(super) fn has_requests(connection: &Connection, at: &HostPort) -> bool {
    match connection.speaks(at) {
        Speaks::Http => true,
        Speaks::Tls => connection.inspects(&at.host),
        Speaks::Anything => false,
    }
}

/// TLS that is opened, and made anew to the host. The client sees a certificate of the sandbox's own authority.
async fn opened(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    door: Door,
    at: &HostPort,
    mut stream: impl Inside,
) {
    let ready = async {
        let bytes = greeting(service, at, &mut stream).await?;
        // Whoever had the terms changed so that TLS is opened here had it made.
        let authority = service.made_authority();
        let config = authority.and_then(|authority| authority.serve_as(&at.host));
        let config = config.map_err(|error| Refusal::Unreachable(at.clone(), error.to_string()))?;
        Ok((bytes, config))
    };
    let (bytes, config) = match ready.await {
        Ok(ready) => ready,
        Err(refusal) => {
            connection.refused(door, &refusal);
            return stream.abort();
        }
    };
    // The greeting has been read already, and is read again.
    let (reading, writing) = tokio::io::split(stream);
    let rewound = tokio::io::join(Cursor::new(bytes).chain(reading), writing);
    let accepting = TlsAcceptor::from(config).accept(rewound);
    let time = service.bounds().greeting_time;
    if let Ok(Ok(inside)) = timeout(time, accepting).await {
        http::serve_opened(service, connection, at, inside).await;
    }
}

/// Reads the TLS greeting, and checks that it names the host.
async fn greeting(
    service: &Service,
    at: &HostPort,
    stream: &mut impl Stream,
) -> Result<Vec<u8>, Refusal> {
    let bounds = service.bounds();
    let hello = read_hello(stream, bounds.hello_bytes, bounds.greeting_time).await;
    let (name, bytes) = match hello {
        Ok(hello) => hello,
        Err(NoHello::Silent) => return Err(Refusal::Malformed("no TLS greeting came in time")),
        Err(NoHello::NotTls) => return Err(Refusal::NotTls(at.clone())),
    };
    check_name(at, name)?;
    Ok(bytes)
}

/// TLS whose server name is the host. What is inside is not seen: requests for other hosts of the same server can be made in it.
async fn secure(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    at: &HostPort,
    stream: &mut impl Stream,
    dialled: Option<Dialled>,
) -> Result<(), Refusal> {
    let bytes = greeting(service, at, stream).await?;
    raw(service, connection, at, stream, dialled, &bytes).await
}

/// An address has no name, so the client may send one or none.
fn check_name(at: &HostPort, name: ServerName) -> Result<(), Refusal> {
    match name {
        ServerName::Encrypted => Err(Refusal::EncryptedHello(at.clone())),
        ServerName::Absent if at.host.name().is_some() => Err(Refusal::NoServerName(at.clone())),
        ServerName::Absent => Ok(()),
        ServerName::Named(_) if at.host.name().is_none() => Ok(()),
        ServerName::Named(text) => match Host::parse(&text) {
            Ok(host) if host == at.host => Ok(()),
            _ => Err(Refusal::other_host(at, &text, at.port)),
        },
    }
}

async fn raw(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    at: &HostPort,
    stream: &mut impl Stream,
    dialled: Option<Dialled>,
    first: &[u8],
) -> Result<(), Refusal> {
    let mut outside = match dialled {
        Some(dialled) => dialled,
        None => dial::tunnel(&service.common, connection, at).await?,
    };
    let sent = outside.write_all(first).await;
    sent.map_err(|error| Refusal::Unreachable(at.clone(), error.to_string()))?;
    relay(connection, service.bounds().idle_time, stream, &mut outside).await;
    connection.spent().map_or(Ok(()), Err)
}
