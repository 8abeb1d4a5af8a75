//! A pseudoterminal made in the sandbox, on its own devpts, and read outside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, openat};
use rustix::io::Errno;
use rustix::process::ioctl_tiocsctty;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::plan::WindowSize;

/// Both sides of a pseudoterminal.
pub(crate) struct Pty {
    /// The controlling side (ptmx).
    pub outer: OwnedFd,
    /// The side of the programs. It stays open until all have ended, so that the terminal is not hung up before.
    pub inner: OwnedFd,
}

impl Pty {
    /// A new one on this devpts, or on this process's own.
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

    /// Makes it the controlling terminal of this process, which is a session leader.
    pub(crate) fn take_control(&self) -> Result<(), Errno> {
        ioctl_tiocsctty(&self.inner)
    }
}

/// Whether a descriptor from a sandbox is the controlling side of a terminal; makes it non-blocking.
pub(crate) fn accept(outer: &OwnedFd) -> Result<(), Errno> {
    // TIOCGPTN works only on that side.
    ptsname(outer, Vec::new())?;
    let flags = fcntl_getfl(outer)?;
    fcntl_setfl(outer, flags | OFlags::NONBLOCK)
}

/// Sets the size of a terminal; the kernel sends SIGWINCH if it changed.
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
