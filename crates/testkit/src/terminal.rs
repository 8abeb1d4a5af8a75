//! A terminal for a program to believe in.

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// One side of a terminal; all that is written to the other is kept.
pub struct Terminal {
    other: File,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    pub fn open() -> Terminal {
        let mut own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&own).expect("own terminal");
        unlockpt(&own).expect("own terminal");
        let name = ptsname(&own, Vec::new()).expect("a terminal has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let other = rustix::fs::open(name, flags, Mode::empty()).expect("its other side");
        own = rustix::io::fcntl_dupfd_cloexec(&own, 3).expect("a descriptor");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let mut own = File::from(own);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // An error says that the last one has left the other side.
            while let Ok(size) = own.read(&mut piece) {
                kept.lock()
                    .expect("no holder panics")
                    .extend(&piece[..size]);
            }
        });
        Terminal {
            other: File::from(other),
            seen,
            reader,
        }
    }

    /// The terminal as a program's input or output.
    pub fn stdio(&self) -> Stdio {
        self.other.try_clone().expect("a descriptor").into()
    }

    /// What has been written until now.
    pub fn so_far(&self) -> String {
        let seen = self.seen.lock().expect("no holder panics");
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// All that was written, when every program has ended.
    pub fn text(self) -> String {
        drop(self.other);
        self.reader.join().expect("the reader does not panic");
        let seen = self.seen.lock().expect("no holder panics");
        String::from_utf8_lossy(&seen).into_owned()
    }
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
