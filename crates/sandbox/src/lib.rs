//! Runs a command in a directory under isolation: keeper, agent, namespaces, Landlock, seccomp.
//!
//! ```text
//! daemon ─ keeper ─ agent (pid 1 of a sandbox) ─┬─ supervisor (one per exec) ─ command
//!                                               └─ mover (without root only)
//! ```
//! The daemon has [`Keeper`], [`Sandbox`] and [`Running`]; the other processes are single-threaded
//! and run the same program. When one of them dies, all processes below it die.

mod agent;
mod anonymous;
pub mod attack;
mod cgroup;
mod command;
mod confine;
mod error;
mod exits;
mod freeze;
mod guard;
mod keeper;
mod lend;
mod limits;
mod memfile;
mod memory;
mod mover;
mod network;
mod notify;
pub mod onhost;
mod open_files;
#[cfg(feature = "testing")]
pub mod plain;
mod plan;
pub mod probe;
mod protocol;
mod pty;
mod residue;
mod rootfs;
mod sandbox;
mod seccomp;
mod share;
mod shared_mount;
mod standing;
mod supervisor;
mod sys;
pub mod toolchain;

pub use error::{Error, Fault, Result};
pub use keeper::{FuseMount, Keeper, KeeperConfig, keeper_main};
pub use lend::{build_skeleton, host_etc, host_lent};
pub use limits::{Defaults, Enforced, Limit, Limits, Mechanism, UNLIMITED, UNLIMITED_COUNT};
pub use mover::{EXCHANGE_COPIES, EXCHANGE_ENDS, STAGING_IN};
pub use network::{
    AddressRange, FAKE_V4, FAKE_V6, ListenAddress, Listening, Listing, Owners, SocketKind,
    Transport,
};
pub use open_files::raise_open_files;
pub use plan::{
    Command, Confinement, EtcContent, EtcFile, Event, ExecKey, ExitStatus, INNER_UID, IdMap,
    Identity, Isolation, Lent, Namespace, Network, OverlayPlan, Privilege, SANDBOX_UID,
    SandboxPlan, StartFailure, StartStep, Stdio, Usage, WindowSize,
};
pub use pty::set_window_size;
pub use sandbox::{Frozen, Running, Sandbox};
