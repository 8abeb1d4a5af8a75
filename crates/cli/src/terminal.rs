//! The controlling terminal, for input that must come from a person.

use crate::error::{Error, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};

/// The controlling terminal, wherever standard input and output go.
pub struct Terminal {
    reader: BufReader<File>,
    writer: File,
}

impl Terminal {
    /// Opens it; an error if this process has none.
    pub fn open(what_for: &str) -> Result<Terminal> {
        let opened = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let none = |_| Error::Unavailable {
            text: format!("there is no terminal, and {what_for} needs one"),
            hint: Some("run it in a terminal of your own".into()),
        };
        let reader = opened.map_err(none)?;
        let writer = reader
            .try_clone()
            .map_err(Error::io("cannot use the terminal"))?;
        Ok(Terminal {
            reader: BufReader::new(reader),
            writer,
        })
    }

    /// Writes text that is safe to print.
    pub fn say(&mut self, text: &str) -> Result<()> {
        let written = self.writer.write_all(text.as_bytes());
        written
            .and_then(|()| self.writer.flush())
            .map_err(Error::io("cannot use the terminal"))
    }

    /// Asks, and reads one line; `None` at the end of input.
    pub fn ask(&mut self, question: &str) -> Result<Option<String>> {
        self.say(question)?;
        let mut line = String::new();
        let size = self
            .reader
            .read_line(&mut line)
            .map_err(Error::io("cannot use the terminal"))?;
        Ok((size > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
    }

    /// Asks, and reads one line with echo off.
    pub fn ask_secret(&mut self, question: &str) -> Result<String> {
        let hidden = Hidden::begin(&self.writer)?;
        let answer = self.ask(question);
        drop(hidden);
        self.say("\n")?;
        answer?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| Error::Invalid {
                text: "no passphrase was given".into(),
                hint: None,
            })
    }
}

/// Turns echo off until it is dropped.
struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    fn begin(terminal: &File) -> Result<Hidden> {
        let failed = || Error::io("cannot turn echo off");
        let terminal = terminal.try_clone().map_err(failed())?;
        let before = tcgetattr(&terminal).map_err(|e| failed()(e.into()))?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &quiet).map_err(|e| failed()(e.into()))?;
        Ok(Hidden { terminal, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // In a destructor there is nothing to do about a failure.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
