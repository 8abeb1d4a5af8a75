//! Exit codes: one table for verbs, one for outcomes of commands.

use avfs_api::wire::{Envelope, StatusWord};
use avfs_runtime::ErrorKind;

pub const OK: u8 = 0;
pub const USAGE: u8 = 2;
pub const TIMED_OUT: u8 = 124;
/// avfs failed, where the exit code is otherwise the command's.
pub const FAILED: u8 = 125;
pub const INTERRUPTED: u8 = 130;
/// The exit code of a program that SIGPIPE ended.
pub const OUTPUT_CLOSED: u8 = 141;

/// Whether the exit code belongs to the verb or to the command it runs.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Owner {
    Verb,
    Command,
}

/// The exit code of a failure. It differs from what a command would usually exit with.
pub fn of_error(kind: ErrorKind, owner: Owner) -> u8 {
    match owner {
        Owner::Command => FAILED,
        Owner::Verb => match kind {
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Invalid
            | ErrorKind::Denied
            | ErrorKind::NeedsApproval
            | ErrorKind::Conflict
            | ErrorKind::Quota
            | ErrorKind::TimedOut
            | ErrorKind::Unavailable
            | ErrorKind::Corrupt
            | ErrorKind::Bug => 1,
        },
    }
}

/// The exit code for the outcome of a command.
pub fn of_envelope(envelope: &Envelope) -> u8 {
    let result = &envelope.result;
    if result.uncommitted.is_some() {
        return of_error(ErrorKind::Quota, Owner::Command);
    }
    match result.status {
        StatusWord::Exited => low_byte(result.exit_code.unwrap_or(125)),
        StatusWord::Signaled | StatusWord::OutOfMemory | StatusWord::LimitExceeded => {
            low_byte(128 + result.signal.unwrap_or(0))
        }
        StatusWord::TimedOut => TIMED_OUT,
        StatusWord::Cancelled => INTERRUPTED,
        StatusWord::Denied | StatusWord::NeedsApproval | StatusWord::CouldNotStart => 126,
        StatusWord::NotFound => 127,
        StatusWord::Interrupted => FAILED,
    }
}

/// An exit status has eight bits, so the conversion is lossless.
fn low_byte(code: i32) -> u8 {
    code.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_verb_is_never_taken_for_a_failing_command() {
        for kind in ErrorKind::ALL {
            assert_eq!(of_error(kind, Owner::Verb), 1);
            assert_eq!(of_error(kind, Owner::Command), 125);
        }
    }
}
