//! The words both sides share: what a sandbox is made of, what it runs, and what comes back.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::{Enforced, Limits};

/// Host uid and gid of everything that runs in a sandbox when the daemon is root.
///
/// Outside every range that distributions hand out to people, services or subordinate ids.
pub const SANDBOX_UID: u32 = 1_635_148_403;

/// The uid and gid a command sees itself run as.
pub const INNER_UID: u32 = 1000;

/// With what right the sandboxes of this process are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Privilege {
    /// Effective uid 0 with CAP_SYS_ADMIN in the initial user namespace.
    Root,
    /// Anyone else: everything happens in a user namespace.
    User,
}

impl Privilege {
    /// The owner that files must have, as the keeper sees them, to belong to the commands.
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
    /// The file system that becomes `/`.
    pub overlay: OverlayPlan,
    /// Host directory bound read-write at `/tmp`.
    pub scratch: PathBuf,
    /// Host directories bound read-only.
    pub lent: Vec<Lent>,
    /// The whole of `/etc`.
    pub etc: Vec<EtcFile>,
    /// Whether `/` refuses writes (`/tmp`, `/run` and `/var/tmp` never do).
    pub readonly: bool,
    /// What its commands can reach.
    pub network: Network,
    /// What holds its commands.
    pub confinement: Confinement,
    /// The name, in the overlay's directory [`STAGING_IN`](crate::STAGING_IN), of what holds copies of stored
    /// directories until they are renamed. Nothing else may have it.
    pub staging: String,
}

/// What holds the commands of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confinement {
    /// All there is.
    #[default]
    Full,
    /// Nothing: they see the host, and the overlay at a directory of it.
    ViewOnly,
}

/// What the commands of a sandbox can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Each other, by a loopback interface of their own.
    #[default]
    None,
    /// Whatever the host can, its own services included. Names are looked up as `etc` says.
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
/// As root, `upper` and `scratch` (not what is in them) are given to [`SANDBOX_UID`] on opening.
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
    Bytes(Vec<u8>),
    /// A host file or directory, bound read-only.
    Host(PathBuf),
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
    /// What it may use.
    pub limits: Limits,
    /// A terminal of this size becomes its 0, 1 and 2, and controls it.
    pub terminal: Option<WindowSize>,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
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

/// What became of a command. After anything but `Begins` and `Started` nothing follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The program has been executed.
    Started {
        /// Its process id inside the sandbox.
        pid: i32,
    },
    /// The program never ran.
    CouldNotStart(StartFailure),
    /// The program has ended, and nothing it started is alive.
    Exited {
        /// As the kernel reported it.
        status: ExitStatus,
        /// Of the program and all its descendants.
        usage: Usage,
        /// Processes it left behind, which were killed.
        leftovers: u32,
        /// The limit for which it, or a process it started, was killed.
        cause: Option<Enforced>,
    },
    /// From here on the program may have run. Only between supervisor and [`Running`](crate::Running).
    Begins,
    /// The sandbox or the keeper died with the command in it.
    Lost,
}

/// Why a command never ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFailure {
    /// What was being done.
    pub step: StartStep,
    /// What the kernel answered.
    pub errno: i32,
}

/// The steps between a request and a running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartStep {
    /// Going to the working directory.
    Cwd,
    /// Finding and executing the program.
    Exec,
    /// Putting it under its limits.
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

/// What holds the commands of a sandbox, as found by the agent once it stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// The namespaces of its own.
    pub namespaces: Vec<Namespace>,
    /// What its commands can reach.
    pub network: Network,
    /// The Landlock version in force; 0 when the kernel has none.
    pub landlock_abi: u32,
    /// Whether Landlock keeps signals and abstract sockets within one exec.
    pub signals_scoped: bool,
    /// Whether the system call filter is on.
    pub seccomp: bool,
    /// Whether programs can gain privileges by being executed (set-uid): always refused.
    pub no_new_privs: bool,
    /// Whether a command could make a user namespace of its own.
    pub nested_user_namespaces: bool,
    /// How ids inside map to ids outside.
    pub ids: IdMap,
}

/// One id inside and what it is on the host.
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
