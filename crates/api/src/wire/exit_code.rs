//! One number that tells what became of a command.

use super::{Envelope, StatusWord};

impl Envelope {
    /// The exit code of a command that took too long.
    pub const TIMED_OUT: u8 = 124;
    /// The exit code for a failure of agentvfs's own.
    pub const FAILED: u8 = 125;

    /// What `avfs proxy exec` exits with: the command's own exit code; 128 and the signal that ended it; 124 after a
    /// timeout; 125 if agentvfs failed or could not take the work into the vault; 126 if the command was not let run or
    /// could not start; 127 if there is no such program; 130 if its caller ended it.
    pub fn exit_code(&self) -> u8 {
        let result = &self.result;
        if result.uncommitted.is_some() {
            return Envelope::FAILED;
        }
        // A kernel's exit status has eight bits, so nothing is lost.
        let low_byte = |code: i32| code.to_le_bytes()[0];
        match result.status {
            StatusWord::Exited => result.ending.exit_code.map_or(Envelope::FAILED, low_byte),
            StatusWord::Signaled | StatusWord::OutOfMemory | StatusWord::LimitExceeded => {
                low_byte(128 + result.ending.signal.unwrap_or(0))
            }
            StatusWord::TimedOut => Envelope::TIMED_OUT,
            StatusWord::Denied | StatusWord::NeedsApproval | StatusWord::CouldNotStart => 126,
            StatusWord::NotFound => 127,
            StatusWord::Cancelled => 130,
            StatusWord::Interrupted => Envelope::FAILED,
        }
    }
}
