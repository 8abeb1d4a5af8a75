//! Why a sandbox's network cannot be served as asked.

use std::io;
use std::net::SocketAddr;

use avfs_policy::{AddressRange, HostPort};

/// Why a sandbox's network cannot be served as asked. What becomes of one connection is in [`crate::Attempt`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the threads of the network could not be started: {0}")]
    Threads(#[source] io::Error),
    #[error("no socket on {0} in the sandbox: {1}")]
    Socket(SocketAddr, #[source] io::Error),
    #[error("the host does not let it listen on {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    #[error("no route for {0} in the sandbox: {1}")]
    Route(AddressRange, #[source] io::Error),
    #[error("the command is registered already")]
    Entered,
    #[error("at most {0} commands with a network run in one sandbox at once")]
    TooManyExecs(usize),
    #[error("the network is shut down")]
    Stopped,
    #[error("{0:?} is no rule about requests: {1}")]
    RequestRule(String, &'static str),
    #[error("rules about requests: {0}")]
    RequestRules(&'static str),
    #[error("a secret cannot be put into requests: {0}")]
    Secret(&'static str),
    #[error("certificates cannot be made: {0}")]
    Authority(String),
    #[error("the sandbox has no certificate authority, so TLS of hosts cannot be opened")]
    NoAuthority,
    #[error("{0} cannot be asked: {1}")]
    Fetch(HostPort, String),
    #[error("{0:?} is no address of a proxy: {1}")]
    Proxy(String, &'static str),
}
