//! The runtime by itself: no root, no FUSE, no daemon, no binary.
//!
//! Views are plain directories here, and commands plain processes of whoever runs the test (`live/plain.rs`): whatever a sandbox or
//! the kernel's overlay does is tested through the binary. A command's files are named relative to the vault's top, where
//! it begins; `/` is the host's.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod exec;
mod exec_changes;
mod ignored;
mod mounts;
mod recovery;
mod slot;
mod view_base;
mod view_writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use avfs_testkit::{SOON, wait_for};
use avfs_vault::{ChangeKind, Principal, Vault, VaultName, VaultPath};
use tempfile::TempDir;

use crate::{
    Cancel, Config, Control, ErrorKind, ExecCommand, ExecOptions, ExecReport, ExecRequest,
    ExecStatus, HostFacts, IfLost, JournalCheck, OutputSink, Parents, ReadOptions, Result, Runtime,
    Select, Session, Stdin, Stream, WriteMode, WriteOptions,
};

/// A home of its own, with a current vault `v`.
struct PlainHome {
    runtime: Runtime,
    dir: TempDir,
}

impl PlainHome {
    fn new() -> PlainHome {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("run")).unwrap();
        let place = PlainHome {
            runtime: Runtime::open(config(&dir)).unwrap(),
            dir,
        };
        place.session().vault_create(&name("v")).unwrap();
        place
    }

    /// Another daemon's life in the same home, after `meanwhile` was done there. The one before was lost: it could commit nothing.
    fn after_a_loss(self, meanwhile: impl FnOnce(&TempDir)) -> PlainHome {
        let PlainHome { runtime, dir } = self;
        drop(runtime);
        meanwhile(&dir);
        // Threads in the background let go of it by and by.
        let mut opened = None;
        let is_open = wait_for(SOON, || {
            opened = Runtime::open(config(&dir)).ok();
            opened.is_some()
        });
        assert!(is_open, "the home is free");
        let runtime = opened.unwrap();
        PlainHome { runtime, dir }
    }

    fn session(&self) -> Session {
        self.runtime.by(Principal::OWNER)
    }

    fn vault(&self) -> Vault {
        self.runtime.inner.vaults.get(&name("v")).unwrap()
    }

    /// The directories of the vault's layers.
    fn layers(&self) -> Vec<PathBuf> {
        let home = self.dir.path().join("home");
        layers(&home.join("layers").join(self.vault().id.to_string()))
    }

    fn write(&self, at: &str, text: &str) {
        self.write_as(at, text, WriteMode::Replace);
    }

    fn write_as(&self, at: &str, text: &str, how: WriteMode) {
        let options = WriteOptions {
            how,
            parents: Parents::Make,
            ..WriteOptions::default()
        };
        let session = self.session();
        let written = session.write(Select::Current, &path(at), &mut text.as_bytes(), &options);
        written.unwrap();
    }

    fn cat(&self, at: &str) -> Result<String> {
        let read = self
            .session()
            .cat(Select::Current, &path(at), &ReadOptions::default());
        read.map(|file| String::from_utf8(file.bytes).unwrap())
    }

    /// The journal must be whole; gives how many entries it has.
    fn check_journal(&self) -> u64 {
        match self.session().journal_verify().unwrap() {
            JournalCheck::Intact { entries, .. } => entries,
            broken => panic!("{broken:?}"),
        }
    }

    /// Runs shell text to its end.
    fn sh(&self, text: &str) -> ExecReport {
        self.run(shell(text))
    }

    fn run(&self, request: ExecRequest) -> ExecReport {
        self.session().exec(request, &Quiet).unwrap()
    }

    /// Starts shell text, and waits until it is at [`UNTIL_GO`], or has made the file `up` in another way.
    fn start(&self, text: &str) -> Started {
        let (session, request) = (self.session(), shell(text));
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || {
            let sink = Telling(tell);
            session.exec(request, &sink)
        });
        let started = Started { thread };
        told.recv_timeout(SOON).expect("the command starts");
        let is_up = || self.cat("/up").is_ok();
        assert!(wait_for(SOON, is_up), "the command is at work");
        started
    }
}

/// A command that is at work in a thread.
struct Started {
    thread: std::thread::JoinHandle<Result<ExecReport>>,
}

impl Started {
    fn end(self) -> ExecReport {
        self.thread.join().unwrap().unwrap()
    }
}

/// Has a command say that it is this far, and wait until somebody writes `go`.
const UNTIL_GO: &str = "echo > up; while [ ! -e go ]; do sleep 0.01; done";

struct Quiet;

impl OutputSink for Quiet {
    fn output(&self, _: Stream, _: &[u8], _: Option<Instant>) {}
}

/// Says when the command begins.
struct Telling(Sender<()>);

impl OutputSink for Telling {
    fn output(&self, _: Stream, _: &[u8], _: Option<Instant>) {}

    fn started(&self) {
        let _ = self.0.send(());
    }
}

fn config(dir: &TempDir) -> Config {
    Config {
        home: dir.path().join("home"),
        runtime_dir: dir.path().join("run"),
        binary: "/nonexistent/avfs".into(),
        host: HostFacts::default(),
        layers: None,
        if_lost: IfLost::Refuse,
    }
}

fn shell(text: &str) -> ExecRequest {
    request(ExecCommand::Shell(text.into()))
}

fn request(command: ExecCommand) -> ExecRequest {
    ExecRequest {
        vault: Select::Current,
        command,
        cwd: None,
        env: Vec::new(),
        stdin: Stdin::Empty,
        terminal: None,
        control: Arc::<Control>::default(),
        options: ExecOptions::default(),
    }
}

fn layers(of_vault: &std::path::Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(of_vault).into_iter().flatten().flatten();
    let found = found.map(|entry| entry.path());
    found.filter(|path| path.join("record").exists()).collect()
}

fn name(text: &str) -> VaultName {
    text.parse().unwrap()
}

fn path(text: &str) -> VaultPath {
    VaultPath::parse(text.as_bytes()).unwrap()
}

/// `+created -deleted ~modified` of a report.
fn changes(report: &ExecReport) -> Vec<String> {
    let sign = |kind: &ChangeKind| match kind {
        ChangeKind::Created => "+",
        ChangeKind::Deleted => "-",
        _ => "~",
    };
    let listed = report.changes.listed.iter();
    listed
        .map(|change| format!("{}{}", sign(&change.kind), change.path))
        .collect()
}

fn stdout(report: &ExecReport) -> &str {
    std::str::from_utf8(&report.stdout.bytes).unwrap()
}
