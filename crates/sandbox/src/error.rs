//! The errors of this crate.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::Limit;

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a keeper, sandbox or command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The keeper's program could not be executed.
    #[error("cannot execute {binary} as the keeper: {source}", binary = binary.display())]
    KeeperExec {
        /// The program.
        binary: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The keeper could not make its namespaces.
    #[error("the keeper cannot {0}")]
    KeeperSetup(Fault),
    /// The keeper refused a request.
    #[error("the keeper could not {0}")]
    Keeper(Fault),
    /// The keeper has ended.
    #[error("the keeper has died")]
    KeeperGone,
    /// The sandbox could not be made.
    #[error("the sandbox could not {0}")]
    SandboxSetup(Fault),
    /// The agent refused a request.
    #[error("the sandbox's agent could not {0}")]
    Agent(Fault),
    /// Something that only a sandbox with a network of its own has.
    #[error("the sandbox shares the host's network and has none of its own")]
    HostNetwork,
    /// The sandbox has ended.
    #[error("the sandbox has died")]
    SandboxGone,
    /// The other process is alive but does not answer.
    #[error("the {peer} did not answer within {seconds} s")]
    NoAnswer {
        /// Which process.
        peer: &'static str,
        /// The timeout.
        seconds: u64,
    },
    /// The other process broke the protocol.
    #[error("the {peer} sent a malformed frame: {reason}")]
    Malformed {
        /// Who sent it.
        peer: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An invalid request.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// What was given.
        what: &'static str,
        /// Why it cannot be.
        reason: String,
    },
    /// A program of the host that is not installed.
    #[error("{package} is not installed: apt-get install {package}")]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// What brings it.
        package: &'static str,
    },
    /// A program of the host failed.
    #[error("{program} says: {said}")]
    Refused {
        /// Its name.
        program: &'static str,
        /// What it printed.
        said: String,
    },
    /// A limit that cannot be enforced on this host.
    #[error("the limit on {} cannot be enforced here: {reason}", limit.name())]
    Unenforceable {
        /// Which one.
        limit: Limit,
        /// Why not.
        reason: String,
    },
    /// A system call on this side failed.
    #[error("cannot {0}")]
    System(Fault),
}

/// A failed step and its errno; passed between processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The step, as an infinitive: "mount the overlay".
    pub what: String,
    /// The errno.
    pub errno: i32,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {}",
            self.what,
            io::Error::from_raw_os_error(self.errno)
        )
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::System(fault)
    }
}

/// Adds the name of the step to a failed system call.
pub(crate) trait During<T> {
    /// Names the step; the text is only built on failure.
    fn during<S: Into<String>>(self, what: impl FnOnce() -> S) -> std::result::Result<T, Fault>;
}

impl<T> During<T> for std::result::Result<T, rustix::io::Errno> {
    fn during<S: Into<String>>(self, what: impl FnOnce() -> S) -> std::result::Result<T, Fault> {
        self.map_err(|errno| Fault {
            what: what().into(),
            errno: errno.raw_os_error(),
        })
    }
}

impl<T> During<T> for io::Result<T> {
    fn during<S: Into<String>>(self, what: impl FnOnce() -> S) -> std::result::Result<T, Fault> {
        let invalid = rustix::io::Errno::INVAL.raw_os_error();
        self.map_err(|error| Fault {
            what: what().into(),
            errno: error.raw_os_error().unwrap_or(invalid),
        })
    }
}
