//! Who dies with whom, and that nothing is left.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use avfs_sandbox::{Error, Event, ExitStatus, Keeper, KeeperConfig};
use rustix::fs::{FlockOperation, flock};

use crate::Test;
use crate::attacks::armed;
use crate::world::{
    World, command, eventually, next_event, own_binary, processes_with, run, shell, start,
};

pub const TESTS: &[Test] = &[
    ("leftovers_are_killed", leftovers_are_killed),
    ("kill_reaches_every_stray", kill_reaches_every_stray),
    ("signals_reach_every_process", signals_reach_every_process),
    ("a_fork_bomb_can_be_killed", a_fork_bomb_can_be_killed),
    ("dropping_a_command_kills_it", dropping_a_command_kills_it),
    ("dropping_a_sandbox_kills_all", dropping_a_sandbox_kills_all),
    (
        "a_dead_supervisor_takes_its_sandbox",
        a_dead_supervisor_takes_its_sandbox,
    ),
    ("a_dead_keeper_takes_all", a_dead_keeper_takes_all),
    ("a_dead_daemon_takes_all", a_dead_daemon_takes_all),
    (
        "held_descriptors_outlive_commands",
        held_descriptors_outlive_commands,
    ),
    ("helpers_run_in_the_keeper", helpers_run_in_the_keeper),
    ("many_sandboxes_at_once", many_sandboxes_at_once),
];

/// A sleep that can be found on the host, and that nobody else runs.
fn mark(number: u32) -> String {
    format!("{}.{number}", 4000 + std::process::id())
}

fn gone(mark: &str) {
    assert_eq!(processes_with(mark), Vec::<PathBuf>::new());
}

fn leftovers_are_killed() {
    let world = World::new();
    let sandbox = world.open();
    let sleep = mark(1);
    let text = format!(
        "setsid sleep {sleep} & (sleep {sleep} & (trap '' TERM HUP; sleep {sleep}) & ) & \
         nohup sleep {sleep} >/dev/null 2>&1 & sleep 0.2; exit 7"
    );
    let mut quiet = shell(&format!("exec >/dev/null 2>&1; {text}"));
    quiet.cwd = b"/tmp".to_vec();
    let outcome = run(&sandbox, &quiet);
    let Event::Exited {
        status, leftovers, ..
    } = outcome.last()
    else {
        panic!("no exit")
    };
    assert_eq!(*status, ExitStatus::Code(7));
    assert!(*leftovers >= 4, "{leftovers}");
    gone(&sleep);
    assert_eq!(sandbox.processes().expect("a count"), 0);
}

fn kill_reaches_every_stray() {
    let world = World::new();
    let sandbox = world.open();
    let sleep = mark(2);
    let text = format!(
        "trap '' TERM; echo partial; setsid sh -c 'trap \"\" TERM; sleep {sleep} & wait' & \
         sleep {sleep}"
    );
    let started = start(&sandbox, &shell(&text));
    eventually("both sleep", || processes_with(&sleep).len() >= 3);
    assert!(sandbox.processes().expect("a count") >= 3);
    started.running.kill().expect("a kill");
    let outcome = started.finish();
    assert_eq!(outcome.text(), "partial\n");
    assert_eq!(outcome.status(), ExitStatus::Signal(libc::SIGKILL));
    gone(&sleep);
    assert!(sandbox.is_alive());
}

fn signals_reach_every_process() {
    let world = World::new();
    let sandbox = world.open();
    let text = "setsid sh -c 'trap \"echo inner; exit\" TERM; touch /tmp/in; while :; do sleep 0.05; done' & \
                trap 'echo outer; wait; exit 9' TERM; touch /tmp/out; while :; do sleep 0.05; done";
    let started = start(&sandbox, &shell(text));
    let ready = |name: &str| world.path("scratch").join(name).exists();
    eventually("both wait", || ready("in") && ready("out"));
    started.running.signal(libc::SIGTERM).expect("a signal");
    let outcome = started.finish();
    let text = outcome.text();
    assert!(
        text.contains("inner\n") && text.contains("outer\n"),
        "{text}"
    );
    assert_eq!(outcome.status(), ExitStatus::Code(9));
}

/// A fork bomb: bounded in how many processes it has, not in how often it makes new ones.
pub fn bomb() {
    let limit = rustix::process::Rlimit {
        current: Some(60),
        maximum: Some(60),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nproc, limit).expect("a limit");
    loop {
        // SAFETY: this program has one thread here, and the child only does the same again.
        unsafe { libc::fork() };
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn a_fork_bomb_can_be_killed() {
    let world = World::new();
    let sandbox = armed(&world);
    let started = start(&sandbox, &command(&["/attack", "__bomb"]));
    eventually("it grows", || sandbox.processes().expect("a count") > 40);
    started.running.kill().expect("a kill");
    assert_eq!(started.finish().status(), ExitStatus::Signal(libc::SIGKILL));
    assert_eq!(sandbox.processes().expect("a count"), 0);
}

fn dropping_a_command_kills_it() {
    let world = World::new();
    let sandbox = world.open();
    let sleep = mark(3);
    let started = start(
        &sandbox,
        &shell(&format!("setsid sleep {sleep} & sleep {sleep}")),
    );
    eventually("it sleeps", || processes_with(&sleep).len() >= 2);
    drop(started);
    eventually("it is gone", || processes_with(&sleep).is_empty());
    assert_eq!(
        run(&sandbox, &command(&["true"])).status(),
        ExitStatus::Code(0)
    );
}

fn dropping_a_sandbox_kills_all() {
    let world = World::new();
    let sandbox = world.open();
    let sleep = mark(4);
    let started = start(
        &sandbox,
        &shell(&format!("setsid sleep {sleep} & sleep {sleep}")),
    );
    assert!(matches!(
        next_event(&started.running),
        Event::Started { .. }
    ));
    eventually("it sleeps", || processes_with(&sleep).len() >= 2);
    drop(sandbox);
    gone(&sleep);
    assert_eq!(next_event(&started.running), Event::Lost);
    assert!(
        started.running.next_event().expect("no error").is_none(),
        "nothing follows"
    );
    started
        .running
        .kill()
        .expect("killing the dead is no error");
}

/// A process's parent, as the host numbers them.
pub fn parent(process: &Path) -> PathBuf {
    let status = fs::read_to_string(process.join("status")).expect("a living process");
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t"));
    Path::new("/proc").join(parent.expect("every process has a parent"))
}

fn a_dead_supervisor_takes_its_sandbox() {
    let world = World::new();
    let (sandbox, other) = (world.open(), world.open_beside());
    let sleep = mark(7);
    let started = start(&sandbox, &command(&["sleep", &sleep]));
    eventually("it sleeps", || processes_with(&sleep).len() == 1);
    let supervisor = parent(&processes_with(&sleep)[0]);
    let name = fs::read_to_string(supervisor.join("comm")).expect("a name");
    assert_eq!(name, "avfs-supervisor\n");
    let pid = supervisor
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a kill");
    assert_eq!(started.finish().last(), &Event::Lost);
    eventually("the sandbox is gone", || !sandbox.is_alive());
    gone(&sleep);
    assert_eq!(
        run(&other, &command(&["true"])).status(),
        ExitStatus::Code(0)
    );
}

fn a_dead_keeper_takes_all() {
    let world = World::new();
    let sandbox = world.open();
    let sleep = mark(5);
    let started = start(
        &sandbox,
        &shell(&format!("setsid sleep {sleep} & sleep {sleep}")),
    );
    eventually("it sleeps", || processes_with(&sleep).len() >= 2);
    let pid = rustix::process::Pid::from_raw(world.keeper.pid().cast_signed()).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a kill");
    eventually("the keeper is gone", || !world.keeper.is_alive());
    gone(&sleep);
    assert!(!sandbox.is_alive());
    assert_eq!(started.finish().last(), &Event::Lost);
    assert!(matches!(
        world.keeper.mount_fuse("x"),
        Err(Error::KeeperGone)
    ));
    assert!(sandbox.exec(&command(&["true"]), null_stdio()).is_err());
    let again = KeeperConfig {
        binary: own_binary(),
        runtime_dir: world.path("run"),
    };
    let keeper = Keeper::start(again).expect("a keeper after a keeper");
    let sandbox = keeper
        .open_sandbox(&world.plan(), Vec::new())
        .expect("a sandbox");
    assert_eq!(
        run(&sandbox, &command(&["true"])).status(),
        ExitStatus::Code(0)
    );
}

fn null_stdio() -> avfs_sandbox::Stdio {
    let null = || File::open("/dev/null").expect("the null device").into();
    avfs_sandbox::Stdio {
        stdin: null(),
        stdout: null(),
        stderr: null(),
    }
}

/// A daemon that starts a command and then waits to be killed.
pub fn doomed_daemon(sleep: &str) {
    let world = World::new();
    let sandbox = world.open();
    let started = start(
        &sandbox,
        &shell(&format!("setsid sleep {sleep} & sleep {sleep}")),
    );
    started.finish();
}

fn a_dead_daemon_takes_all() {
    let sleep = mark(6);
    // What the daemon cannot clean up goes with this.
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut daemon = Command::new(own_binary())
        .env("TMPDIR", dir.path())
        .args(["__doomed", &sleep])
        .stdin(Stdio::null())
        .spawn()
        .expect("a daemon");
    // The daemon's own command line names it too.
    eventually("it sleeps", || processes_with(&sleep).len() >= 4);
    daemon.kill().expect("a kill");
    daemon.wait().expect("its end");
    eventually("all is gone", || processes_with(&sleep).is_empty());
    eventually("its keeper is gone", || {
        let keepers = processes_with("__keeper");
        !keepers.iter().any(|path| parent_is_init(path))
    });
}

/// Whether a process has been left by its parent.
fn parent_is_init(process: &Path) -> bool {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    status.lines().any(|line| line == "PPid:\t1")
}

fn held_descriptors_outlive_commands() {
    let world = World::new();
    let lock = || {
        File::options()
            .create(true)
            .append(true)
            .open(world.path("lock"))
    };
    let held = lock().expect("a file");
    flock(&held, FlockOperation::NonBlockingLockExclusive).expect("a lock");
    let sandbox = world
        .keeper
        .open_sandbox(&world.plan(), vec![held.into()])
        .expect("a sandbox");
    let other = lock().expect("a file");
    let free = || flock(other.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok();
    assert!(!free(), "the sandbox holds it");
    let outcome = run(&sandbox, &shell("ls -l /proc/self/fd"));
    assert!(!outcome.text().contains("lock"), "{}", outcome.text());
    assert!(!free(), "the sandbox holds it between commands");
    drop(sandbox);
    assert!(free(), "nobody holds it after the end");
}

/// The helper's side: says on descriptor 3 who it is and what it finds.
pub fn helper() {
    // SAFETY: the keeper gave this process a socket as descriptor 3, and nobody else owns it.
    let socket = unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(3) };
    let uid = rustix::process::geteuid().as_raw();
    let environment = std::env::vars().count();
    let caps = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let caps = caps
        .lines()
        .find(|line| line.starts_with("CapEff"))
        .unwrap_or("")
        .to_owned();
    let text = format!("{uid} {environment} {}", caps.contains("1ff"));
    rustix::io::write(&socket, text.as_bytes()).expect("the socket is open");
    // Lives until the other end is closed.
    let _ = rustix::io::read(&socket, &mut [0; 1]);
}

fn helpers_run_in_the_keeper() {
    let world = World::new();
    let socket = world.keeper.spawn_helper("__helper").expect("a helper");
    let mut text = [0; 100];
    let read = rustix::io::read(&socket, &mut text).expect("a message");
    assert_eq!(std::str::from_utf8(&text[..read]), Ok("0 0 true"));
    world.keeper.kill();
    let read = File::from(socket).read(&mut text);
    assert!(matches!(read, Ok(0)), "it died with the keeper: {read:?}");
}

fn many_sandboxes_at_once() {
    let world = World::new();
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let plan = world.plan_beside(&number.to_string());
            let keeper = world.keeper.clone();
            std::thread::spawn(move || {
                let sandbox = keeper.open_sandbox(&plan, Vec::new()).expect("a sandbox");
                for _ in 0..10 {
                    let outcome = run(&sandbox, &shell("echo $$ > /x; cat /x; echo x >> /log"));
                    assert_eq!(
                        outcome.status(),
                        ExitStatus::Code(0),
                        "{}",
                        outcome.complaint()
                    );
                }
                let overlay = plan.overlay.expect("it has an overlay");
                fs::read_to_string(overlay.upper.join("log"))
                    .expect("its log")
                    .len()
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), 20);
    }
}
