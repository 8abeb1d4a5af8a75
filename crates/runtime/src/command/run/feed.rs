//! What is typed at a command's terminal: taken from a pipe, given to the terminal when it has room.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// What a terminal takes for the end of input.
const END_OF_INPUT: u8 = 4;

pub(super) struct Feed {
    /// Where it comes from, until that ends.
    from: Option<OwnedFd>,
    /// The command's terminal, once it has begun.
    to: Option<OwnedFd>,
    /// Taken and not yet given.
    pending: Vec<u8>,
}

impl Feed {
    pub fn new(from: Option<OwnedFd>) -> Feed {
        if let Some(pipe) = &from {
            // Should this fail: reading a pipe of ours once it is ready does not block either.
            let _ = rustix::fs::fcntl_setfl(pipe, OFlags::NONBLOCK);
        }
        Feed {
            from,
            to: None,
            pending: Vec::new(),
        }
    }

    pub fn begin(&mut self, terminal: OwnedFd) {
        self.to = Some(terminal);
    }

    /// What to wait for.
    pub fn polled(&self) -> Option<PollFd<'_>> {
        let terminal = self.to.as_ref()?;
        match &self.from {
            _ if !self.pending.is_empty() => Some(PollFd::new(terminal, PollFlags::OUT)),
            Some(pipe) => Some(PollFd::new(pipe, PollFlags::IN)),
            None => None,
        }
    }

    /// Passes on what there is.
    pub fn pass_on(&mut self) {
        let Some(terminal) = &self.to else { return };
        if self.pending.is_empty()
            && let Some(pipe) = &self.from
        {
            let mut buffer = [0; 4096];
            match rustix::io::read(pipe.as_fd(), &mut buffer) {
                Ok(0) => {
                    self.from = None;
                    self.pending.push(END_OF_INPUT);
                }
                Ok(count) => self.pending.extend_from_slice(&buffer[..count]),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => self.from = None,
            }
        }
        if self.pending.is_empty() {
            return;
        }
        match rustix::io::write(terminal, &self.pending) {
            Ok(count) => drop(self.pending.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Nobody is left who could read it.
            Err(_) => {
                self.from = None;
                self.pending.clear();
            }
        }
    }
}
