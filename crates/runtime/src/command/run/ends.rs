//! The descriptors that a command begins with: pipes, or nothing where it has a terminal.

use std::os::fd::OwnedFd;

use avfs_sandbox::Stdio;
use rustix::fs::{Mode, OFlags, open};
use rustix::pipe::{PipeFlags, pipe_with};

use super::feed::Feed;
use crate::command::options::Stdin;

/// A command's descriptors, and what is at their other ends.
pub(super) struct Ends {
    pub theirs: Stdio,
    /// Of its output; at a terminal there is one, and only once it has begun.
    pub ours: [Option<OwnedFd>; 2],
}

impl Ends {
    pub fn at_pipes(stdin: Stdin) -> rustix::io::Result<(Ends, Option<Feed>)> {
        let stdin = match stdin {
            Stdin::From(stdin) => stdin,
            Stdin::Empty => nothing()?,
        };
        let (stdout, stdout_end) = output_pipe()?;
        let (stderr, stderr_end) = output_pipe()?;
        let theirs = Stdio {
            stdin,
            stdout: stdout_end,
            stderr: stderr_end,
        };
        let ours = [Some(stdout), Some(stderr)];
        Ok((Ends { theirs, ours }, None))
    }

    pub fn at_terminal(stdin: Stdin) -> rustix::io::Result<(Ends, Option<Feed>)> {
        let theirs = Stdio {
            stdin: nothing()?,
            stdout: nothing()?,
            stderr: nothing()?,
        };
        let ours = [None, None];
        let from = match stdin {
            Stdin::From(pipe) => Some(pipe),
            Stdin::Empty => None,
        };
        Ok((Ends { theirs, ours }, Some(Feed::new(from))))
    }
}

fn nothing() -> rustix::io::Result<OwnedFd> {
    open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

/// Our end does not block; the command's does, as every program expects.
fn output_pipe() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}
