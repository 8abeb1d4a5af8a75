//! Types shared by both sides: the plan of a sandbox, a command, its events.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::{Enforced, Limits};

/// Host uid and gid of everything that runs in a sandbox when the daemon is root.
///
/// Outside every range that distributions assign to users, services or subordinate ids.
pub const SANDBOX_UID: u32 = 1_635_148_403;

/// The uid and gid a command sees itself run as.
pub const INNER_UID: u32 = 1000;

/// With which privilege the sandboxes of this process are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Privilege {
    /// Effective uid 0 with CAP_SYS_ADMIN in the initial user namespace.
    Root,
    /// Anyone else: everything happens in a user namespace.
    User,
}

impl Privilege {
    /// The owner of the commands' files, as the keeper sees it.
    pub fn file_owner(self) -> u32 {
        match self {
            Privilege::Root => SANDBOX_UID,
            Privilege::User => 0,
        }
    }
}

/// Everything needed to open one sandbox. Host paths are as the keeper sees them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SandboxPlan {
    /// The host name inside.
    pub name: String,
    /// The file system that becomes `/`; without one, it is a mount that is passed with the plan.
    pub overlay: Option<OverlayPlan>,
    /// Host directory bound read-write at `/tmp`.
    pub scratch: PathBuf,
    /// Host directories bound read-only.
    pub lent: Vec<Lent>,
    /// The whole of `/etc`.
    pub etc: Vec<EtcFile>,
    /// Whether `/` refuses writes (`/tmp`, `/run` and `/var/tmp` never do).
    pub readonly: bool,
    /// The network of its commands.
    pub network: Network,
    /// The isolation of its commands.
    pub confinement: Confinement,
    /// The name of the staging directory, in the overlay's directory [`STAGING_IN`](crate::STAGING_IN). No file of the
    /// vault may have it.
    pub staging: String,
}

/// The isolation of a sandbox's commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confinement {
    /// Full isolation.
    #[default]
    Full,
    /// None: they see the host, and the overlay at a directory of it.
    ViewOnly,
}

/// The network of a sandbox's commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Only a private loopback interface.
    #[default]
    None,
    /// The host's network, its own services included. `etc` has the name resolution.
    Host,
}

impl Network {
    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Network::None => "none",
            Network::Host => "host",
        }
    }
}

/// The layers of the root file system.
///
/// As root, `upper` and `scratch` (not their content) are chowned to [`SANDBOX_UID`] on opening.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverlayPlan {
    /// Read-only layers, top first; the last is the skeleton of mount points.
    pub lowers: Vec<PathBuf>,
    /// The writable layer.
    pub upper: PathBuf,
    /// Overlay's own working directory, on the same file system as `upper`.
    pub work: PathBuf,
}

/// A host path shown read-only inside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lent {
    /// The path on the host, free of symbolic links.
    pub host: PathBuf,
    /// The absolute path inside.
    pub inside: PathBuf,
    /// What must be there; if it is something else, there is no sandbox.
    pub identity: Option<Identity>,
}

/// Which file something is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// The device it is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
}

/// One name in the sandbox's `/etc`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcFile {
    /// The path relative to `/etc`.
    pub path: String,
    /// Where its content comes from.
    pub content: EtcContent,
}

/// Where the content of a name in `/etc` comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EtcContent {
    /// Written as a file.
    Bytes(#[serde(with = "whole")] Vec<u8>),
    /// A host file or directory, bound read-only.
    Host(PathBuf),
}

/// Bytes that are copied at once. As a list of numbers, a bundle of certificates takes 0.2 ms, of all that its sandbox waits for.
mod whole {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_byte_buf(Whole)
    }

    struct Whole;

    impl Visitor<'_> for Whole {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }
}

/// A command to run. Its environment is exactly `env`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments; a program without `/` is looked up in `env`'s PATH.
    pub argv: Vec<Vec<u8>>,
    /// The environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// The absolute directory inside where it starts.
    pub cwd: Vec<u8>,
    /// Its limits.
    pub limits: Limits,
    /// If set, a new terminal of this size is its 0, 1 and 2, and its controlling terminal.
    pub terminal: Option<WindowSize>,
    /// What it is called where the sandbox says which command has a socket.
    pub key: ExecKey,
}

/// A number that the daemon gives to a command.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ExecKey(pub u64);

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

/// The descriptors that become 0, 1 and 2 of a command that has no terminal.
#[derive(Debug)]
pub struct Stdio {
    /// Descriptor 0.
    pub stdin: OwnedFd,
    /// Descriptor 1.
    pub stdout: OwnedFd,
    /// Descriptor 2.
    pub stderr: OwnedFd,
}

impl Stdio {
    /// Duplicates the descriptors, for a command that may have to be started a second time.
    pub fn try_clone(&self) -> std::io::Result<Stdio> {
        Ok(Stdio {
            stdin: self.stdin.try_clone()?,
            stdout: self.stdout.try_clone()?,
            stderr: self.stderr.try_clone()?,
        })
    }
}

/// An event of a command. After anything but `Begins` and `Started` there are no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The program has been executed.
    Started {
        /// Its process id inside the sandbox.
        pid: i32,
    },
    /// The program never ran.
    CouldNotStart(StartFailure),
    /// The program has ended, and no process that it started is alive.
    Exited {
        /// Its wait status.
        status: ExitStatus,
        /// Of the program and all its descendants.
        usage: Usage,
        /// Processes that were still alive at its end and were ended.
        leftovers: u32,
        /// The limit for which it, or a process it started, was killed.
        cause: Option<Enforced>,
    },
    /// From here on the program may have run. Sent only from the supervisor to [`Running`](crate::Running).
    Begins,
    /// The sandbox or the keeper died with the command in it.
    Lost,
}

/// Why a command did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFailure {
    /// The step that failed.
    pub step: StartStep,
    /// The errno.
    pub errno: i32,
}

/// The steps between a request and a running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartStep {
    /// Changing to the working directory.
    Cwd,
    /// Finding and executing the program.
    Exec,
    /// Setting its limits.
    Limits,
    /// Everything before that.
    Setup,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// What a command and all its descendants used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Time in user mode, microseconds.
    pub user_us: u64,
    /// Time in the kernel, microseconds.
    pub system_us: u64,
    /// The largest resident set of one process, KiB.
    pub max_rss_kib: u64,
    /// Blocks of 512 bytes read from devices.
    pub read_blocks: u64,
    /// Blocks of 512 bytes written to devices.
    pub write_blocks: u64,
}

/// The isolation of a sandbox, as read back by its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Its own namespaces.
    pub namespaces: Vec<Namespace>,
    /// Its network.
    pub network: Network,
    /// The Landlock version in force; 0 if there is none.
    pub landlock_abi: u32,
    /// Whether Landlock scopes signals and abstract sockets to one exec.
    pub signals_scoped: bool,
    /// Whether the system call filter is on.
    pub seccomp: bool,
    /// Whether `no_new_privs` is set, so that set-uid programs gain nothing.
    pub no_new_privs: bool,
    /// Whether a command could make a user namespace.
    pub nested_user_namespaces: bool,
    /// How ids inside map to ids outside.
    pub ids: IdMap,
}

/// The ids inside and on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdMap {
    /// Uid inside.
    pub inside_uid: u32,
    /// Uid on the host.
    pub host_uid: u32,
    /// Gid inside.
    pub inside_gid: u32,
    /// Gid on the host.
    pub host_gid: u32,
}

/// A kind of kernel namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Namespace {
    /// Users and groups.
    User,
    /// Mount points.
    Mount,
    /// Process ids.
    Pid,
    /// Network: only loopback.
    Net,
    /// System V IPC and POSIX queues.
    Ipc,
    /// The host name.
    Uts,
}

impl Namespace {
    /// Every kind that a sandbox can have of its own.
    pub const ALL: [Namespace; 6] = [
        Namespace::User,
        Namespace::Mount,
        Namespace::Pid,
        Namespace::Net,
        Namespace::Ipc,
        Namespace::Uts,
    ];

    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Namespace::User => "user",
            Namespace::Mount => "mount",
            Namespace::Pid => "pid",
            Namespace::Net => "net",
            Namespace::Ipc => "ipc",
            Namespace::Uts => "uts",
        }
    }
}
