//! One command in a sandbox: its output, its time, its end.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use avfs_sandbox::{
    Command, Event, ExitStatus, Running, Sandbox, StartFailure, StartStep, Stdio, Usage,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::capture::Capture;
use crate::report::{Captured, ExecStatus};
use crate::{Error, Result};

/// Between asking a command to end and ending it.
const GRACE: Duration = Duration::from_secs(2);
/// How often the caller is asked whether it still wants the result.
const CANCEL_POLL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Where output goes while the command runs.
pub trait OutputSink: Sync {
    fn output(&self, stream: Stream, bytes: &[u8]);

    /// Whether the caller has gone away or wants the command ended.
    fn cancelled(&self) -> bool {
        false
    }
}

/// What a command came to.
pub(crate) struct Ran {
    pub status: ExecStatus,
    pub stdout: Captured,
    pub stderr: Captured,
    pub usage: Option<Usage>,
    pub leftovers: u32,
}

pub(crate) struct Limits {
    pub timeout: Option<Duration>,
    pub output_limit: usize,
}

/// Runs `command` to its end, whatever end that is.
pub(crate) fn run(
    sandbox: &Sandbox,
    command: &Command,
    limits: &Limits,
    sink: &dyn OutputSink,
) -> Result<Ran> {
    let failed = |errno: Errno| Error::Io {
        what: "preparing the command".into(),
        source: errno.into(),
    };
    let stdin =
        open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
    let (stdout, stdout_end) = output_pipe().map_err(failed)?;
    let (stderr, stderr_end) = output_pipe().map_err(failed)?;
    let stdio = Stdio {
        stdin,
        stdout: stdout_end,
        stderr: stderr_end,
    };
    let running = sandbox.exec(command, stdio)?;
    let mut watch = Watch {
        running: &running,
        outputs: [
            Output::new(Stream::Stdout, stdout, limits.output_limit),
            Output::new(Stream::Stderr, stderr, limits.output_limit),
        ],
        sink,
        ending: Ending::NotYet {
            deadline: limits.timeout.map(|timeout| Instant::now() + timeout),
        },
        buffer: vec![0; 64 * 1024],
    };
    let end = watch.until_the_end()?;
    Ok(watch.conclude(end))
}

/// Our end does not block; the command's does, as every program expects.
fn output_pipe() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

struct Watch<'a> {
    running: &'a Running,
    outputs: [Output; 2],
    sink: &'a dyn OutputSink,
    ending: Ending,
    buffer: Vec<u8>,
}

struct Output {
    stream: Stream,
    pipe: Option<OwnedFd>,
    capture: Capture,
}

/// Whether we have begun to end the command, and why.
enum Ending {
    NotYet { deadline: Option<Instant> },
    Asked { why: Why, kill_at: Instant },
    Killed { why: Why },
}

#[derive(Clone, Copy)]
enum Why {
    Timeout,
    Cancelled,
}

enum End {
    CouldNotStart(StartFailure),
    Exited {
        status: ExitStatus,
        usage: Usage,
        leftovers: u32,
    },
    Lost,
}

impl Watch<'_> {
    fn until_the_end(&mut self) -> Result<End> {
        loop {
            self.wait()?;
            self.read_output();
            match self.running.next_event()? {
                None | Some(Event::Started { .. }) => {}
                Some(Event::CouldNotStart(failure)) => return Ok(End::CouldNotStart(failure)),
                Some(Event::Exited {
                    status,
                    usage,
                    leftovers,
                    cause: _,
                }) => {
                    // Nothing of the command lives, so what is in the pipes is all there will be.
                    self.read_output();
                    return Ok(End::Exited {
                        status,
                        usage,
                        leftovers,
                    });
                }
                Some(Event::Lost) => {
                    self.read_output();
                    return Ok(End::Lost);
                }
            }
            self.end_if_due()?;
        }
    }

    fn wait(&self) -> Result<()> {
        let event = self.running.fd();
        let mut polled = vec![PollFd::from_borrowed_fd(event, PollFlags::IN)];
        for pipe in self
            .outputs
            .iter()
            .filter_map(|output| output.pipe.as_ref())
        {
            polled.push(PollFd::new(pipe, PollFlags::IN));
        }
        let next = match &self.ending {
            Ending::NotYet {
                deadline: Some(deadline),
            } => Some(*deadline),
            Ending::Asked { kill_at, .. } => Some(*kill_at),
            _ => None,
        };
        let until_next = next.map_or(CANCEL_POLL, |at| {
            at.saturating_duration_since(Instant::now())
        });
        let timeout = until_next.min(CANCEL_POLL);
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            // Rounded up: waking before the deadline would spin.
            tv_nsec: i64::from(timeout.subsec_nanos().min(999_000_000)) + 1_000,
        };
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::Io {
                what: "waiting for the command".into(),
                source: errno.into(),
            }),
        }
    }

    fn read_output(&mut self) {
        for output in &mut self.outputs {
            output.read(&mut self.buffer, self.sink);
        }
    }

    fn end_if_due(&mut self) -> Result<()> {
        let now = Instant::now();
        match &self.ending {
            Ending::NotYet { deadline } => {
                let why = if deadline.is_some_and(|deadline| now >= deadline) {
                    Why::Timeout
                } else if self.sink.cancelled() {
                    Why::Cancelled
                } else {
                    return Ok(());
                };
                self.running
                    .signal(rustix::process::Signal::TERM.as_raw())?;
                self.ending = Ending::Asked {
                    why,
                    kill_at: now + GRACE,
                };
            }
            Ending::Asked { why, kill_at } if now >= *kill_at => {
                self.running.kill()?;
                self.ending = Ending::Killed { why: *why };
            }
            Ending::Asked { .. } | Ending::Killed { .. } => {}
        }
        Ok(())
    }

    fn conclude(self, end: End) -> Ran {
        let (usage, leftovers) = match &end {
            End::Exited {
                usage, leftovers, ..
            } => (Some(*usage), *leftovers),
            End::CouldNotStart(_) | End::Lost => (None, 0),
        };
        let status = status_of(&self.ending, end);
        let [stdout, stderr] = self.outputs.map(|output| output.capture.finish());
        Ran {
            status,
            stdout,
            stderr,
            usage,
            leftovers,
        }
    }
}

fn status_of(ending: &Ending, end: End) -> ExecStatus {
    let (why, signal) = match ending {
        Ending::NotYet { .. } => (None, 0),
        Ending::Asked { why, .. } => (Some(*why), rustix::process::Signal::TERM.as_raw()),
        Ending::Killed { why } => (Some(*why), rustix::process::Signal::KILL.as_raw()),
    };
    match (end, why) {
        (End::Lost, _) => ExecStatus::Interrupted,
        (End::CouldNotStart(failure), _) => could_not_start(failure),
        (End::Exited { .. }, Some(Why::Timeout)) => ExecStatus::TimedOut { signal },
        (End::Exited { .. }, Some(Why::Cancelled)) => ExecStatus::Cancelled,
        (
            End::Exited {
                status: ExitStatus::Code(code),
                ..
            },
            None,
        ) => ExecStatus::Exited(code),
        (
            End::Exited {
                status: ExitStatus::Signal(signal),
                ..
            },
            None,
        ) => ExecStatus::Signaled(signal),
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

impl Output {
    fn new(stream: Stream, pipe: OwnedFd, limit: usize) -> Output {
        Output {
            stream,
            pipe: Some(pipe),
            capture: Capture::new(limit),
        }
    }

    /// Takes what there is; a pipe at its end is let go.
    fn read(&mut self, buffer: &mut [u8], sink: &dyn OutputSink) {
        // Bounded, so that one flooding stream does not starve the other or the deadline.
        for _ in 0..16 {
            let Some(pipe) = &self.pipe else { return };
            match rustix::io::read(pipe.as_fd(), &mut *buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    self.capture.push(&buffer[..count]);
                    sink.output(self.stream, &buffer[..count]);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.pipe = None,
            }
        }
    }
}
