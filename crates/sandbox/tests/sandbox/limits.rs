//! Limits hold, are told apart from other ends, and leave nothing behind.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use avfs_sandbox::{
    Command, Enforced, Error, Event, ExitStatus, Limit, Limits, Mechanism, Sandbox, Stdio,
};

use crate::Test;
use crate::attacks::armed;
use crate::world::{Outcome, World, command, eventually, next_event, run, shell, start};

pub const TESTS: &[Test] = &[
    ("memory_is_limited", memory_is_limited),
    ("memory_of_many_is_limited", memory_of_many_is_limited),
    ("a_kill_is_not_a_limit", a_kill_is_not_a_limit),
    ("processes_are_limited", processes_are_limited),
    ("processors_are_limited", processors_are_limited),
    ("files_are_limited", files_are_limited),
    ("limits_of_the_dropped_go_too", limits_of_the_dropped_go_too),
    ("wrong_limits_are_refused", wrong_limits_are_refused),
];

pub const MIB: u64 = 1024 * 1024;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn limited(command: Command, limits: Limits) -> Command {
    Command { limits, ..command }
}

pub fn memory(bytes: u64) -> Limits {
    Limits {
        memory_bytes: Some(bytes),
        ..Limits::default()
    }
}

/// Plays the part that the arguments name; false when it is none of these.
pub fn play(arguments: &[String]) -> bool {
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["__eat", megabytes] => eat(megabytes.parse().expect("a number")),
        ["__fork", most] => fork(most.parse().expect("a number")),
        _ => return false,
    }
    true
}

/// Takes memory, a megabyte at a time, and keeps it for a while.
fn eat(megabytes: usize) {
    let mut eaten = Vec::new();
    for _ in 0..megabytes {
        eaten.push(vec![1_u8; MIB as usize]);
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(300));
    let sum: usize = eaten.iter().map(|part| usize::from(part[4096])).sum();
    writeln!(std::io::stdout(), "ate {sum}").expect("stdout is open");
}

/// Says how many children it can have at once.
fn fork(most: usize) {
    let mut count = 0;
    while count < most {
        // SAFETY: this program has one thread here, and the child only waits to be killed.
        match unsafe { libc::fork() } {
            0 => std::thread::sleep(Duration::from_secs(60)),
            pid if pid > 0 => count += 1,
            _ => break,
        }
    }
    writeln!(std::io::stdout(), "{count}").expect("stdout is open");
}

pub fn cause(outcome: &Outcome) -> Option<Enforced> {
    match outcome.last() {
        Event::Exited { cause, .. } => *cause,
        other => panic!("not an exit: {other:?}"),
    }
}

/// Runs a command under a limit; what became of it, and what held it to the limit.
pub fn run_limited(sandbox: &Sandbox, command: &Command) -> (Outcome, Vec<Enforced>) {
    let started = start(sandbox, command);
    let limits = started.running.limits().to_vec();
    let outcome = started.finish();
    assert_eq!(
        groups(),
        Vec::<PathBuf>::new(),
        "its group has gone with it"
    );
    (outcome, limits)
}

/// Every control group that this process has made.
fn groups() -> Vec<PathBuf> {
    fn walk(dir: &Path, depth: u32, found: &mut Vec<PathBuf>) {
        let mark = format!("avfs-{}-", std::process::id());
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&mark) {
                found.push(entry.path());
            } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                walk(&entry.path(), depth - 1, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), 6, &mut found);
    found
}

/// Whether this process may make groups here; if it may, limits are held by them.
fn holds(by: Mechanism, without: Mechanism) -> bool {
    let group = matches!(by, Mechanism::CgroupV1 | Mechanism::CgroupV2);
    group || (by == without && !is_root())
}

fn memory_is_limited() {
    let world = World::new();
    let sandbox = armed(&world);
    let eat =
        |megabytes: &str| limited(command(&["/attack", "__eat", megabytes]), memory(64 * MIB));
    let (outcome, limits) = run_limited(&sandbox, &eat("400"));
    assert_eq!(outcome.status(), ExitStatus::Signal(libc::SIGKILL));
    let [held] = limits[..] else {
        panic!("{limits:?}")
    };
    assert!(
        held.limit == Limit::Memory && holds(held.by, Mechanism::Poll),
        "{held:?}"
    );
    assert_eq!(cause(&outcome), Some(held));
    assert_eq!(outcome.text(), "");

    let (outcome, _) = run_limited(&sandbox, &eat("20"));
    assert_eq!(
        (outcome.text().as_str(), cause(&outcome)),
        ("ate 20\n", None)
    );
    let free = run(&sandbox, &command(&["/attack", "__eat", "100"]));
    assert_eq!(
        (free.text().as_str(), cause(&free)),
        ("ate 100\n", None),
        "without a limit"
    );
}

fn memory_of_many_is_limited() {
    let world = World::new();
    let sandbox = armed(&world);
    let many = "for i in 1 2 3 4 5 6; do setsid /attack __eat 40 & done; wait; echo $?";
    let (outcome, limits) = run_limited(&sandbox, &limited(shell(many), memory(150 * MIB)));
    assert_eq!(cause(&outcome), Some(limits[0]));
    let few = "for i in 1 2; do /attack __eat 30 & done; wait; echo done";
    let (outcome, _) = run_limited(&sandbox, &limited(shell(few), memory(150 * MIB)));
    assert!(outcome.text().ends_with("done\n"), "{}", outcome.text());
    assert_eq!(cause(&outcome), None);
    // Files in memory are memory.
    let file = "for i in $(seq 30); do head -c 10000000 /dev/zero >> /dev/shm/x; sleep 0.01; done; \
                echo all";
    let (outcome, limits) = run_limited(&sandbox, &limited(shell(file), memory(100 * MIB)));
    assert_eq!(cause(&outcome), Some(limits[0]), "{}", outcome.text());
}

fn a_kill_is_not_a_limit() {
    let world = World::new();
    let sandbox = world.open();
    let started = start(&sandbox, &limited(shell("kill -9 $$"), memory(64 * MIB)));
    let outcome = started.finish();
    assert_eq!(outcome.status(), ExitStatus::Signal(libc::SIGKILL));
    assert_eq!(cause(&outcome), None);
    let started = start(&sandbox, &limited(shell("sleep 20"), memory(64 * MIB)));
    assert!(matches!(
        next_event(&started.running),
        Event::Started { .. }
    ));
    started.running.kill().expect("a kill");
    let outcome = started.finish();
    assert_eq!(
        (outcome.status(), cause(&outcome)),
        (ExitStatus::Signal(libc::SIGKILL), None)
    );
}

fn processes_are_limited() {
    let world = World::new();
    let sandbox = armed(&world);
    let limits = Limits {
        pids: Some(20),
        ..Limits::default()
    };
    // Others in the sandbox do not count.
    let other = start(&sandbox, &shell("sleep 30 & sleep 30 & sleep 30 & wait"));
    eventually("they sleep", || sandbox.processes().expect("a count") == 4);
    let forks = limited(command(&["/attack", "__fork", "100"]), limits);
    let (outcome, limits) = run_limited(&sandbox, &forks);
    // The first is one of them.
    assert_eq!(outcome.text(), "19\n", "{}", outcome.complaint());
    assert!(limits[0].limit == Limit::Pids && holds(limits[0].by, Mechanism::Rlimit));
    other.running.kill().expect("a kill");
    other.finish();
}

fn processors_are_limited() {
    let world = World::new();
    let sandbox = world.open();
    let limits = Limits {
        cpus: Some(0.25),
        ..Limits::default()
    };
    let busy = limited(shell("timeout 1 sh -c 'while :; do :; done'"), limits);
    if !is_root() {
        let refused = sandbox.exec(&busy, null_stdio());
        let Err(error @ Error::Unenforceable { .. }) = refused else {
            panic!("{refused:?}")
        };
        let text = error.to_string();
        assert!(
            text.starts_with("the limit on cpus cannot be enforced here: "),
            "{text}"
        );
        return;
    }
    let began = Instant::now();
    let (outcome, limits) = run_limited(&sandbox, &busy);
    let took = began.elapsed();
    let Event::Exited { usage, .. } = outcome.last() else {
        panic!("not an exit")
    };
    let used = Duration::from_micros(usage.user_us + usage.system_us);
    assert!(used < took.mul_f64(0.4), "{used:?} of {took:?}");
    assert!(limits[0].limit == Limit::Cpus && holds(limits[0].by, Mechanism::CgroupV2));
}

fn files_are_limited() {
    let world = World::new();
    let sandbox = world.open();
    let limits = Limits {
        nofile: Some(50),
        file_bytes: Some(MIB),
        ..Limits::default()
    };
    let text = "ulimit -n; exec head -c 2000000 /dev/zero > /big";
    let (outcome, held) = run_limited(&sandbox, &limited(shell(text), limits));
    assert_eq!(outcome.text(), "50\n");
    assert_eq!(outcome.status(), ExitStatus::Signal(libc::SIGXFSZ));
    let by = Mechanism::Rlimit;
    let [files, size] = [Limit::OpenFiles, Limit::FileSize].map(|limit| Enforced { limit, by });
    assert_eq!(held, [files, size]);
    assert_eq!(cause(&outcome), Some(size));
    let size = fs::metadata(world.path("upper/big")).expect("a file").len();
    assert_eq!(size, MIB);
}

fn limits_of_the_dropped_go_too() {
    let world = World::new();
    let sandbox = world.open();
    let started = start(&sandbox, &limited(shell("sleep 30"), memory(64 * MIB)));
    assert!(matches!(
        next_event(&started.running),
        Event::Started { .. }
    ));
    assert_eq!(groups().len(), usize::from(is_root()));
    drop(started);
    eventually("its group is gone", || groups().is_empty());
    let failed = run(&sandbox, &limited(command(&["/none"]), memory(64 * MIB)));
    assert!(matches!(failed.last(), Event::CouldNotStart(_)));
    assert_eq!(groups(), Vec::<PathBuf>::new());
}

fn null_stdio() -> Stdio {
    let null = || fs::File::open("/dev/null").expect("the null device").into();
    Stdio {
        stdin: null(),
        stdout: null(),
        stderr: null(),
    }
}

fn wrong_limits_are_refused() {
    let world = World::new();
    let sandbox = world.open();
    for limits in [
        memory(1),
        Limits {
            cpus: Some(0.0),
            ..Limits::default()
        },
    ] {
        let refused = sandbox.exec(&limited(shell("true"), limits), null_stdio());
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
}
