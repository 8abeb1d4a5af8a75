//! Starting and stopping a daemon.

use crate::client::Client;
use crate::daemon_paths::DaemonPaths;
use crate::error::{Error, Result};
use crate::wire::DaemonStop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a client keeps trying while another daemon starts or ends.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long a daemon may take to end its commands and save their work.
const STOP_PATIENCE: Duration = Duration::from_secs(120);
/// A larger log is truncated by the next daemon.
const LOG_MAX: u64 = 1 << 20;

/// The first and only line that a new daemon prints.
pub mod greeting {
    pub const READY: &str = "ready";
    /// Another daemon owns the home.
    pub const TAKEN: &str = "taken";
    /// Separates the error from the hint.
    pub const HINT: char = '\u{1f}';
}

/// How to start a daemon: its whole environment.
pub struct Starter {
    pub place: DaemonPaths,
    pub binary: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
}

impl Starter {
    /// Connects to the daemon, starting one if there is none. Only then `arguments` is called for the daemon's command line.
    pub fn connect(&self, arguments: &dyn Fn() -> Vec<OsString>) -> Result<Client> {
        let deadline = Instant::now() + PATIENCE;
        let mut command_line = None;
        let mut pause = FIRST_PAUSE;
        loop {
            match Client::connect(&self.place) {
                Err(Error::NoDaemon { .. }) => {}
                connected_or_failed => return connected_or_failed,
            }
            if Instant::now() >= deadline {
                let reason = format!("{} is held by another daemon", self.place.home().display());
                return Err(Error::NotStarted { reason, hint: None });
            }
            match self.start(command_line.get_or_insert_with(arguments))? {
                Started::Ready => {}
                // It is starting or ending.
                Started::Taken => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn start(&self, arguments: &[OsString]) -> Result<Started> {
        if self.place.owner()? != rustix::process::geteuid().as_raw() {
            let home = self.place.home().display();
            let reason = format!("{home} belongs to another user, whose daemon does not run");
            return Err(Error::NotStarted { reason, hint: None });
        }
        let log = self.prepare()?;
        keep_descriptors();
        let mut daemon = Command::new(&self.binary)
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|source| Error::File {
                what: "run",
                path: self.binary.clone(),
                source,
            })?;
        let mut line = String::new();
        if let Some(output) = daemon.stdout.take() {
            // A daemon that dies prints nothing, which is handled below.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let started = match line.trim_end() {
            greeting::READY => return Ok(Started::Ready),
            greeting::TAKEN => Ok(Started::Taken),
            "" => Err(Error::NotStarted {
                reason: format!("it printed nothing; see {}", self.place.log().display()),
                hint: None,
            }),
            said => {
                let (reason, hint) = match said.split_once(greeting::HINT) {
                    Some((reason, hint)) => (reason, Some(hint.to_owned())),
                    None => (said, None),
                };
                let reason = reason.to_owned();
                Err(Error::NotStarted { reason, hint })
            }
        };
        // It has ended or is about to: reap it.
        let _ = daemon.wait();
        started
    }

    /// Creates the daemon's directory and log. If they are on a full disk with the home, the reserve is used for them.
    fn prepare(&self) -> Result<File> {
        let prepare = || self.place.prepare().and_then(|()| self.open_log());
        let mut prepared = prepare();
        while prepared.as_ref().is_err_and(Error::is_full)
            && avfs_runtime::give_up_reserve(self.place.home())
        {
            prepared = prepare();
        }
        prepared
    }

    fn open_log(&self) -> Result<File> {
        let path = self.place.log();
        let failed = |source| Error::File {
            what: "write",
            path: path.clone(),
            source,
        };
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        if fs::metadata(&path).map_err(failed)?.len() > LOG_MAX {
            log.set_len(0).map_err(failed)?;
        }
        Ok(log)
    }
}

enum Started {
    Ready,
    Taken,
}

/// Asks the daemon to end, and waits for the end of its process. Works with a daemon of any version; with `force` also while
/// detached jobs run.
pub fn stop(client: &mut Client, force: bool) -> Result<u32> {
    let process = client.daemon_pid().and_then(Pid::from_raw);
    let process = process.and_then(|process| pidfd_open(process, PidfdFlags::empty()).ok());
    let pid = client.call("", &DaemonStop { force })?.pid;
    // `None` means that it ended before a pidfd could be opened.
    let Some(process) = process else {
        return Ok(pid);
    };
    let deadline = Instant::now() + STOP_PATIENCE;
    while Instant::now() < deadline {
        let mut watched = [PollFd::new(&process, PollFlags::IN)];
        let step = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        if let Ok(1) = poll(&mut watched, Some(&step)) {
            return Ok(pid);
        }
    }
    let waited = STOP_PATIENCE.as_secs();
    Err(Error::Broken {
        what: format!("process {pid} has not ended after {waited} s"),
    })
}

/// Keeps inherited descriptors (a script's lock, a pipe that somebody waits on) from staying open in the daemon.
fn keep_descriptors() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers.filter(|number: &i32| *number > 2) {
        // SAFETY: the descriptor is only asked for its flags and given one more; it stays open
        // and whoever owns it is not affected. If it was closed meanwhile (the directory's own
        // is), both calls fail with EBADF, which changes nothing.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        if let Ok(flags) = fcntl_getfd(descriptor) {
            let _ = fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC);
        }
    }
}
