//! A terminal that is born in the sandbox, on its own devpts, and read outside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, openat};
use rustix::io::Errno;
use rustix::process::ioctl_tiocsctty;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::plan::WindowSize;

/// Both sides of a terminal.
pub(crate) struct Pty {
    /// The side of whoever looks and types.
    pub outer: OwnedFd,
    /// The side of the programs. Open until all have ended, so that it is never hung up before.
    pub inner: OwnedFd,
}

impl Pty {
    /// A fresh one of the devpts that is held open, or of this process's own.
    pub(crate) fn open(devpts: Option<BorrowedFd<'_>>, size: WindowSize) -> Result<Pty, Errno> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let outer = match devpts {
            Some(devpts) => {
                let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
                openat(devpts, "ptmx", flags, Mode::empty())?
            }
            None => openpt(flags)?,
        };
        unlockpt(&outer)?;
        let inner = ioctl_tiocgptpeer(&outer, flags)?;
        tcsetwinsize(&inner, winsize(size))?;
        Ok(Pty { outer, inner })
    }

    /// Makes it the terminal that controls this process, which leads a session of its own.
    pub(crate) fn take_control(&self) -> Result<(), Errno> {
        ioctl_tiocsctty(&self.inner)
    }
}

/// Whether a descriptor that came out of a sandbox is the outer side of a terminal, made ready to be
/// read without waiting.
pub(crate) fn accept(outer: &OwnedFd) -> Result<(), Errno> {
    // Only that side can be asked for the other one's name.
    ptsname(outer, Vec::new())?;
    let flags = fcntl_getfl(outer)?;
    fcntl_setfl(outer, flags | OFlags::NONBLOCK)
}

/// Says how large a terminal is; its programs are told when that is new.
pub fn set_window_size(terminal: impl AsFd, size: WindowSize) -> std::io::Result<()> {
    Ok(tcsetwinsize(terminal, winsize(size))?)
}

fn winsize(size: WindowSize) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
