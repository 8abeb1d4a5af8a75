//! One stream of a command: read, masked, kept and passed on.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use avfs_net::Masker;
use rustix::io::Errno;

use super::OutputSink;
use crate::command::capture::{Capture, HeldOutput};
use crate::command::report::Captured;
use crate::common::Stream;
use crate::runtime::Runtime;

/// What is held back for masking is given after so long without output, so that a prompt is seen.
const QUIET: Duration = Duration::from_millis(100);

pub(super) struct Output {
    stream: Stream,
    pipe: Option<OwnedFd>,
    capture: Capture,
    runtime: Runtime,
    /// Once there was something to mask in what it writes.
    masker: Option<Masker>,
    last: Instant,
}

impl Output {
    pub fn new(
        stream: Stream,
        pipe: Option<OwnedFd>,
        capture: Capture,
        runtime: Runtime,
    ) -> Output {
        Output {
            stream,
            pipe,
            capture,
            runtime,
            masker: None,
            last: Instant::now(),
        }
    }

    pub fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    pub fn set_pipe(&mut self, pipe: OwnedFd) {
        self.pipe = Some(pipe);
    }

    /// Takes what there is; a pipe at its end is let go.
    pub fn read(&mut self, buffer: &mut [u8], sink: &dyn OutputSink, until: Option<Instant>) {
        // Bounded, so that one flooding stream does not starve the other or the deadline.
        for _ in 0..16 {
            let Some(pipe) = &self.pipe else { return };
            match read_to_the_last(pipe, &mut *buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) => self.take(&buffer[..count], sink, until),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    /// The values to mask are asked for each time: one may have been set meanwhile.
    fn take(&mut self, bytes: &[u8], sink: &dyn OutputSink, until: Option<Instant>) {
        let needles = self.runtime.needles();
        if self.masker.is_none() && needles.is_empty() {
            return self.give(bytes, sink, until);
        }
        let made = || Masker::new(needles.clone());
        let masker = self.masker.get_or_insert_with(made);
        masker.change(&needles);
        let shown = masker.push(bytes);
        self.last = Instant::now();
        self.give(&shown, sink, until);
    }

    fn give(&mut self, bytes: &[u8], sink: &dyn OutputSink, until: Option<Instant>) {
        if !bytes.is_empty() {
            self.capture.push(bytes);
            sink.output(self.stream, bytes, until);
        }
    }

    /// Gives what is held back if nothing has come for a while.
    pub fn give_when_quiet(&mut self, sink: &dyn OutputSink, until: Option<Instant>) {
        let holds = self.masker.as_ref().is_some_and(Masker::holds);
        if holds && self.last.elapsed() >= QUIET {
            self.give_rest(sink, until);
        }
    }

    /// Gives what is held back.
    pub fn give_rest(&mut self, sink: &dyn OutputSink, until: Option<Instant>) {
        let rest = self.masker.as_mut().map(Masker::flush);
        self.give(&rest.unwrap_or_default(), sink, until);
    }

    pub fn masked(&self) -> u64 {
        self.masker.as_ref().map_or(0, Masker::masked)
    }

    /// What was kept, and the memory it takes.
    pub fn finish(self) -> (Captured, HeldOutput) {
        self.capture.finish()
    }
}

/// Reads what there is.
///
/// A terminal first looks whether something is there and then whether its last program has left, so that
/// words spoken in between come after the error that says so; hence asked twice.
fn read_to_the_last(from: &OwnedFd, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    match rustix::io::read(from, &mut *buffer) {
        Err(Errno::IO) => rustix::io::read(from, buffer),
        read => read,
    }
}
