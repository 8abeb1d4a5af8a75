//! Frames between daemon, keeper, agent and supervisor: small typed packets with descriptors.
//!
//! A received frame may come from a hostile process. So it is bounded and parsed strictly, and unexpected descriptors
//! never enter this process's table. What is too large for a packet (a plan, a command) is sent as a sealed memfd.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{During, Error, Fault};
use crate::limits::Mechanism;
use crate::network::{Owners, SocketKind};
use crate::plan::{Confinement, ExecKey, Isolation, Network, Privilege};

/// Both ends are the same program; this detects a binary that was replaced while the daemon ran.
pub(crate) const VERSION: u32 = 8;
/// The largest frame.
const FRAME_MAX: usize = 16 * 1024;
/// The most descriptors in one frame.
pub(crate) const DESCRIPTORS_MAX: usize = 64;
/// The largest plan or command.
pub(crate) const BODY_MAX: usize = 8 * 1024 * 1024 + 64 * 1024;

/// The first frame to a new keeper process: its role.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Boot {
    pub version: u32,
    pub duty: Duty,
    /// The soft limit on open files for it and its children, if it differs from the daemon's.
    pub open_files: Option<u64>,
}

/// The role of a new `__keeper` process.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Duty {
    /// The keeper.
    Keep { runtime_dir: PathBuf },
    /// A trial of one feature.
    Probe(crate::probe::Trial),
    /// Clones a mount for a sandbox with this confinement.
    CloneMount {
        dir: PathBuf,
        confinement: Confinement,
    },
}

/// Daemon to keeper.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum KeeperRequest {
    MountFuse {
        name: String,
    },
    /// With the helper's socket.
    SpawnHelper {
        role: String,
    },
    /// With the plan and a socket for the mount or the error.
    MountOverlay,
    /// With the plan, the agent's socket, the mount if there is one, and what the agent holds open.
    OpenSandbox {
        has_mount: bool,
        network: Network,
        confinement: Confinement,
        /// What enforces the memory limits of its commands.
        memory: Mechanism,
    },
}

/// Keeper to daemon; one for every request, and one at the start.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum KeeperReply {
    /// The namespaces exist. With the keeper's pidfd.
    Ready {
        pid: u32,
        privilege: Privilege,
    },
    /// With the FUSE descriptor.
    Mounted {
        path: PathBuf,
    },
    Spawned,
    /// The agent is starting and will report by itself. With its pidfd.
    Opening,
    Failed(Fault),
}

/// Daemon to agent.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum AgentRequest {
    /// With the command and its orders, the supervisor's socket, stdin, stdout, stderr, and the `cgroup.procs` files of its
    /// control groups.
    Exec(ExecKey),
    CountProcesses,
    /// Stops every process of every command.
    Freeze,
    /// Continues them.
    Thaw,
    /// Makes sockets in its network, at most [`DESCRIPTORS_MAX`].
    Sockets(Vec<SocketKind>),
    /// Looks for the commands that have these sockets, by their inodes; at most [`SOCKETS_MAX`](crate::network::SOCKETS_MAX).
    Holders(Vec<u32>),
    /// Connects to the Unix socket at this path; answered by `Sockets`.
    ConnectUnix(Vec<u8>),
}

/// Agent to daemon. `Exec` is answered by the supervisor, on its own socket.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum AgentReply {
    /// With the sandbox's `/`, and if it has a network of its own, the socket that changes its routes and the one that lists
    /// its sockets.
    Ready {
        isolation: Isolation,
        network: Option<NetworkReady>,
    },
    Failed(Fault),
    Processes(u32),
    /// How many processes were stopped.
    Frozen(u32),
    Thawed,
    /// With the sockets.
    Sockets,
    /// One for each socket.
    Holders(Vec<Owners>),
}

/// The network of a new sandbox that has its own.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct NetworkReady {
    pub ipv6: bool,
}

/// Daemon to supervisor; the supervisor answers with events.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum SupervisorRequest {
    Signal(i32),
    Kill,
}

/// From a command, before it is executed, to the mover.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum MoverRequest {
    /// With the command's listener, and a descriptor to close when it has ended.
    Serve {
        /// Its memory limit, if no control group enforces one.
        memory: Option<u64>,
    },
}

/// One end of a SOCK_SEQPACKET socket.
#[derive(Debug)]
pub(crate) struct Link(OwnedFd);

/// What [`Link::receive`] found.
#[derive(Debug)]
pub(crate) enum Received<T> {
    Frame(T, Vec<OwnedFd>),
    /// Nothing yet (only without waiting).
    Nothing,
    Closed,
}

/// Why a frame could not be sent or received.
#[derive(Debug)]
pub(crate) enum LinkError {
    Closed,
    TimedOut,
    Malformed(&'static str),
    System(Fault),
}

impl LinkError {
    /// The name of the other side, for errors.
    pub(crate) fn named(self, peer: &'static str, gone: Error, limit: Duration) -> Error {
        match self {
            LinkError::Closed => gone,
            LinkError::TimedOut => Error::NoAnswer {
                peer,
                seconds: limit.as_secs(),
            },
            LinkError::Malformed(reason) => Error::Malformed { peer, reason },
            LinkError::System(fault) => Error::System(fault),
        }
    }
}

/// The timeout of [`Link::receive`].
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    Forever,
    No,
}

impl From<OwnedFd> for Link {
    fn from(fd: OwnedFd) -> Link {
        Link(fd)
    }
}

impl From<Link> for OwnedFd {
    fn from(link: Link) -> OwnedFd {
        link.0
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Link {
    /// Two connected ends, closed on exec.
    pub(crate) fn pair() -> Result<(Link, Link), Fault> {
        socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map(|(a, b)| (Link(a), Link(b)))
        .during(|| "make a socket pair")
    }

    /// Sends one frame.
    pub(crate) fn send<T: Serialize>(
        &self,
        frame: &T,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), LinkError> {
        let bytes =
            postcard::to_stdvec(frame).map_err(|_| LinkError::Malformed("cannot be encoded"))?;
        if bytes.len() > FRAME_MAX || descriptors.len() > DESCRIPTORS_MAX {
            return Err(LinkError::Malformed("too large"));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
            debug_assert!(fits, "the space was sized for it");
        }
        let parts = [IoSlice::new(&bytes)];
        match retry_on_intr(|| sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL)) {
            Ok(_) => Ok(()),
            Err(Errno::PIPE | Errno::CONNRESET) => Err(LinkError::Closed),
            Err(errno) => Err(LinkError::System(Fault {
                what: "send a frame".into(),
                errno: errno.raw_os_error(),
            })),
        }
    }

    /// Receives one frame that may bring up to [`DESCRIPTORS_MAX`] descriptors.
    pub(crate) fn receive_with_descriptors<T: DeserializeOwned>(
        &self,
    ) -> Result<Received<T>, LinkError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        self.take(&mut space, Wait::Forever)
    }

    /// Receives one frame with at most one descriptor, without waiting.
    pub(crate) fn receive_with_one<T: DeserializeOwned>(&self) -> Result<Received<T>, LinkError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        self.take(&mut space, Wait::No)
    }

    /// Receives one frame; the kernel discards its descriptors.
    pub(crate) fn receive<T: DeserializeOwned>(
        &self,
        wait: Wait,
    ) -> Result<Received<T>, LinkError> {
        self.take(&mut [], wait)
    }

    /// Receives an answer, with a timeout.
    pub(crate) fn answer<T: DeserializeOwned>(&self, limit: Duration) -> Result<T, LinkError> {
        self.await_frame(limit)?;
        match self.receive(Wait::Forever)? {
            Received::Frame(frame, _) => Ok(frame),
            Received::Closed | Received::Nothing => Err(LinkError::Closed),
        }
    }

    /// Receives an answer with descriptors, with a timeout.
    pub(crate) fn answer_with_descriptors<T: DeserializeOwned>(
        &self,
        limit: Duration,
    ) -> Result<(T, Vec<OwnedFd>), LinkError> {
        self.await_frame(limit)?;
        match self.receive_with_descriptors()? {
            Received::Frame(frame, descriptors) => Ok((frame, descriptors)),
            Received::Closed | Received::Nothing => Err(LinkError::Closed),
        }
    }

    fn await_frame(&self, limit: Duration) -> Result<(), LinkError> {
        match readable_within(self.as_fd(), limit) {
            Ok(true) => Ok(()),
            Ok(false) => Err(LinkError::TimedOut),
            Err(fault) => Err(LinkError::System(fault)),
        }
    }

    fn take<T: DeserializeOwned>(
        &self,
        space: &mut [MaybeUninit<u8>],
        wait: Wait,
    ) -> Result<Received<T>, LinkError> {
        let mut buffer = [0; FRAME_MAX];
        let mut control = RecvAncillaryBuffer::new(space);
        let flags = match wait {
            Wait::Forever => RecvFlags::CMSG_CLOEXEC,
            Wait::No => RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        };
        let received = retry_on_intr(|| {
            recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut buffer)],
                &mut control,
                flags,
            )
        });
        let message = match received {
            Ok(message) => message,
            Err(Errno::AGAIN) => return Ok(Received::Nothing),
            Err(Errno::CONNRESET) => return Ok(Received::Closed),
            Err(errno) => {
                let what = "receive a frame".into();
                return Err(LinkError::System(Fault {
                    what,
                    errno: errno.raw_os_error(),
                }));
            }
        };
        let mut descriptors = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                descriptors.extend(rights);
            }
        }
        if message.bytes == 0 {
            return Ok(Received::Closed);
        }
        if message.flags.contains(ReturnFlags::TRUNC) {
            return Err(LinkError::Malformed("longer than any frame"));
        }
        decode(&buffer[..message.bytes])
            .map(|frame| Received::Frame(frame, descriptors))
            .ok_or(LinkError::Malformed("not a frame of this protocol"))
    }
}

/// Decodes exactly one value that fills `bytes`.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

/// Whether `fd` becomes readable, or is closed by the other side, before the timeout.
pub(crate) fn readable_within(fd: BorrowedFd<'_>, limit: Duration) -> Result<bool, Fault> {
    let deadline = std::time::Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        });
        let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno).during(|| "poll a descriptor"),
        }
    }
}

/// Writes a value into a sealed memfd.
pub(crate) fn seal<T: Serialize>(value: &T) -> Result<OwnedFd, Error> {
    let bytes = postcard::to_stdvec(value).map_err(|error| Error::Invalid {
        what: "request",
        reason: error.to_string(),
    })?;
    if bytes.len() > BODY_MAX {
        let reason = format!(
            "{} bytes where at most {BODY_MAX} are possible",
            bytes.len()
        );
        return Err(Error::Invalid {
            what: "request",
            reason,
        });
    }
    let file = memfd_create("avfs", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .during(|| "make a memory file")?;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let written =
            retry_on_intr(|| rustix::io::write(&file, rest)).during(|| "write a memory file")?;
        rest = &rest[written..];
    }
    fcntl_add_seals(&file, SEALS).during(|| "seal a memory file")?;
    Ok(file)
}

const SEALS: SealFlags = SealFlags::WRITE
    .union(SealFlags::GROW)
    .union(SealFlags::SHRINK)
    .union(SealFlags::SEAL);

/// Reads what [`seal`] wrote; the seals keep it from changing meanwhile.
pub(crate) fn unseal<T: DeserializeOwned>(file: BorrowedFd<'_>) -> Result<T, Fault> {
    let invalid = |what: &str| Fault {
        what: what.into(),
        errno: libc::EINVAL,
    };
    let seals = fcntl_get_seals(file).during(|| "read a memory file's seals")?;
    if !seals.contains(SEALS) {
        return Err(invalid("read a memory file that is not sealed"));
    }
    let size = fstat(file).during(|| "read a memory file")?.st_size;
    let size = usize::try_from(size).ok().filter(|size| *size <= BODY_MAX);
    let size = size.ok_or_else(|| invalid("read a memory file of that size"))?;
    let mut bytes = vec![0; size];
    let mut filled = 0;
    while filled < size {
        let offset = filled as u64;
        let read = retry_on_intr(|| rustix::io::pread(file, &mut bytes[filled..], offset))
            .during(|| "read a memory file")?;
        if read == 0 {
            return Err(invalid("read a memory file to its end"));
        }
        filled += read;
    }
    decode(&bytes).ok_or_else(|| invalid("decode a memory file"))
}

#[cfg(test)]
mod tests;
