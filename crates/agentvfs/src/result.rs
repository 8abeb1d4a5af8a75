//! What became of a command.

use avfs_api::wire::{Envelope, EnvelopeResult, StatusWord, from_text};
use std::ops::Deref;

/// What became of a command: its output, how it ended, what was decided on it and what it changed.
///
/// All fields of [`EnvelopeResult`] can be read from it: `result.stdout`, `result.changed_files`, `result.decision`,
/// `result.checkpoint`, `result.timed_out`.
#[derive(Clone, Debug)]
pub struct CommandResult {
    /// One number that tells what became of it, which is also what `avfs proxy exec` exits with: the command's own exit
    /// code; 128 and the signal that ended it; 124 after a timeout; 125 if agentvfs failed or could not take the work into
    /// the vault; 126 if it was not let run or could not start; 127 if there is no such program; 130 if it was cancelled.
    ///
    /// What the kernel said is [`CommandResult::kernel_exit_code`].
    pub exit_code: i32,
    envelope: Envelope,
}

impl CommandResult {
    pub(crate) fn new(envelope: Envelope) -> CommandResult {
        CommandResult {
            exit_code: envelope.exit_code().into(),
            envelope,
        }
    }

    /// Whether it ran, exited with 0, and its work is in the vault.
    pub fn success(&self) -> bool {
        self.exit_code == 0
    }

    /// Whether the policy did not let it run: it was denied, or waits for approval.
    pub fn was_refused(&self) -> bool {
        matches!(
            self.envelope.result.status,
            StatusWord::Denied | StatusWord::NeedsApproval
        )
    }

    /// Its exit code from the kernel; none if it did not exit by itself.
    pub fn kernel_exit_code(&self) -> Option<i32> {
        self.envelope.result.ending.exit_code
    }

    /// The signal that ended it, if one did.
    pub fn signal(&self) -> Option<i32> {
        self.envelope.result.ending.signal
    }

    /// Why it could not start, why it was ended, or what to do about a refusal.
    pub fn reason(&self) -> Option<&str> {
        self.envelope.result.ending.reason.as_deref()
    }

    /// The exact bytes of its standard output, as far as they are kept.
    pub fn stdout_bytes(&self) -> Vec<u8> {
        let result = &self.envelope.result;
        from_text(&result.stdout, result.stdout_b64.as_ref())
    }

    /// The exact bytes of its standard error, as far as they are kept.
    pub fn stderr_bytes(&self) -> Vec<u8> {
        let result = &self.envelope.result;
        from_text(&result.stderr, result.stderr_b64.as_ref())
    }

    /// The whole envelope: what was asked, with every default filled in, and what happened.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The whole envelope.
    pub fn into_envelope(self) -> Envelope {
        self.envelope
    }
}

impl Deref for CommandResult {
    type Target = EnvelopeResult;

    fn deref(&self) -> &EnvelopeResult {
        &self.envelope.result
    }
}
