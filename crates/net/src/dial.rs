//! A checked connection to a host: resolved once, and dialled as checked.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use avfs_policy::{Denial, Host, HostName, HostPort};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{HOST, PROXY_AUTHORIZATION};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::execs::Connection;
use crate::meter::Metered;
use crate::refusal::Refusal;
use crate::service::Common;
use crate::upstream::Proxy;

/// A stream of bytes to a host.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(crate) type Dialled = Metered<Box<dyn Stream>>;

/// What the daemon calls itself where a request is its own.
pub(crate) const AGENT: &str = concat!("agentvfs/", env!("CARGO_PKG_VERSION"));
/// How many addresses of one name are tried.
const MAX_ADDRESSES: usize = 8;
/// How long one address is waited for before the next is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);

/// Connects to a host that [`Connection::open`] has allowed, through the host's own proxy if it needs one.
pub(crate) async fn tunnel(
    common: &Common,
    connection: &Connection,
    at: &HostPort,
) -> Result<Dialled, Refusal> {
    let stream = unmetered(common, connection, at).await?;
    Ok(metered(connection, stream))
}

/// As [`tunnel`], for bytes that are counted where they are passed on.
pub(crate) async fn unmetered(
    common: &Common,
    connection: &Connection,
    at: &HostPort,
) -> Result<Box<dyn Stream>, Refusal> {
    let dialled = async {
        match common.config.upstream.tunnel(&at.host) {
            Some(proxy) => through(common, Some(connection.resolutions()), proxy, at).await,
            None => direct(common, connection, at).await,
        }
    };
    within(common, at, dialled).await
}

/// Connects to a host that the daemon itself wants to ask.
pub(crate) async fn own(common: &Common, at: &HostPort) -> Result<Box<dyn Stream>, Refusal> {
    let dialled = async {
        if let Some(proxy) = common.config.upstream.tunnel(&at.host) {
            return through(common, None, proxy, at).await;
        }
        let addresses = match &at.host {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) => resolve(common, None, name).await,
        };
        let addresses = addresses.map_err(|error| unreachable(at, &error))?;
        let stream = connect_any(addresses, at.port).await;
        let stream = stream.map_err(|error| unreachable(at, &error))?;
        Ok(Box::new(stream) as Box<dyn Stream>)
    };
    within(common, at, dialled).await
}

/// Makes TLS to a host anew on a connection to it. The host's certificate is checked as on any client.
pub(crate) async fn secure(
    common: &Arc<Common>,
    at: &HostPort,
    stream: impl Stream + 'static,
) -> Result<Box<dyn Stream>, Refusal> {
    let failed = |why: String| Refusal::Unreachable(at.clone(), why);
    let asked = Arc::clone(common);
    let config = move || asked.trust.config(&asked.config.roots);
    let config = tokio::task::spawn_blocking(config).await;
    let config = config
        .map_err(|error| failed(error.to_string()))?
        .map_err(failed)?;
    let name = ServerName::try_from(at.host.to_string());
    let name = name.map_err(|error| failed(error.to_string()))?;
    let connect = async {
        let stream = TlsConnector::from(config).connect(name, stream).await;
        stream.map_err(|error| failed(error.to_string()))
    };
    Ok(Box::new(within(common, at, connect).await?))
}

/// Connects to the proxy that plain requests to a host go through.
pub(crate) async fn proxy(
    common: &Common,
    connection: &Connection,
    proxy: &Proxy,
    at: &HostPort,
) -> Result<Dialled, Refusal> {
    let dialled = async {
        let own = Some(connection.resolutions());
        let stream = to_proxy(common, own, proxy).await;
        let stream = stream.map_err(|error| unreachable(at, &error))?;
        Ok(Box::new(stream) as Box<dyn Stream>)
    };
    within(common, at, dialled)
        .await
        .map(|stream| metered(connection, stream))
}

fn metered(connection: &Connection, stream: Box<dyn Stream>) -> Dialled {
    Metered::new(stream, Arc::clone(&connection.meter))
}

async fn within<T>(
    common: &Common,
    at: &HostPort,
    dialled: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    let time = common.config.bounds.dial_time;
    let late = |_| {
        Err(Refusal::Unreachable(
            at.clone(),
            "it took too long".to_owned(),
        ))
    };
    timeout(time, dialled).await.unwrap_or_else(late)
}

fn unreachable(at: &HostPort, error: &dyn std::error::Error) -> Refusal {
    Refusal::Unreachable(at.clone(), error.to_string())
}

async fn direct(
    common: &Common,
    connection: &Connection,
    at: &HostPort,
) -> Result<Box<dyn Stream>, Refusal> {
    let found = match &at.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => {
            let found = resolve(common, Some(connection.resolutions()), name).await;
            found.map_err(|error| unreachable(at, &error))?
        }
    };
    let checked = checked(connection, &found, at)?;
    let stream = connect_any(checked, at.port).await;
    let stream = stream.map_err(|error| unreachable(at, &error))?;
    if let Ok(peer) = stream.peer_addr() {
        connection.dialled(peer.ip());
    }
    Ok(Box::new(stream))
}

/// The addresses that may be dialled. If none may, the reason is that of the first.
fn checked(
    connection: &Connection,
    found: &[IpAddr],
    at: &HostPort,
) -> Result<Vec<IpAddr>, Refusal> {
    let mut refused: Option<Denial> = None;
    let mut allowed = Vec::new();
    for address in found {
        match connection.check_resolved(*address, at.port) {
            Ok(()) => allowed.push(address.to_canonical()),
            Err(denial) => {
                refused.get_or_insert(denial);
            }
        }
    }
    match refused.filter(|_| allowed.is_empty()) {
        Some(denial) => Err(Refusal::Denied(at.clone(), denial)),
        None => Ok(allowed),
    }
}

async fn resolve(
    common: &Common,
    own: Option<Arc<Semaphore>>,
    name: &HostName,
) -> io::Result<Vec<IpAddr>> {
    // A sandbox waits for its own names first, and only then takes one of the places of all.
    let own = match own {
        Some(own) => Some(own.acquire_owned().await),
        None => None,
    };
    let all = Arc::clone(&common.resolutions).acquire_owned().await;
    let resolver = Arc::clone(&common.config.resolver);
    let name = name.clone();
    // The places end with the call, not with the wait for it: a call cannot be stopped.
    let asked = move || {
        let _places = (own, all);
        resolver.resolve(&name)
    };
    let found = tokio::task::spawn_blocking(asked).await;
    found.map_err(io::Error::other)?
}

/// Tries addresses, IPv6 and IPv4 in turn. While one does not answer, the next is tried beside it.
async fn connect_any(addresses: Vec<IpAddr>, port: u16) -> io::Result<TcpStream> {
    let (v6, v4): (Vec<IpAddr>, Vec<IpAddr>) = addresses.into_iter().partition(IpAddr::is_ipv6);
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    let mut waiting = Vec::new();
    loop {
        let before = waiting.len();
        waiting.extend(v6.next());
        waiting.extend(v4.next());
        if waiting.len() == before || waiting.len() >= MAX_ADDRESSES {
            break;
        }
    }
    let mut waiting = waiting.into_iter();
    let mut attempts = JoinSet::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    loop {
        match waiting.next() {
            Some(address) => {
                attempts.spawn(TcpStream::connect(SocketAddr::new(address, port)));
            }
            None if attempts.is_empty() => return Err(last),
            None => {}
        }
        let more = waiting.len() > 0;
        tokio::select! {
            Some(ended) = attempts.join_next() => match ended.map_err(io::Error::other)? {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            },
            () = sleep(STAGGER), if more => {}
        }
    }
}

async fn to_proxy(
    common: &Common,
    own: Option<Arc<Semaphore>>,
    proxy: &Proxy,
) -> io::Result<TcpStream> {
    let addresses = match &proxy.at.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => resolve(common, own, name).await?,
    };
    connect_any(addresses, proxy.at.port).await
}

/// A tunnel through the host's own proxy.
async fn through(
    common: &Common,
    own: Option<Arc<Semaphore>>,
    proxy: &Proxy,
    at: &HostPort,
) -> Result<Box<dyn Stream>, Refusal> {
    let failed = |error: &dyn std::error::Error| {
        Refusal::Unreachable(at.clone(), format!("the host's proxy failed: {error}"))
    };
    let stream = to_proxy(common, own, proxy)
        .await
        .map_err(|error| failed(&error))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, to_proxy) = handshake.map_err(|error| failed(&error))?;
    tokio::spawn(to_proxy.with_upgrades());
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri(at.to_string())
        .header(HOST, at.to_string());
    if let Some(authorization) = &proxy.authorization {
        request = request.header(PROXY_AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::<Bytes>::new());
    let request = request.map_err(|error| failed(&error))?;
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(|error| failed(&error))?;
    if !answer.status().is_success() {
        let why = format!("the host's proxy answered {}", answer.status());
        return Err(Refusal::Unreachable(at.clone(), why));
    }
    let upgraded = hyper::upgrade::on(answer).await;
    let upgraded = upgraded.map_err(|error| failed(&error))?;
    Ok(Box::new(TokioIo::new(upgraded)))
}
