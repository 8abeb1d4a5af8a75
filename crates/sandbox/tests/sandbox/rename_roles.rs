//! What the tests of renames run inside a sandbox; each prints what the kernel answered.

use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::time::Instant;

use landlock::{ABI, Access, AccessFs, Ruleset, RulesetAttr};
use rustix::fs::{CWD, Mode, OFlags, open, renameat};

pub const NOREPLACE: u32 = libc::RENAME_NOREPLACE;
pub const EXCHANGE: u32 = libc::RENAME_EXCHANGE;

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout is open");
}

/// Makes the call that a program without special wishes makes.
fn rename(from: &str, to: &str, flags: u32) -> i32 {
    let (from, to) = (CString::new(from), CString::new(to));
    let (from, to) = (from.expect("a path"), to.expect("a path"));
    // SAFETY: both paths are C strings.
    let done = unsafe {
        if flags == 0 {
            libc::rename(from.as_ptr(), to.as_ptr())
        } else {
            let here = libc::AT_FDCWD;
            libc::renameat2(here, from.as_ptr(), here, to.as_ptr(), flags)
        }
    };
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if done == 0 { 0 } else { errno }
}

/// Plays the part that the arguments name; false when it is none of these.
pub fn play(arguments: &[String]) -> bool {
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["__rename", from, to, flags] => {
            say(&rename(from, to, flags.parse().expect("flags")).to_string());
        }
        ["__rename_at", dir, from, to] => rename_at(dir, from, to),
        ["__rename_race"] => race(),
        ["__exchange_amid", disturbance] => exchange_amid(disturbance),
        ["__disturb", disturbance] => disturb_all(disturbance),
        ["__rename_alarmed", from, to] => alarmed(from, to),
        ["__rename_fenced", from, to] => fenced(from, to),
        ["__rename_often", from, to] => often(from, to),
        ["__reach", pid] => reach(pid.parse().expect("a pid")),
        _ => return false,
    }
    true
}

fn rename_at(dir: &str, from: &str, to: &str) {
    let dir = open(dir, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).expect("a directory");
    std::env::set_current_dir("/tmp").expect("a directory");
    let done = renameat(&dir, from, &dir, to);
    say(&done
        .map_or_else(|errno| errno.raw_os_error(), |()| 0)
        .to_string());
}

/// Threads that rename a directory of their own often, and one that all of them want.
fn race() {
    let barrier = Barrier::new(8);
    let won: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    let won = rename("/prize", &format!("/won{number}"), 0) == 0;
                    for turn in 0..if number == 7 { 0 } else { 40 } {
                        let name = |turn| match turn {
                            0 => format!("/own{number}"),
                            turn => format!("/own{number}-{turn}"),
                        };
                        assert_eq!(rename(&name(turn), &name(turn + 1), 0), 0);
                    }
                    u32::from(won)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    say(&format!("{won} of 8 won"));
}

extern "C" fn nothing(_: libc::c_int) {}

/// Renames while a signal with a handler comes every two milliseconds.
fn alarmed(from: &str, to: &str) {
    let often = libc::timeval {
        tv_sec: 0,
        tv_usec: 2000,
    };
    let timer = libc::itimerval {
        it_interval: often,
        it_value: often,
    };
    // SAFETY: the handler does nothing, and the timer is a valid one.
    unsafe {
        libc::signal(libc::SIGALRM, nothing as *const () as libc::sighandler_t);
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    say(&rename(from, to, 0).to_string());
}

/// Renames what it has forbidden itself to touch.
fn fenced(from: &str, to: &str) {
    let ruleset = Ruleset::default().handle_access(AccessFs::from_all(ABI::V3));
    let ruleset = ruleset.and_then(Ruleset::create).expect("a ruleset");
    ruleset.restrict_self().expect("a domain");
    say(&rename(from, to, 0).to_string());
}

/// Renames one file to and fro, and says what it took each time.
fn often(from: &str, to: &str) {
    const TIMES: u32 = 20_000;
    std::fs::write(from, "x").expect("a file");
    let began = Instant::now();
    for _ in 0..TIMES / 2 {
        renameat(CWD, from, CWD, to).expect("a rename");
        renameat(CWD, to, CWD, from).expect("a rename");
    }
    say(&format!("{:.1?}", began.elapsed() / TIMES));
}

/// Tries to get at another process; prints what each call returned.
fn reach(pid: i32) {
    let mut byte = 0_u8;
    let here = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let there = libc::iovec {
        iov_base: nothing as *mut libc::c_void,
        iov_len: 1,
    };
    // SAFETY: what would be written here is one byte that nobody reads.
    let results = unsafe {
        let none = std::ptr::null_mut::<libc::c_void>();
        [
            ("attach", libc::ptrace(libc::PTRACE_ATTACH, pid, none, none)),
            ("seize", libc::ptrace(libc::PTRACE_SEIZE, pid, none, none)),
            (
                "read",
                libc::process_vm_readv(pid, &here, 1, &there, 1, 0) as i64,
            ),
            (
                "write",
                libc::process_vm_writev(pid, &here, 1, &there, 1, 0) as i64,
            ),
            (
                "limit",
                libc::syscall(libc::SYS_prlimit64, pid, 0, none, none),
            ),
            ("getfd", getfd(pid)),
        ]
    };
    for (name, result) in results {
        say(&format!("{name} {result}"));
    }
}

/// Takes a descriptor out of another process.
fn getfd(pid: i32) -> i64 {
    // SAFETY: operations on numbers.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        libc::syscall(libc::SYS_pidfd_getfd, process, 3, 0)
    }
}

/// Kinds of disturbance, each with the stored directories that are its own.
const DISTURBANCES: [&str; 5] = ["make", "swap", "remove", "close", "fenced"];

fn pairs_of(disturbance: &str) -> impl Iterator<Item = (String, String)> {
    let kind = DISTURBANCES.iter().position(|kind| *kind == disturbance);
    let first = 4 * kind.expect("a kind") + 2;
    let beside = if disturbance == "fenced" { "up" } else { "in" };
    (first..first + 4).map(move |pair| (format!("/in/a{pair}"), format!("/{beside}/b{pair}")))
}

/// Exchanges stored directories while others do something to the same names all the time; says how often that went
/// well.
fn exchange_amid(disturbance: &str) {
    for (_, other) in pairs_of(disturbance).filter(|_| disturbance == "fenced") {
        fs::create_dir_all(&other).expect("a directory");
        fs::write(format!("{other}/f"), "new").expect("a file");
    }
    fs::write("/tmp/ready", "").expect("a file");
    while !fs::exists("/tmp/disturbed").expect("an answer") {
        std::thread::yield_now();
    }
    let (mut done, mut failed) = (0, 0);
    for (one, other) in pairs_of(disturbance) {
        match rename(&one, &other, EXCHANGE) {
            0 => done += 1,
            _ => failed += 1,
        }
    }
    fs::write("/tmp/exchanged", "").expect("a file");
    say(&format!("{done} done, {failed} not"));
}

/// Does something to the names that another command exchanges, until it has.
fn disturb_all(disturbance: &str) {
    if disturbance == "fenced" {
        fence();
    }
    while !fs::exists("/tmp/ready").expect("an answer") {
        std::thread::yield_now();
    }
    fs::write("/tmp/disturbed", "").expect("a file");
    let mut turn = 0;
    while !fs::exists("/tmp/exchanged").expect("an answer") {
        turn += 1;
        for (one, other) in pairs_of(disturbance) {
            disturb(disturbance, &one, &other, turn);
        }
    }
}

/// One step of a disturbance, which may well fail.
fn disturb(kind: &str, one: &str, other: &str, turn: u32) {
    match kind {
        "make" => {
            let _ = fs::write(format!("{one}/new{turn}"), "new");
            let _ = fs::write(format!("{other}/sub/new{turn}"), "new");
        }
        "swap" => {
            let _ = fs::remove_dir(one).or_else(|_| fs::write(one, "a file"));
            let _ = std::os::unix::fs::symlink("/in", other);
            let _ = fs::remove_file(one).or_else(|_| fs::remove_file(other));
            let _ = fs::create_dir(one);
        }
        "remove" => {
            let _ = fs::remove_file(format!("{one}/sub/{}", turn % 30));
            let _ = fs::remove_dir(format!("{one}/sub"));
            let _ = fs::remove_dir(one);
        }
        "close" => {
            let mode = |mode| fs::Permissions::from_mode(mode);
            let _ = fs::set_permissions(one, mode(0));
            let _ = fs::set_permissions(format!("{other}/sub"), mode(0));
            let _ = fs::set_permissions("/in", mode(0o500));
            let _ = fs::set_permissions("/in", mode(0o700));
        }
        _ => {
            rename("/up", "/elsewhere", 0);
            rename("/elsewhere", "/up", 0);
        }
    }
}

/// Restricts itself a little, so that its renames are left to the kernel.
fn fence() {
    let ruleset = Ruleset::default().handle_access(AccessFs::MakeSock);
    let ruleset = ruleset.and_then(Ruleset::create).expect("a ruleset");
    ruleset.restrict_self().expect("a domain");
}
