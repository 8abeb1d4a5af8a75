//! Ports of the host that lead into a sandbox.
//!
//! Whoever connects may be any program of the host, and whoever answers is a command: neither is trusted. Connections, and
//! sockets that are being made, are bounded for each forward and for all of them, and a connection that is silent ends.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::Bounds;
use crate::dial::Stream;
use crate::doors::reset;
use crate::error::Error;
use crate::meter::{Meter, Metered};
use crate::net::Net;
use crate::relay::silence;
use crate::service::Common;

/// The sandbox that a forward leads to.
pub trait Inside: Send + Sync + 'static {
    /// Sockets for one connection, to be tried in turn. Called for each connection, where blocking is allowed; nothing that
    /// is there at the moment is an error.
    fn ways(&self) -> io::Result<Vec<Way>>;
}

/// A way to what listens in a sandbox.
#[derive(Debug)]
pub enum Way {
    /// A non-blocking TCP socket of the sandbox's network, and where it is to be connected to.
    Tcp(OwnedFd, SocketAddr),
    /// A connection to a Unix socket.
    Unix(std::os::unix::net::UnixStream),
}

/// A port of the host that leads into a sandbox. Dropping it closes the port and cuts its connections.
pub struct Forward {
    address: SocketAddr,
    connections: Arc<Semaphore>,
    most: usize,
    stop: CancellationToken,
    /// Its senders are held by all that serves it, so it disconnects when nothing does any more.
    ended: Mutex<Receiver<()>>,
}

/// What all connections of a forward share.
struct Port {
    common: Arc<Common>,
    inside: Arc<dyn Inside>,
    connections: Arc<Semaphore>,
    dials: Arc<Semaphore>,
    stop: CancellationToken,
}

/// How long to wait after accepting failed, which it does when descriptors are used up.
const AFTER_FAILURE: Duration = Duration::from_millis(50);
/// How long a forward that is dropped waits for what serves it.
const ENDING: Duration = Duration::from_secs(2);
/// Per direction of a connection.
const BUFFER: usize = 32 * 1024;

impl Net {
    /// Listens on an address of the host. Each connection is made anew inside; one that cannot be made is reset. With port 0 the
    /// kernel picks one that is free.
    pub fn forward(&self, address: SocketAddr, inside: Arc<dyn Inside>) -> Result<Forward, Error> {
        let handle = self.handle()?;
        let entered = handle.enter();
        let made = std::net::TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) = made.map_err(|error| Error::Listen(address, error))?;
        drop(entered);
        let common = Arc::clone(&self.common);
        let Bounds {
            connections_per_forward,
            dials_per_forward,
            ..
        } = common.config.bounds;
        let connections = Arc::new(Semaphore::new(connections_per_forward));
        let stop = self.stop.child_token();
        let (serving, ended) = mpsc::channel();
        let port = Arc::new(Port {
            common,
            inside,
            connections: Arc::clone(&connections),
            dials: Arc::new(Semaphore::new(dials_per_forward)),
            stop: stop.clone(),
        });
        handle.spawn(async move {
            tokio::select! {
                () = port.stop.cancelled() => {}
                () = accept(&port, &listener, &serving) => {}
            }
        });
        Ok(Forward {
            address,
            connections,
            most: connections_per_forward,
            stop,
            ended: Mutex::new(ended),
        })
    }
}

impl Forward {
    /// Where it listens on the host.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it has now.
    pub fn connections(&self) -> usize {
        self.most - self.connections.available_permits()
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.stop.cancel();
        let ended = self.ended.get_mut();
        // Nothing is ever sent. Whoever is told that it is gone finds the port closed.
        let _ = ended
            .unwrap_or_else(PoisonError::into_inner)
            .recv_timeout(ENDING);
    }
}

async fn accept(port: &Arc<Port>, listener: &TcpListener, serving: &Sender<()>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            sleep(AFTER_FAILURE).await;
            continue;
        };
        let own = Arc::clone(&port.connections).try_acquire_owned();
        let all = Arc::clone(&port.common.forwarded).try_acquire_owned();
        let (Ok(own), Ok(all)) = (own, all) else {
            reset(client);
            continue;
        };
        let (port, serving) = (Arc::clone(port), serving.clone());
        tokio::spawn(async move {
            let _held: ([OwnedSemaphorePermit; 2], Sender<()>) = ([own, all], serving);
            let mut client = client;
            let ended = tokio::select! {
                () = port.stop.cancelled() => Ended::Cut,
                ended = serve(&port, &mut client) => ended,
            };
            if ended == Ended::Cut {
                reset(client);
            }
        });
    }
}

#[derive(PartialEq)]
enum Ended {
    /// Both ends closed it.
    ByBoth,
    /// The client must not take what it got for all there is.
    Cut,
}

async fn serve(port: &Port, client: &mut TcpStream) -> Ended {
    let bounds = port.common.config.bounds;
    let reached = timeout(bounds.dial_time, port.reach()).await;
    let Ok(Some(inside)) = reached else {
        return Ended::Cut;
    };
    let _ = client.set_nodelay(true);
    let meter = Arc::new(Meter::new(Vec::new()));
    let mut inside = Metered::new(inside, Arc::clone(&meter));
    tokio::select! {
        copied = copy_bidirectional_with_sizes(client, &mut inside, BUFFER, BUFFER) => match copied {
            Ok(_) => Ended::ByBoth,
            Err(_) => Ended::Cut,
        },
        () = silence(&meter, bounds.idle_time) => Ended::Cut,
    }
}

impl Port {
    /// A connection to whatever listens inside.
    async fn reach(&self) -> Option<Box<dyn Stream>> {
        for way in self.ways().await? {
            let stream: io::Result<Box<dyn Stream>> = match way {
                Way::Tcp(socket, address) => dial(socket, address).await,
                Way::Unix(stream) => UnixStream::from_std(stream).map(|it| Box::new(it) as _),
            };
            if let Ok(stream) = stream {
                return Some(stream);
            }
        }
        None
    }

    /// Making sockets blocks a thread, and those are few.
    async fn ways(&self) -> Option<Vec<Way>> {
        let own = Arc::clone(&self.dials).acquire_owned().await.ok()?;
        let dials = Arc::clone(&self.common.forward_dials);
        let all = dials.acquire_owned().await.ok()?;
        let inside = Arc::clone(&self.inside);
        let made = spawn_blocking(move || {
            let _permits = (own, all);
            inside.ways()
        });
        made.await.ok()?.ok()
    }
}

async fn dial(socket: OwnedFd, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
    let socket = TcpSocket::from_std_stream(socket.into());
    let stream = socket.connect(address).await?;
    let _ = stream.set_nodelay(true);
    Ok(Box::new(stream))
}
