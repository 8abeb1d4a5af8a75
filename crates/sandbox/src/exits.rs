//! How an agent learns that a supervisor exits next.
//!
//! A supervisor reports the end of its command to the daemon, which may send the next command before the supervisor has
//! exited. What the first command left in memory is removed when no supervisor is left (see [`crate::residue`]). So the
//! agent has to wait for those that reported before it starts another.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::getpid;

/// A pipe of process ids.
pub(crate) struct Exits {
    said: OwnedFd,
    say: OwnedFd,
}

impl Exits {
    pub(crate) fn new() -> Result<Exits, Errno> {
        let (said, say) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Exits { said, say })
    }

    /// What a supervisor needs of it.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.say.as_raw_fd()
    }

    /// Says that the calling supervisor exits next.
    pub(crate) fn say(&self) {
        let pid = getpid().as_raw_nonzero().get();
        // If the pipe is full, the agent does not wait for this one.
        let _ = rustix::io::write(&self.say, &pid.to_ne_bytes());
    }

    /// The supervisors that said so since the last call.
    pub(crate) fn said(&self) -> Vec<i32> {
        let mut pids = Vec::new();
        let mut pid = [0; 4];
        while rustix::io::read(&self.said, &mut pid) == Ok(pid.len()) {
            pids.push(i32::from_ne_bytes(pid));
        }
        pids
    }
}
