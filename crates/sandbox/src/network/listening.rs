//! Where the commands of a sandbox listen, and connections to their Unix sockets.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, getpeername, socket_with,
    sockopt,
};

use super::diag;
use super::holders::SOCKETS_MAX;
use super::namespace::Stamp;
use super::owners::Owners;
use super::reach::{MARK, malformed};
use crate::error::{During, Error, Result};
use crate::keeper::lock;
use crate::protocol::{AgentReply, AgentRequest};
use crate::sandbox::Sandbox;

/// The most listeners that are listed.
const LISTED_MAX: usize = 256;

/// Where commands listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by address.
    pub listening: Vec<Listening>,
    /// Whether these are all.
    pub is_complete: bool,
}

/// One listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Where.
    pub at: ListenAddress,
    /// Who has it.
    pub owners: Owners,
}

/// Where a socket listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListenAddress {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A Unix socket, by the absolute path that it was given; the path may lead elsewhere by now.
    Unix(PathBuf),
}

impl Sandbox {
    /// Where its commands listen. The daemon's own listeners are left out, and so are Unix sockets with a relative path.
    pub fn listening(&self) -> Result<Listing> {
        let network = self.own_network()?;
        let found = {
            let mut diag = lock(&network.diag);
            diag::tcp_listeners(&mut diag, LISTED_MAX).and_then(|tcp| {
                let unix = diag::unix_listeners(&mut diag, LISTED_MAX)?;
                Ok((tcp, unix))
            })
        };
        let (tcp, unix) = found.during(|| "list the sockets of a sandbox")?;
        let mut is_complete = tcp.len() < LISTED_MAX && unix.len() < LISTED_MAX;
        let tcp = tcp.into_iter().filter(|socket| socket.mark != MARK);
        let tcp = tcp.map(|socket| (ListenAddress::Tcp(socket.local), socket.inode));
        let unix = unix.into_iter().map(|socket| {
            let path = PathBuf::from(OsString::from_vec(socket.path));
            (ListenAddress::Unix(path), socket.inode)
        });
        let mut all: Vec<_> = tcp.chain(unix).collect();
        all.sort();
        is_complete &= all.len() <= LISTED_MAX;
        all.truncate(LISTED_MAX);
        let mut listening = Vec::with_capacity(all.len());
        for part in all.chunks(SOCKETS_MAX) {
            let inodes: Vec<u32> = part.iter().map(|(_, inode)| *inode).collect();
            let owners = self.holders(&inodes);
            let owners = owners.unwrap_or_else(|| vec![Owners::Unknown; part.len()]);
            let part = part.iter().cloned().zip(owners);
            listening.extend(part.map(|((at, _), owners)| Listening { at, owners }));
        }
        Ok(Listing {
            listening,
            is_complete,
        })
    }

    /// A non-blocking connection to a Unix stream socket at an absolute path inside. Links are followed inside only; the
    /// server sees a process of the commands' user.
    pub fn connect_unix(&self, path: &Path) -> Result<UnixStream> {
        let network = self.own_network()?;
        let bytes = path.as_os_str().as_bytes();
        if !is_path(bytes) {
            return Err(Error::Invalid {
                what: "path of a socket",
                reason: format!("{path:?} is not absolute, or too long"),
            });
        }
        let request = AgentRequest::ConnectUnix(bytes.to_vec());
        let mut fds = match self.ask_for_descriptors(&request)? {
            (AgentReply::Sockets, fds) => fds,
            // What a command chose is no fault of the agent.
            (AgentReply::Failed(fault), _) => return Err(Error::System(fault)),
            _ => return Err(malformed("not the reply to this request")),
        };
        let socket = match (fds.pop(), fds.pop()) {
            (Some(socket), None) => socket,
            _ => return Err(malformed("not as many sockets as were asked for")),
        };
        check(&socket, network.stamp).map_err(malformed)?;
        Ok(socket.into())
    }
}

/// Why a descriptor that an agent passed is no connection to a Unix socket inside.
fn check(socket: &OwnedFd, stamp: Stamp) -> std::result::Result<(), &'static str> {
    let is_stream = sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(socket) == Ok(SocketType::STREAM);
    if !is_stream || getpeername(socket).is_err() {
        return Err("not a connected Unix socket");
    }
    use std::os::fd::AsFd;
    if Stamp::of(socket.as_fd()) != Ok(stamp) {
        return Err("a socket of another network");
    }
    // Whoever passed it may have a copy that makes it block; nothing but the daemon's own copies count here.
    rustix::io::ioctl_fionbio(socket, true).map_err(|_| "a socket that blocks")
}

fn is_path(path: &[u8]) -> bool {
    path.first() == Some(&b'/') && path.len() < libc::PATH_MAX as usize && !path.contains(&0)
}

/// The agent's side: connects to a socket at `path`.
///
/// The path is resolved without the links of /proc, which would lead to what the agent has open.
pub(crate) fn connect_inside(path: &[u8]) -> std::result::Result<OwnedFd, Errno> {
    if !is_path(path) {
        return Err(Errno::INVAL);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::Socket {
        return Err(Errno::NOTSOCK);
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // A path of any length, and exactly the file that was found.
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    connect(&socket, &address)?;
    Ok(socket)
}
