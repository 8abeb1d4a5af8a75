//! Memory that no process has mapped is memory, does not outlive its command, and has a default
//! limit.

use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use avfs_sandbox::{Defaults, ExitStatus, Limit, Limits, Mechanism, UNLIMITED, UNLIMITED_COUNT};

use crate::Test;
use crate::attacks::armed;
use crate::limits::{MIB, cause, is_root, limited, memory, run_limited};
use crate::world::{World, command, eventually, own_binary, run, shell, start};

pub const TESTS: &[Test] = &[
    ("hidden_memory_is_limited", hidden_memory_is_limited),
    ("nameless_files_work", nameless_files_work),
    (
        "shared_memory_is_counted_once",
        shared_memory_is_counted_once,
    ),
    (
        "nothing_in_memory_outlives_commands",
        nothing_in_memory_outlives_commands,
    ),
    (
        "memory_freed_by_others_is_counted",
        memory_freed_by_others_is_counted,
    ),
    (
        "the_next_command_finds_nothing",
        the_next_command_finds_nothing,
    ),
    ("there_are_defaults", there_are_defaults),
    ("memory_has_a_default", memory_has_a_default),
];

/// Milliseconds: enough to be looked at, and for ever.
const SHORT: &str = "300";
const LONG: &str = "60000";

/// Plays the part that the arguments name; false when it is none of these.
pub fn play(arguments: &[String]) -> bool {
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["__hide", kind, megabytes, stay] => {
            hide(kind, megabytes.parse().expect("a number"), time(stay));
        }
        ["__nameless"] => nameless(),
        ["__map_zero"] => map_zero(),
        ["__leave"] => leave(),
        ["__map_shared", megabytes, stay] => {
            map_shared(megabytes.parse().expect("a number"), time(stay));
        }
        ["__small_host", group] => small_host(Path::new(group)),
        _ => return false,
    }
    true
}

/// How long somebody stays who is to be looked at, or to be killed.
fn time(milliseconds: &str) -> Duration {
    Duration::from_millis(milliseconds.parse().expect("a number"))
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout is open");
}

fn nameless_file() -> fs::File {
    // SAFETY: makes a descriptor, or does not.
    let fd = unsafe { libc::memfd_create(c"hidden".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor is new.
    fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes memory that no process has mapped, a megabyte at a time, and stays for a while.
fn hide(kind: &str, megabytes: usize, stay: Duration) {
    let mut held = Vec::new();
    let megabyte = vec![1_u8; MIB as usize];
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors.
    unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr()) };
    let one = nameless_file();
    for _ in 0..megabytes {
        match kind {
            "file" => (&one).write_all(&megabyte).expect("a write"),
            "in-flight" => {
                let mut file = nameless_file();
                file.write_all(&megabyte).expect("a write");
                send(ends[0], file.as_raw_fd());
            }
            "segment" => held.push(segment(MIB as usize)),
            "anonymous" => held.push(write_in_child(MIB as usize)),
            other => panic!("{other}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(stay);
    say(&format!("hid {}", held.len()));
}

/// Shared memory that a child wrote to, which has ended; of what is mapped here, only a page is left.
fn write_in_child(bytes: usize) -> i32 {
    // SAFETY: the mapping is as large as what is written to it; the child does nothing else.
    unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let write = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(std::ptr::null_mut(), bytes, write, flags, -1, 0);
        if at == libc::MAP_FAILED {
            say("refused");
            libc::_exit(3);
        }
        let child = libc::fork();
        if child == 0 {
            at.cast::<u8>().write_bytes(1, bytes);
            libc::_exit(0);
        }
        libc::waitpid(child, std::ptr::null_mut(), 0);
        libc::munmap(at.byte_add(4096), bytes - 4096);
        child
    }
}

/// A segment that was written to, and that nobody has attached any more.
fn segment(bytes: usize) -> i32 {
    // SAFETY: the segment is as large as what is written to it.
    unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, bytes, 0o600 | libc::IPC_CREAT);
        assert!(id >= 0, "{}", std::io::Error::last_os_error());
        let at = libc::shmat(id, std::ptr::null(), 0);
        at.cast::<u8>().write_bytes(1, bytes);
        libc::shmdt(at);
        id
    }
}

/// Sends a descriptor to somebody who never looks.
fn send(to: i32, fd: i32) {
    let mut byte = [0_u8];
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = [0_u64; 4];
    // SAFETY: the message points to live locals, and its control part is large enough for one
    // descriptor.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(fd);
        libc::sendmsg(to, &raw const message, libc::MSG_DONTWAIT);
    }
}

fn hidden_memory_is_limited() {
    let world = World::new();
    let sandbox = armed(&world);
    // A queue takes few messages, so that descriptors under way are large.
    for (kind, too_much) in [("file", "300"), ("segment", "300")] {
        let hide = |megabytes: &str, stay: &str| {
            let hidden = command(&["/attack", "__hide", kind, megabytes, stay]);
            limited(hidden, memory(64 * MIB))
        };
        let (outcome, limits) = run_limited(&sandbox, &hide(too_much, LONG));
        assert_eq!(
            outcome.status(),
            ExitStatus::Signal(libc::SIGKILL),
            "{kind}"
        );
        assert_eq!(cause(&outcome), Some(limits[0]), "{kind}");
        assert_eq!(limits[0].limit, Limit::Memory);
        let (outcome, _) = run_limited(&sandbox, &hide("20", SHORT));
        assert_eq!(cause(&outcome), None, "{kind}: {}", outcome.complaint());
        assert!(
            outcome.text().starts_with("hid "),
            "{}",
            outcome.complaint()
        );
    }
    let anonymous = |megabytes: &str, stay: &str| {
        let hidden = command(&["/attack", "__hide", "anonymous", megabytes, stay]);
        limited(hidden, memory(64 * MIB))
    };
    // Refused where it cannot be counted, else killed.
    let (outcome, limits) = run_limited(&sandbox, &anonymous("300", LONG));
    let refused = outcome.text() == "refused\n" && outcome.status() == ExitStatus::Code(3);
    assert!(
        cause(&outcome) == Some(limits[0]) || refused,
        "{:?}",
        outcome.last()
    );
    let (outcome, _) = run_limited(&sandbox, &anonymous("20", SHORT));
    assert_eq!(outcome.text(), "hid 20\n", "{}", outcome.complaint());
    let zeros = shell("head -c 5000 /dev/zero | wc -c; test -c /dev/zero && echo device");
    assert_eq!(run(&sandbox, &zeros).text(), "5000\ndevice\n");
    let mapped = run(&sandbox, &command(&["/attack", "__map_zero"]));
    assert_eq!(
        mapped.text(),
        if is_root() { "mapped\n" } else { "refused\n" }
    );
    let under_way = limited(
        command(&["/attack", "__hide", "in-flight", "9", LONG]),
        memory(4 * MIB),
    );
    let (outcome, limits) = run_limited(&sandbox, &under_way);
    assert_eq!(cause(&outcome), Some(limits[0]), "{}", outcome.text());
}

/// Maps the device of zeros to be shared, which is memory.
fn map_zero() {
    let mut options = fs::File::options();
    let device = options.read(true).write(true).open("/dev/zero");
    let device = device.expect("a device");
    // SAFETY: a fresh mapping, which nobody touches.
    let at = unsafe {
        let write = libc::PROT_READ | libc::PROT_WRITE;
        let (none, shared) = (std::ptr::null_mut(), libc::MAP_SHARED);
        libc::mmap(none, 4096, write, shared, device.as_raw_fd(), 0)
    };
    say(if at == libc::MAP_FAILED {
        "refused"
    } else {
        "mapped"
    });
}

/// Uses a nameless file in the usual ways.
fn nameless() {
    let mut file = nameless_file();
    file.write_all(b"#!/bin/sh\necho executed\n")
        .expect("a write");
    file.set_len(1 << 20).expect("another size");
    let bytes = 1 << 20;
    // SAFETY: the file is as large as the mapping.
    let first = unsafe {
        let shared = libc::MAP_SHARED;
        let read = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            read,
            shared,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        at.cast::<u8>().read()
    };
    // SAFETY: looks at flags.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFD) };
    say(&format!("{first} {flags}"));
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: clears a flag, so that the interpreter can open it.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) };
    let read_only = fs::File::open(&path).expect("it opens again");
    drop(file);
    let path = format!("/proc/self/fd/{}", read_only.as_raw_fd());
    say(&String::from_utf8_lossy(
        &fs::read(path).expect("content")[..9],
    ));
}

fn nameless_files_work() {
    let world = World::new();
    let sandbox = armed(&world);
    let outcome = run(&sandbox, &command(&["/attack", "__nameless"]));
    assert_eq!(
        outcome.text(),
        "35 1\n#!/bin/sh\n",
        "{}",
        outcome.complaint()
    );
}

/// Maps a file of `/dev/shm`, writes to all of it, and stays for a while.
fn map_shared(megabytes: usize, stay: Duration) {
    let bytes = megabytes * MIB as usize;
    let mut options = fs::File::options();
    let file = options.read(true).write(true).create(true).truncate(true);
    let file = file.open("/dev/shm/mapped").expect("a file");
    file.set_len(bytes as u64).expect("a size");
    // SAFETY: the file is as large as the mapping.
    unsafe {
        let shared = libc::MAP_SHARED;
        let write = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            write,
            shared,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        at.cast::<u8>().write_bytes(1, bytes);
    }
    std::thread::sleep(stay);
    say("mapped");
}

fn shared_memory_is_counted_once() {
    let world = World::new();
    let sandbox = armed(&world);
    let map = |megabytes: &str, stay: &str| {
        let command = command(&["/attack", "__map_shared", megabytes, stay]);
        limited(command, memory(100 * MIB))
    };
    let (outcome, _) = run_limited(&sandbox, &map("70", SHORT));
    assert_eq!(outcome.text(), "mapped\n", "{:?}", outcome.last());
    let (outcome, limits) = run_limited(&sandbox, &map("150", LONG));
    assert_eq!(cause(&outcome), Some(limits[0]));
}

/// What was in memory when a command starts is not its own, but once it is gone it does not make room for more.
fn memory_freed_by_others_is_counted() {
    let world = World::new();
    let sandbox = armed(&world);
    // Keeps what the next command leaves.
    let other = start(&sandbox, &shell("sleep 60"));
    let outcome = run(&sandbox, &shell("head -c 70M /dev/zero > /dev/shm/left"));
    assert_eq!(outcome.complaint(), "");
    let script = format!("rm /dev/shm/left && sleep 1 && exec /attack __map_shared 150 {LONG}");
    let (outcome, limits) = run_limited(&sandbox, &limited(shell(&script), memory(100 * MIB)));
    assert_eq!(cause(&outcome), Some(limits[0]), "{}", outcome.text());
    other.running.kill().expect("a kill");
    other.finish();
}

/// Even if it is sent at the moment at which the end of the one before is reported.
fn the_next_command_finds_nothing() {
    let world = World::new();
    let sandbox = armed(&world);
    let script = "ls -A /dev/shm | wc -l; tail -n +2 /proc/sysvipc/shm | wc -l; \
                  echo x > /dev/shm/x; exec /attack __leave";
    for round in 0..40 {
        let outcome = run(&sandbox, &shell(script));
        let found = outcome.text();
        assert_eq!(found, "0\n0\nleft\n", "{round}: {}", outcome.complaint());
    }
}

/// Leaves one of everything that outlives a process.
fn leave() {
    segment(4096);
    // SAFETY: operations on numbers and a C string.
    unsafe {
        assert!(libc::semget(libc::IPC_PRIVATE, 2, 0o600 | libc::IPC_CREAT) >= 0);
        assert!(libc::msgget(libc::IPC_PRIVATE, 0o600 | libc::IPC_CREAT) >= 0);
        let flags = libc::O_CREAT | libc::O_RDWR | libc::O_EXCL;
        let none = std::ptr::null_mut::<libc::mq_attr>();
        let queue = libc::mq_open(c"/left".as_ptr(), flags, 0o600, none);
        assert!(queue >= 0, "{}", std::io::Error::last_os_error());
    }
    say("left");
}

fn nothing_in_memory_outlives_commands() {
    let world = World::new();
    let sandbox = armed(&world);
    let deep = "/attack __leave; cd /dev/shm && for i in $(seq 300); do mkdir -p d/e && cd d && \
                echo x > f; done; mkdir /dev/shm/closed; echo y > /dev/shm/closed/z; \
                ln -s / /dev/shm/link; mkfifo /dev/shm/pipe; chmod 0 /dev/shm/closed /dev/shm; \
                echo made";
    let other = start(&sandbox, &shell("sleep 30"));
    let outcome = run(&sandbox, &shell(deep));
    assert_eq!(outcome.text(), "left\nmade\n", "{}", outcome.complaint());
    let look = "for t in shm sem msg; do tail -n +2 /proc/sysvipc/$t | wc -l; done; \
                ls -A /dev/shm | wc -l; /attack __leave";
    // Another command of the vault may use what it left.
    let outcome = run(
        &sandbox,
        &shell("for t in shm sem msg; do tail -n +2 /proc/sysvipc/$t | wc -l; done"),
    );
    assert_eq!(outcome.text(), "1\n1\n1\n", "{}", outcome.complaint());
    other.running.kill().expect("a kill");
    other.finish();
    eventually("the last one is gone", || {
        sandbox.processes().is_ok_and(|count| count == 0)
    });
    // The same queue can be made anew only if the old one has gone.
    let outcome = run(&sandbox, &shell(look));
    assert_eq!(
        outcome.text(),
        "0\n0\n0\n0\nleft\n",
        "{}",
        outcome.complaint()
    );
}

fn there_are_defaults() {
    let world = World::new();
    let sandbox = world.open();
    let defaults = Defaults::of_this_host();
    let started = start(
        &sandbox,
        &shell("ulimit -Hn; grep 'Max processes' /proc/self/limits"),
    );
    assert!(started.running.limits().is_empty());
    let held = started.running.default_limits().to_vec();
    let limits: Vec<_> = held.iter().map(|held| held.limit).collect();
    assert_eq!(limits, [Limit::Memory, Limit::Pids, Limit::OpenFiles]);
    assert!(held[0].by == Mechanism::Poll || is_root(), "{held:?}");
    assert!(!is_root() || held[0].by != Mechanism::Poll, "{held:?}");
    let text = started.finish().text();
    assert!(
        text.starts_with(&format!("{}\n", defaults.nofile)),
        "{text}"
    );
    assert!(text.contains(&format!(" {} ", defaults.pids)), "{text}");
    let lifted = Limits {
        memory_bytes: Some(UNLIMITED),
        pids: Some(UNLIMITED_COUNT),
        nofile: Some(UNLIMITED_COUNT),
        ..Limits::default()
    };
    let started = start(
        &sandbox,
        &limited(shell("cat /proc/self/cgroup /proc/self/limits"), lifted),
    );
    assert!(started.running.default_limits().is_empty());
    assert!(started.running.limits().is_empty());
    let text = started.finish().text();
    assert!(!text.contains("avfs-all-"), "{text}");
    let processes = text
        .lines()
        .find_map(|line| line.strip_prefix("Max processes"));
    let processes = processes.and_then(|line| line.split_whitespace().next()?.parse().ok());
    assert!(
        processes.is_some_and(|count: u32| count > defaults.pids),
        "{text}"
    );
}

/// The control group of this process that limits memory.
fn memory_group() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own
        .lines()
        .find_map(|line| line.split_once(":memory:"))?
        .1
        .to_owned();
    Some(Path::new("/sys/fs/cgroup/memory").join(path.trim_start_matches('/')))
}

/// On a host with little memory, a command without limits is ended and nobody else.
fn memory_has_a_default() {
    // Only a control group makes a host small.
    let Some(group) = memory_group().filter(|_| is_root()) else {
        return;
    };
    let group = group.join(format!("avfs-test-{}", std::process::id()));
    fs::create_dir(&group).expect("a group");
    fs::write(group.join("memory.limit_in_bytes"), (400 * MIB).to_string()).expect("a limit");
    let status = std::process::Command::new(own_binary())
        .args([Path::new("__small_host"), &group])
        .status();
    eventually("the group is empty", || fs::remove_dir(&group).is_ok());
    assert!(status.expect("it runs").success());
}

fn small_host(group: &Path) {
    fs::write(group.join("cgroup.procs"), "0").expect("a process in its group");
    assert_eq!(Defaults::of_this_host().memory_bytes, 300 * MIB);
    let world = World::new();
    let sandbox = armed(&world);
    let mut others: Vec<_> = (0..2)
        .map(|_| start(&sandbox, &shell("sleep 5; echo lived")))
        .collect();
    let outcome = run(&sandbox, &command(&["/attack", "__eat", "600"]));
    assert_eq!(outcome.status(), ExitStatus::Signal(libc::SIGKILL));
    let held = cause(&outcome).expect("a cause");
    assert_eq!(held.limit, Limit::Memory);
    let within = limited(command(&["/attack", "__eat", "20"]), memory(64 * MIB));
    assert_eq!(run(&sandbox, &within).text(), "ate 20\n");
    while let Some(other) = others.pop() {
        assert_eq!(other.finish().text(), "lived\n");
    }
}
