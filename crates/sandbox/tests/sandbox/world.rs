//! A keeper, directories for a vault, and ways to run commands in it.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use avfs_sandbox::{
    Command, Event, ExitStatus, Keeper, KeeperConfig, Network, OverlayPlan, Running, Sandbox,
    SandboxPlan, Stdio, build_skeleton, host_etc, host_lent,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// No command here takes long; a test that waits this long has found a hang.
const LIMIT: Duration = Duration::from_secs(30);

/// What the directory for copies is called.
pub const STAGING: &str = "staging";

pub struct World {
    pub keeper: Keeper,
    pub dir: tempfile::TempDir,
}

pub struct Outcome {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub events: Vec<Event>,
}

impl Outcome {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    pub fn last(&self) -> &Event {
        self.events.last().expect("a command has a last event")
    }

    pub fn status(&self) -> ExitStatus {
        match self.last() {
            Event::Exited { status, .. } => *status,
            other => panic!("not an exit: {other:?}; {}", self.complaint()),
        }
    }
}

impl World {
    pub fn new() -> World {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let config = KeeperConfig {
            binary: own_binary(),
            runtime_dir: dir.path().join("run"),
        };
        for name in ["run", "lower", "skeleton", "upper", "work", "scratch"] {
            fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(&config.runtime_dir, private).expect("a private directory");
        build_skeleton(&dir.path().join("skeleton"), &host_lent()).expect("a skeleton");
        World {
            keeper: Keeper::start(config).expect("a keeper"),
            dir,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn plan(&self) -> SandboxPlan {
        let overlay = OverlayPlan {
            lowers: vec![self.path("lower"), self.path("skeleton")],
            upper: self.path("upper"),
            work: self.path("work"),
        };
        SandboxPlan {
            name: "testvault".into(),
            overlay: Some(overlay),
            scratch: self.path("scratch"),
            lent: host_lent(),
            etc: host_etc("testvault"),
            readonly: false,
            network: Network::None,
            confinement: avfs_sandbox::Confinement::Full,
            staging: STAGING.into(),
        }
    }

    /// A plan like [`World::plan`]'s, with a layer of its own.
    pub fn plan_beside(&self, name: &str) -> SandboxPlan {
        let mut plan = self.plan();
        let overlay = plan.overlay.as_mut().expect("it has an overlay");
        for (path, kind) in [(&mut overlay.upper, "upper"), (&mut overlay.work, "work")] {
            *path = self.path(&format!("{kind}-{name}"));
            fs::create_dir(&*path).expect("a directory");
        }
        plan
    }

    pub fn open_beside(&self) -> Sandbox {
        self.keeper
            .open_sandbox(&self.plan_beside("beside"), Vec::new())
            .expect("a sandbox")
    }

    pub fn open(&self) -> Sandbox {
        self.keeper
            .open_sandbox(&self.plan(), Vec::new())
            .expect("a sandbox")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.keeper.kill();
        // Overlay leaves directories that nobody may open, so that they could not be removed.
        for entry in fs::read_dir(self.dir.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            let open = fs::Permissions::from_mode(0o700);
            let _ = fs::set_permissions(entry.path().join("work"), open);
        }
    }
}

/// The program under test is this one.
pub fn own_binary() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

pub fn command(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
        env: vec![(b"PATH".to_vec(), b"/usr/local/bin:/usr/bin:/bin".to_vec())],
        cwd: b"/".to_vec(),
        ..Command::default()
    }
}

pub fn shell(text: &str) -> Command {
    command(&["/bin/sh", "-c", text])
}

/// A command with its output pipes.
pub struct Started {
    pub running: Running,
    pub stdout: File,
    pub stderr: File,
}

pub fn start(sandbox: &Sandbox, command: &Command) -> Started {
    let null = File::open("/dev/null").expect("the null device");
    start_with(sandbox, command, null.into())
}

pub fn start_with(sandbox: &Sandbox, command: &Command, stdin: OwnedFd) -> Started {
    let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
    let ((stdout, out), (stderr, err)) = (pipe(), pipe());
    let stdio = Stdio {
        stdin,
        stdout: out,
        stderr: err,
    };
    let running = sandbox.exec(command, stdio).expect("an exec");
    Started {
        running,
        stdout: stdout.into(),
        stderr: stderr.into(),
    }
}

pub fn run(sandbox: &Sandbox, command: &Command) -> Outcome {
    start(sandbox, command).finish()
}

impl Started {
    pub fn finish(mut self) -> Outcome {
        let mut outcome = Outcome {
            stdout: Vec::new(),
            stderr: Vec::new(),
            events: Vec::new(),
        };
        let mut stderr = self.stderr;
        let errors = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).expect("stderr is readable");
            bytes
        });
        self.stdout
            .read_to_end(&mut outcome.stdout)
            .expect("stdout is readable");
        outcome.stderr = errors.join().expect("the reader ends");
        outcome.events = events(&self.running);
        outcome
    }
}

/// Every event up to the last.
pub fn events(running: &Running) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let event = next_event(running);
        let last = !matches!(event, Event::Started { .. });
        events.push(event);
        if last {
            return events;
        }
    }
}

pub fn next_event(running: &Running) -> Event {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(event) = running.next_event().expect("a well-formed event") {
            return event;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "no event within {LIMIT:?}");
        let timeout = Timespec::try_from(left).expect("a short time");
        let mut polled = [PollFd::from_borrowed_fd(running.fd(), PollFlags::IN)];
        let _ = poll(&mut polled, Some(&timeout));
    }
}

/// Waits for something to become true.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Host processes whose command line contains `mark`.
pub fn processes_with(mark: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc").expect("a /proc").flatten();
    let has = |path: &Path| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    entries
        .map(|entry| entry.path())
        .filter(|path| has(path))
        .collect()
}
