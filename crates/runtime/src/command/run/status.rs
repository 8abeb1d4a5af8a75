//! What became of a command, from how it ended and why it was ended.

use avfs_sandbox::{Enforced, ExitStatus, Limit, Mechanism, StartFailure, StartStep};
use rustix::process::Signal;

use super::{End, Ending, Why};
use crate::command::report::ExecStatus;

/// What holds a command to its limit on the disk.
pub(super) const DISK: Enforced = Enforced {
    limit: Limit::Disk,
    by: Mechanism::Poll,
};
/// What watches how much of the disk is free.
pub(super) const DISK_RESERVE: Enforced = Enforced {
    limit: Limit::DiskReserve,
    by: Mechanism::Poll,
};

/// The limit for which the command was killed by its watcher.
pub(super) fn limit_of(ending: &Ending) -> Option<Enforced> {
    match ending {
        Ending::Killed { why: Why::Disk } => Some(DISK),
        Ending::Killed {
            why: Why::DiskReserve,
        } => Some(DISK_RESERVE),
        _ => None,
    }
}

pub(super) fn status_of(ending: &Ending, end: End) -> ExecStatus {
    let (status, cause) = match end {
        End::Lost => return ExecStatus::Interrupted,
        End::CouldNotStart(failure) => return could_not_start(failure),
        End::Exited { status, cause, .. } => (status, cause),
    };
    let (why, signal) = match ending {
        Ending::NotYet { .. } => (None, Signal::KILL),
        Ending::Asked { why, .. } => (Some(*why), why.asked_by().unwrap_or(Signal::KILL)),
        Ending::Killed { why } => (Some(*why), Signal::KILL),
    };
    match (why, status, cause) {
        (Some(Why::Timeout), ..) => ExecStatus::TimedOut {
            signal: signal.as_raw(),
        },
        (Some(Why::Cancelled(_)), ..) => ExecStatus::Cancelled,
        (Some(Why::Disk), ..) => ExecStatus::LimitExceeded {
            limit: Limit::Disk,
            signal: signal.as_raw(),
        },
        (Some(Why::DiskReserve), ..) => ExecStatus::LimitExceeded {
            limit: Limit::DiskReserve,
            signal: signal.as_raw(),
        },
        (None, ExitStatus::Code(code), _) => ExecStatus::Exited(code),
        (None, ExitStatus::Signal(signal), Some(held)) => ExecStatus::LimitExceeded {
            limit: held.limit,
            signal,
        },
        (None, ExitStatus::Signal(signal), None) => ExecStatus::Signaled(signal),
    }
}

fn could_not_start(failure: StartFailure) -> ExecStatus {
    let error = std::io::Error::from_raw_os_error(failure.errno);
    let not_found = error.kind() == std::io::ErrorKind::NotFound;
    match failure.step {
        StartStep::Cwd => ExecStatus::CouldNotStart {
            reason: format!("cannot enter the working directory: {error}"),
            not_found: false,
        },
        StartStep::Exec if not_found => ExecStatus::CouldNotStart {
            reason: "command not found".into(),
            not_found,
        },
        StartStep::Exec => ExecStatus::CouldNotStart {
            reason: format!("cannot execute: {error}"),
            not_found,
        },
        StartStep::Limits => ExecStatus::CouldNotStart {
            reason: format!("cannot put the command under its limits: {error}"),
            not_found: false,
        },
        StartStep::Setup => ExecStatus::CouldNotStart {
            reason: format!("cannot confine the command: {error}"),
            not_found: false,
        },
    }
}
