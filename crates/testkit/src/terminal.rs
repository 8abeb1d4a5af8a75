//! A pseudoterminal for tests.

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The controlling side of a terminal; all output is kept.
pub struct Terminal {
    other: File,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    pub fn open() -> Terminal {
        let (own, other) = pair();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Some(size) = read(&own, &mut piece) {
                kept.lock()
                    .expect("no holder panics")
                    .extend(&piece[..size]);
            }
        });
        Terminal {
            other,
            seen,
            reader,
        }
    }

    /// The terminal as a program's input or output.
    pub fn stdio(&self) -> Stdio {
        self.other.try_clone().expect("a descriptor").into()
    }

    /// The output so far.
    pub fn so_far(&self) -> String {
        let seen = self.seen.lock().expect("no holder panics");
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// All output, when every program has ended.
    pub fn text(self) -> String {
        drop(self.other);
        self.reader.join().expect("the reader does not panic");
        let seen = self.seen.lock().expect("no holder panics");
        String::from_utf8_lossy(&seen).into_owned()
    }
}

/// A new terminal: its controlling side, and the side of the programs.
pub(crate) fn pair() -> (File, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let own = openpt(flags).expect("a terminal");
    grantpt(&own).expect("own terminal");
    unlockpt(&own).expect("own terminal");
    let name = ptsname(&own, Vec::new()).expect("a terminal has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let other = rustix::fs::open(name, flags, Mode::empty()).expect("its other side");
    (own.into(), other.into())
}

/// Waits for output; `None` when the last program has closed the terminal.
///
/// A pty may return EIO before its last output; so it is read again.
pub(crate) fn read(own: &File, piece: &mut [u8]) -> Option<usize> {
    let read = |piece: &mut [u8]| rustix::io::read(own, piece).ok().filter(|size| *size > 0);
    read(piece).or_else(|| read(piece))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_program_sees_a_terminal_and_what_it_says_is_kept() {
        let terminal = Terminal::open();
        let mut test = Command::new("sh");
        test.args(["-c", "test -t 1 && echo yes"]);
        let status = test.stdout(terminal.stdio()).status().unwrap();
        drop(test);
        assert!(status.success());
        assert_eq!(terminal.text(), "yes\r\n");
    }
}
