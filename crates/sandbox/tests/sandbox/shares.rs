//! What a host or its user has only so many of is left to others, and our own processes are left
//! alone.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::time::Duration;

use avfs_sandbox::{Event, ExitStatus, Sandbox, WindowSize};

use crate::Test;
use crate::attacks::armed;
use crate::world::{
    Started, World, command, events, eventually, next_event, own_binary, run, shell, start,
};

pub const TESTS: &[Test] = &[
    ("inotify_is_left_to_others", inotify_is_left_to_others),
    (
        "process_ids_are_left_to_others",
        process_ids_are_left_to_others,
    ),
    ("commands_die_first", commands_die_first),
    (
        "limits_of_a_process_are_there",
        limits_of_a_process_are_there,
    ),
    ("a_terminal_is_its_execs_own", a_terminal_is_its_execs_own),
    (
        "our_processes_are_not_rescheduled",
        our_processes_are_not_rescheduled,
    ),
    ("own_processes_are_scheduled", own_processes_are_scheduled),
];

/// The most processes of the user in the test of process ids.
const PROCESSES: u64 = 4000;

/// Plays the part that the arguments name; false when it is none of these.
pub fn play(arguments: &[String]) -> bool {
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["__inotify", most] => inotify(most.parse().expect("a number")),
        ["__few_processes"] => few_processes(),
        ["__reschedule", pid] => reschedule(pid.parse().expect("a number")),
        _ => return false,
    }
    true
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout is open");
}

/// Says how many inotify instances it could make, and keeps them.
fn inotify(most: usize) {
    let mut held = Vec::new();
    while held.len() < most {
        // SAFETY: makes a descriptor, or does not.
        let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC) };
        if fd < 0 {
            break;
        }
        // SAFETY: the descriptor is new.
        held.push(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    say(&held.len().to_string());
    std::thread::sleep(Duration::from_secs(60));
}

/// The first line that a command says.
fn first_line(started: &mut Started) -> String {
    let mut line = String::new();
    let mut reader = BufReader::new(&mut started.stdout);
    reader.read_line(&mut line).expect("stdout is readable");
    line.trim().to_owned()
}

fn inotify_is_left_to_others() {
    let world = World::new();
    let sandboxes = [armed(&world), world.open_beside()];
    let users = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").expect("a limit");
    let users: u64 = users.trim().parse().expect("a number");
    let mut taking = sandboxes
        .each_ref()
        .map(|sandbox| start(sandbox, &command(&["/attack", "__inotify", "100000"])));
    let took = taking.each_mut().map(|started| {
        let line = first_line(started);
        line.parse::<u64>().expect("a number")
    });
    assert!(took[0] <= users / 2, "{took:?} of {users}");
    // SAFETY: makes a descriptor, or does not.
    let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC) };
    assert!(fd >= 0, "none is left of {users}: {took:?} are taken");
    // SAFETY: the descriptor is new.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    assert!(
        took.iter().sum::<u64>() <= users - users / 4 || is_root(),
        "{took:?}"
    );
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn process_ids_are_left_to_others() {
    let mut daemon = std::process::Command::new(own_binary());
    daemon.arg("__few_processes");
    // SAFETY: setrlimit may be called between fork and exec.
    unsafe {
        daemon.pre_exec(|| {
            let most = libc::rlimit {
                rlim_cur: PROCESSES,
                rlim_max: PROCESSES,
            };
            match libc::setrlimit(libc::RLIMIT_NPROC, &raw const most) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    assert!(daemon.status().expect("it runs").success());
}

/// Several sandboxes whose commands fork as often as they can.
fn few_processes() {
    let world = World::new();
    fs::copy(own_binary(), world.path("lower/attack")).expect("a copy of this program");
    let open = |name: usize| {
        let plan = world.plan_beside(&name.to_string());
        world
            .keeper
            .open_sandbox(&plan, Vec::new())
            .expect("a sandbox")
    };
    let sandboxes: Vec<Sandbox> = (0..6).map(open).collect();
    // All but the first take less than they could, and none gives anything back.
    let bomb = "/attack __fork 100000; sleep 60";
    let mut bombs: Vec<_> = sandboxes
        .iter()
        .take(5)
        .map(|sandbox| start(sandbox, &shell(bomb)))
        .collect();
    let counts: Vec<u64> = bombs
        .iter_mut()
        .map(|bomb| first_line(bomb).parse().expect("a number"))
        .collect();
    let (all, each) = (PROCESSES / 2, PROCESSES / 8);
    assert!(counts.iter().all(|count| *count <= each), "{counts:?}");
    assert!(counts.iter().sum::<u64>() <= all, "{counts:?}");
    assert!(counts[0] > 20, "{counts:?}");
    // The host's user still has processes.
    let other = std::process::Command::new("/bin/true").status();
    assert!(other.expect("a process").success());
}

fn commands_die_first() {
    let world = World::new();
    let sandbox = world.open();
    let own = fs::read_to_string("/proc/self/oom_score_adj").expect("a score");
    let own: i32 = own.trim().parse().expect("a number");
    let outcome = run(&sandbox, &shell("cat /proc/self/oom_score_adj"));
    assert_eq!(outcome.text().trim(), (own + 500).min(1000).to_string());
}

fn limits_of_a_process_are_there() {
    let world = World::new();
    let sandbox = world.open();
    let text = run(&sandbox, &shell("cat /proc/self/limits")).text();
    let numbers = |name: &str| -> [u64; 2] {
        let rest = text.lines().find_map(|line| line.strip_prefix(name));
        let mut words = rest.expect("a limit").split_whitespace();
        [(); 2].map(|()| {
            let word = words.next().expect("a word");
            word.parse().expect("a number")
        })
    };
    let [soft, files] = numbers("Max open files");
    let [_, processes] = numbers("Max processes");
    let pid_max = fs::read_to_string("/proc/sys/kernel/pid_max").expect("a limit");
    let pid_max: u64 = pid_max.trim().parse().expect("a number");
    assert!(files <= 65_536 && soft <= files, "{text}");
    assert!(
        processes <= (pid_max / 8).min(16_384),
        "{text} of {pid_max}"
    );
}

fn at_terminal(text: &str) -> avfs_sandbox::Command {
    let size = WindowSize {
        rows: 24,
        columns: 80,
    };
    avfs_sandbox::Command {
        terminal: Some(size),
        ..shell(text)
    }
}

/// Everything that comes out of a terminal until its last program has ended.
fn read_terminal(outer: OwnedFd) -> String {
    let flags = rustix::fs::fcntl_getfl(&outer).expect("flags");
    let blocking = flags & !rustix::fs::OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(&outer, blocking).expect("flags");
    let mut bytes = Vec::new();
    // It ends with EIO.
    let _ = fs::File::from(outer).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn a_terminal_is_its_execs_own() {
    let world = World::new();
    let sandbox = world.open();
    let own = "exec 3<>/tmp/go; tty; test -c \"$(tty)\" && echo is there; echo err > /dev/stderr; \
               echo ctty > /dev/tty; echo opened > /proc/self/fd/1; cat <&3; echo over";
    run(&sandbox, &shell("mkfifo /tmp/go"));
    let first = start(&sandbox, &at_terminal(own));
    assert!(matches!(next_event(&first.running), Event::Started { .. }));
    let outer = first.running.take_terminal().expect("a terminal");
    eventually("it waits", || sandbox.processes().expect("a count") == 2);
    let others = "for t in /dev/terminals/* /dev/pts/* /proc/[0-9]*/fd/[012]; do case $t in \
                  */ptmx|/proc/self/*|/proc/$$/*) continue;; esac; \
                  chmod 666 $t 2>/dev/null && echo chmod $t; \
                  (echo forged > $t) 2>/dev/null && echo wrote $t; \
                  (: < $t) 2>/dev/null && echo read $t; done; ls /dev/terminals; echo done";
    let second = run(&sandbox, &shell(others));
    let lines: Vec<String> = second.text().lines().map(str::to_owned).collect();
    assert_eq!(lines, ["0", "ptmx", "done"], "{}", second.complaint());
    run(&sandbox, &shell("echo > /dev/null; echo end > /tmp/go"));
    first.running.signal(libc::SIGHUP).expect("a signal");
    let text = read_terminal(outer);
    for word in ["/dev/terminals/0\r\n", "is there", "err", "ctty", "opened"] {
        assert!(text.contains(word), "{word}: {text:?}");
    }
    assert!(!text.contains("forged"), "{text:?}");
    events(&first.running);
}

/// Tries to change how a process runs, in every way there is; says which worked.
fn reschedule(pid: i32) {
    let zero = [0_u64; 8];
    let mut attr = [0_u32; 14];
    attr[0] = 56;
    // SCHED_IDLE
    attr[1] = 5;
    let one: u64 = 1;
    let word = i64::from(pid);
    let at = |pointer: *const u8| pointer as i64;
    let calls: [(&str, i64, [i64; 3]); 8] = [
        ("setpriority", libc::SYS_setpriority, [0, word, 19]),
        ("setpriority of all", libc::SYS_setpriority, [2, 1000, 19]),
        ("ioprio_set", libc::SYS_ioprio_set, [1, word, 3 << 13]),
        (
            "ioprio_set of all",
            libc::SYS_ioprio_set,
            [3, 1000, 3 << 13],
        ),
        (
            "sched_setscheduler",
            libc::SYS_sched_setscheduler,
            [word, 5, at(zero.as_ptr().cast())],
        ),
        (
            "sched_setparam",
            libc::SYS_sched_setparam,
            [word, at(zero.as_ptr().cast()), 0],
        ),
        (
            "sched_setattr",
            libc::SYS_sched_setattr,
            [word, at(attr.as_ptr().cast()), 0],
        ),
        (
            "sched_setaffinity",
            libc::SYS_sched_setaffinity,
            [word, 8, at((&raw const one).cast())],
        ),
    ];
    for (name, number, [a, b, c]) in calls {
        // SAFETY: pointers are to locals that are as large as the calls want them.
        if unsafe { libc::syscall(number, a, b, c) } >= 0 {
            say(name);
        }
    }
    more_ways(pid);
    say("tried");
}

/// Ways that have always been closed, and must stay so.
fn more_ways(pid: i32) {
    // SAFETY: operations on numbers, or on memory that is as large as they want it.
    unsafe {
        let pidfd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if pidfd >= 0 && libc::syscall(libc::SYS_pidfd_getfd, pidfd, 0, 0) >= 0 {
            say("pidfd_getfd");
        }
        if pidfd >= 0 && libc::syscall(libc::SYS_pidfd_send_signal, pidfd, 0, 0, 0) >= 0 {
            say("pidfd_send_signal");
        }
        let own = libc::getpid();
        if libc::syscall(libc::SYS_kcmp, own, pid, 0, 0, 0) >= 0 {
            say("kcmp");
        }
        let range = libc::iovec {
            iov_base: std::ptr::without_provenance_mut(4096),
            iov_len: 4096,
        };
        let cold = libc::MADV_COLD;
        if libc::syscall(
            libc::SYS_process_madvise,
            pidfd,
            &raw const range,
            1,
            cold,
            0,
        ) >= 0
        {
            say("process_madvise");
        }
        if libc::syscall(libc::SYS_migrate_pages, pid, 0, 0, 0) >= 0 {
            say("migrate_pages");
        }
        if libc::syscall(libc::SYS_move_pages, pid, 0, 0, 0, 0, 0) >= 0 {
            say("move_pages");
        }
        let limit = libc::rlimit64 {
            rlim_cur: 10,
            rlim_max: 10,
        };
        if libc::syscall(libc::SYS_prlimit64, pid, 7, &raw const limit, 0) >= 0 {
            say("prlimit64");
        }
    }
}

fn our_processes_are_not_rescheduled() {
    let world = World::new();
    let _armed = armed(&world);
    let mut read_only = world.plan_beside("read-only");
    read_only.readonly = true;
    let read_only = world.keeper.open_sandbox(&read_only, Vec::new());
    for sandbox in [&_armed, &read_only.expect("a sandbox")] {
        let other = start(sandbox, &shell("sleep 30"));
        assert!(matches!(next_event(&other.running), Event::Started { .. }));
        // Agent, mover, own supervisor, the other exec's supervisor.
        let all = "for p in 1 $(for d in /proc/[0-9]*; do read -r c < $d/comm; \
                   case $c in avfs-*) echo ${d#/proc/};; esac; done); do \
                   echo is $(cat /proc/$p/comm) $(/attack __reschedule $p); done";
        let outcome = run(sandbox, &shell(all));
        let text = outcome.text();
        for name in ["avfs-agent", "avfs-mover", "avfs-supervisor"] {
            assert!(text.contains(&format!("is {name} tried")), "{name}: {text}");
        }
        let through = text.lines().filter(|line| !line.ends_with(" tried"));
        assert_eq!(through.collect::<Vec<_>>(), Vec::<&str>::new(), "{text}");
        let worked = text.lines().filter(|line| line.split(' ').count() != 3);
        assert_eq!(worked.collect::<Vec<_>>(), Vec::<&str>::new(), "{text}");
        other.running.kill().expect("a kill");
        other.finish();
    }
}

fn own_processes_are_scheduled() {
    let world = World::new();
    let sandbox = armed(&world);
    let tools = "set -e; sleep 30 & nice -n 3 true; renice -n 5 -p $$ > /dev/null; \
                 renice -n 6 -p $! > /dev/null; taskset -p 1 $! > /dev/null; taskset 1 true; \
                 chrt -b -p 0 $!; ionice -c 3 -p $!; cut -d' ' -f19 /proc/$!/stat; kill $!; echo all";
    let outcome = run(&sandbox, &shell(tools));
    assert_eq!(outcome.text(), "6\nall\n", "{}", outcome.complaint());
    assert_eq!(outcome.status(), ExitStatus::Code(0));
}
