//! The user's terminal in raw mode, while a remote program uses it.

mod modes;

use crate::error::{Error, Result};
use avfs_api::client::{Detach, Window};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use modes::Modes;

/// A terminal to read from and write to, with a size.
pub struct Screen {
    input: File,
    output: File,
    /// What the program whose output is shown has switched on.
    modes: Modes,
}

impl Screen {
    /// The terminal of standard input; an error if it is not a terminal.
    pub fn open() -> Result<Screen> {
        let failed = || Error::io("cannot use the terminal");
        let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
        let (input, output) = (std::io::stdin(), std::io::stdout());
        if !input.is_terminal() {
            return Err(Error::Invalid {
                text: "standard input is not a terminal".into(),
                hint: Some(
                    "leave --tty out, or run it as a job: `avfs job start --tty --size 80x24`"
                        .into(),
                ),
            });
        }
        let output = match output.is_terminal() {
            true => copy(output.as_fd()),
            // Standard output is redirected, so the terminal is opened by name.
            false => OpenOptions::new().write(true).open("/dev/tty"),
        };
        Ok(Screen {
            input: copy(input.as_fd()).map_err(failed())?,
            output: output.map_err(failed())?,
            modes: Modes::default(),
        })
    }

    /// Rows and columns; 24 by 80 if the terminal does not know.
    pub fn size(&self) -> (u16, u16) {
        size_of(&self.input).unwrap_or((24, 80))
    }

    /// A function that reads the terminal's size at each call and passes it to `note`.
    pub fn window(&self, note: impl Fn((u16, u16)) + Send + 'static) -> Result<Window> {
        let terminal = self.input.try_clone();
        let terminal = terminal.map_err(Error::io("cannot use the terminal"))?;
        Ok(Box::new(move || {
            let size = size_of(&terminal)?;
            note(size);
            Some(size)
        }))
    }

    /// Switches to raw mode: no echo, no line editing, no signals.
    pub fn begin(&self) -> Result<Raw> {
        let failed = || Error::io("cannot use the terminal");
        let terminal = self.input.try_clone().map_err(failed())?;
        let before = tcgetattr(&terminal).map_err(|e| failed()(e.into()))?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw).map_err(|e| failed()(e.into()))?;
        Ok(Raw { terminal, before })
    }

    /// The keyboard input.
    pub fn keys(&self) -> Result<File> {
        let keys = self.input.try_clone();
        keys.map_err(Error::io("cannot use the terminal"))
    }

    pub fn show(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.modes.see(bytes);
        self.output.write_all(bytes)
    }

    /// Switches off what the program has switched on and left so, because it was killed or still runs.
    pub fn leave(&mut self) {
        let undo = std::mem::take(&mut self.modes).undo();
        // A failure here only leaves an untidy screen.
        let _ = self.output.write_all(&undo);
    }
}

fn size_of(terminal: &File) -> Option<(u16, u16)> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// Restores the terminal's modes when dropped.
pub struct Raw {
    terminal: File,
    before: Termios,
}

impl Drop for Raw {
    fn drop(&mut self) {
        // In a destructor there is nothing to do about a failure.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Keyboard input, up to the key that detaches.
pub struct Keys<R> {
    pub keys: R,
    pub detach_key: u8,
    pub detach: Detach,
}

impl<R: Read> Read for Keys<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let size = self.keys.read(buffer)?;
        match buffer[..size]
            .iter()
            .position(|byte| *byte == self.detach_key)
        {
            None => Ok(size),
            Some(0) => {
                self.detach.now();
                Ok(0)
            }
            // Input before the key is still forwarded.
            Some(before) => {
                self.detach.now();
                Ok(before)
            }
        }
    }
}
