//! Exit codes: one table for verbs, one for outcomes of commands.

use avfs_api::wire::Envelope;
use avfs_runtime::ErrorKind;

pub const OK: u8 = 0;
pub const USAGE: u8 = 2;
pub const TIMED_OUT: u8 = Envelope::TIMED_OUT;
/// Something of ours failed, where the code is otherwise a command's.
pub const FAILED: u8 = Envelope::FAILED;
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
