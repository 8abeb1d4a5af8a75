//! What somebody can do to a command while it runs: signal it, and size its terminal.

use std::os::fd::OwnedFd;
use std::sync::Mutex;

use avfs_sandbox::{WindowSize, set_window_size};
use rustix::process::Signal;

use crate::runtime::lock;
use crate::{Error, Result};

/// The largest window that is taken for one; beyond it somebody is mistaken.
const MOST: u16 = 4096;

/// A handle on a command, there before it begins and of no effect after its end.
#[derive(Debug, Default)]
pub struct Control {
    signals: Mutex<Vec<i32>>,
    screen: Mutex<Screen>,
}

#[derive(Debug, Default)]
struct Screen {
    /// What was asked for last.
    size: Option<WindowSize>,
    /// The outer side of the command's terminal, while it runs.
    terminal: Option<OwnedFd>,
}

impl Control {
    /// Sends a signal to every process of the command, soon. As for the kernel, a signal that was not delivered yet is not
    /// sent twice.
    pub fn signal(&self, signal: i32) -> Result<()> {
        if Signal::from_named_raw(signal).is_none() {
            return Err(Error::Invalid {
                what: "signal",
                reason: format!("there is none with the number {signal}"),
            });
        }
        let mut signals = lock(&self.signals);
        if !signals.contains(&signal) {
            signals.push(signal);
        }
        Ok(())
    }

    /// Gives its terminal another size; its programs are told by SIGWINCH.
    pub fn resize(&self, size: WindowSize) -> Result<()> {
        check_size(size)?;
        let mut screen = lock(&self.screen);
        screen.size = Some(size);
        screen.apply()
    }

    /// The size that was asked for last.
    pub fn size(&self) -> Option<WindowSize> {
        lock(&self.screen).size
    }

    pub(crate) fn take_signals(&self) -> Vec<i32> {
        std::mem::take(&mut lock(&self.signals))
    }

    /// The command has begun, at this terminal.
    pub(crate) fn attach(&self, terminal: OwnedFd) -> Result<()> {
        let mut screen = lock(&self.screen);
        screen.terminal = Some(terminal);
        screen.apply()
    }

    /// The command has ended.
    pub(crate) fn release(&self) {
        lock(&self.screen).terminal = None;
    }
}

impl Screen {
    fn apply(&self) -> Result<()> {
        match (&self.terminal, self.size) {
            (Some(terminal), Some(size)) => {
                set_window_size(terminal, size).map_err(Error::io("sizing the terminal"))
            }
            _ => Ok(()),
        }
    }
}

/// Refuses what is no size of a terminal.
pub(crate) fn check_size(size: WindowSize) -> Result<()> {
    let fits = |number: u16| (1..=MOST).contains(&number);
    if fits(size.rows) && fits(size.columns) {
        return Ok(());
    }
    Err(Error::Invalid {
        what: "terminal size",
        reason: format!(
            "{}x{}: columns and rows are from 1 to {MOST}",
            size.columns, size.rows
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        let control = Control::default();
        for wrong in [0, -1, 65, 1000] {
            assert!(control.signal(wrong).is_err(), "{wrong}");
        }
        control.signal(15).unwrap();
        for again in [2, 15, 2] {
            control.signal(again).unwrap();
        }
        assert_eq!(control.take_signals(), [15, 2]);
        assert!(control.take_signals().is_empty());
        let size = |rows, columns| WindowSize { rows, columns };
        assert!(control.resize(size(0, 80)).is_err());
        assert!(control.resize(size(24, 5000)).is_err());
        control.resize(size(24, 80)).unwrap();
        assert_eq!(control.size(), Some(size(24, 80)));
    }
}
