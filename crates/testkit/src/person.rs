//! A simulated person: runs a program on a terminal, reads its questions and types answers.

use crate::terminal;
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longer than any program here takes to ask something.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program at a terminal that only a person, played by the test, can type into.
pub struct Person {
    child: Child,
    hand: File,
    /// The program's side, so that the terminal is not left before the program has ended.
    other: File,
    said: Receiver<Vec<u8>>,
    text: String,
    /// How much of the text was answered already.
    seen: usize,
}

impl Person {
    /// Starts a program in a session of its own, whose controlling terminal is a fresh one.
    pub fn start(mut command: Command) -> Person {
        let (hand, other) = terminal::pair();
        set_size(&hand, 24, 80);
        let stdio = |file: &File| Stdio::from(file.try_clone().expect("a descriptor"));
        command
            .stdin(stdio(&other))
            .stdout(stdio(&other))
            .stderr(stdio(&other));
        let its_own = other.try_clone().expect("a descriptor");
        // SAFETY: between fork and exec only two system calls are made.
        unsafe {
            command.pre_exec(move || {
                setsid()?;
                ioctl_tiocsctty(its_own.as_fd())?;
                Ok(())
            });
        }
        let child = command.spawn().expect("the program starts");
        drop(command);
        let eye = hand.try_clone().expect("a descriptor");
        let (tell, said) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Some(size) = terminal::read(&eye, &mut piece) {
                if tell.send(piece[..size].to_vec()).is_err() {
                    return;
                }
            }
        });
        Person {
            child,
            hand,
            other,
            said,
            text: String::new(),
            seen: 0,
        }
    }

    /// Waits until the program says this, and types an answer.
    pub fn answer(&mut self, question: &str, answer: &str) {
        self.wait_for(question);
        let line = format!("{answer}\n");
        self.hand
            .write_all(line.as_bytes())
            .expect("the terminal takes it");
    }

    /// Types keys, just as they are.
    pub fn type_keys(&mut self, keys: &str) {
        let typed = self.hand.write_all(keys.as_bytes());
        typed.expect("the terminal takes it");
    }

    /// Makes the terminal another size.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        set_size(&self.hand, rows, columns);
    }

    /// Whether the program takes every key as it comes.
    pub fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.other).expect("own terminal").local_modes;
        !modes.contains(LocalModes::ICANON)
    }

    /// Waits until the program says this; gives all it has said.
    pub fn wait_for(&mut self, text: &str) -> &str {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.text[self.seen..].find(text) {
                self.seen += at + text.len();
                return &self.text;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("it never said {text:?}, but:\n{}", self.text)
                }
            }
        }
    }

    /// Kills the program.
    pub fn leave(mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until the program has ended and its terminal is closed; returns all its output.
    pub fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("own child");
        drop(self.other);
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Disconnected) => return (status, self.text),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("it ended, but left the terminal open:\n{}", self.text)
                }
            }
        }
    }
}

fn set_size(terminal: impl AsFd, rows: u16, columns: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).expect("own terminal");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_asks_and_is_answered() {
        let mut ask = Command::new("sh");
        ask.args([
            "-c",
            "printf 'name? ' > /dev/tty; read x < /dev/tty; echo hello $x",
        ]);
        let mut person = Person::start(ask);
        person.answer("name?", "you");
        let (status, text) = person.end();
        assert!(status.success());
        assert!(text.contains("hello you"), "{text}");
    }

    #[test]
    fn what_is_said_late_is_heard() {
        let mut late = Command::new("sh");
        late.args(["-c", "trap '' HUP; (sleep 0.5; echo late) & exit 3"]);
        let (status, text) = Person::start(late).end();
        assert_eq!(status.code(), Some(3));
        assert!(text.contains("late"), "{text}");
    }
}
