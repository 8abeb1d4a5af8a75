//! What can go wrong, as facts.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::Limit;

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a keeper, sandbox or command could not be had.
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
    /// The keeper is no more.
    #[error("the keeper has died")]
    KeeperGone,
    /// The sandbox could not be made.
    #[error("the sandbox could not {0}")]
    SandboxSetup(Fault),
    /// The sandbox is no more.
    #[error("the sandbox has died")]
    SandboxGone,
    /// The other process is alive but silent.
    #[error("the {peer} did not answer within {seconds} s")]
    NoAnswer {
        /// Who was asked.
        peer: &'static str,
        /// How long it had.
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
    /// A request that no kernel could carry out.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// What was given.
        what: &'static str,
        /// Why it cannot be.
        reason: String,
    },
    /// A program of the host that is not there.
    #[error("{program} is not installed")]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// What brings it.
        package: &'static str,
    },
    /// A program of the host did not do what it was run for.
    #[error("{program} says: {said}")]
    Refused {
        /// Its name.
        program: &'static str,
        /// Its own words.
        said: String,
    },
    /// A limit that nothing on this host holds a command to.
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

/// A step that failed and the kernel's answer; crosses process borders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The step, as an infinitive: "mount the overlay".
    pub what: String,
    /// What the kernel answered.
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

/// Says what was being done when a system call failed.
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
