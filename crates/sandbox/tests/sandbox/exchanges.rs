//! Directories that came from the tree change places with anything.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use avfs_sandbox::{EXCHANGE_COPIES, EXCHANGE_ENDS, ExitStatus, Sandbox};

use crate::Test;
use crate::rename_roles::EXCHANGE;
use crate::renames::{fill_with_everything, fill_with_many, filled, is_moving, is_root};
use crate::renames::{good, listing, rename, staging};
use crate::world::{World, command, eventually, run, shell, start};

pub const TESTS: &[Test] = &[
    ("whole_trees_are_exchanged", whole_trees_are_exchanged),
    ("exchanges_with_other_things", exchanges_with_other_things),
    (
        "exchanges_answer_as_everywhere",
        exchanges_answer_as_everywhere,
    ),
    (
        "a_killed_exchange_is_none_or_whole",
        a_killed_exchange_is_none_or_whole,
    ),
    (
        "a_crash_leaves_both_trees_or_their_copies",
        a_crash_leaves_both_trees_or_their_copies,
    ),
    (
        "a_killed_worker_leaves_the_old_or_the_new_and_ends_nobody",
        a_killed_worker_leaves_the_old_or_the_new_and_ends_nobody,
    ),
    (
        "swaps_during_exchanges_end_nobody",
        swaps_during_exchanges_end_nobody,
    ),
    ("no_path_leads_to_copies", no_path_leads_to_copies),
];

fn fill_two(lower: &Path) {
    fill_with_everything(lower);
    fill_with_many(lower);
}

fn whole_trees_are_exchanged() {
    let (_world, sandbox) = filled(fill_two);
    let before = (listing(&sandbox, "/d"), listing(&sandbox, "/big"));
    assert_eq!(rename(&sandbox, "/d", "/big", EXCHANGE), 0);
    assert_eq!(listing(&sandbox, "/d"), before.1);
    assert_eq!(listing(&sandbox, "/big"), before.0);
    let rest = run(&sandbox, &shell("ls -A / | grep moving"));
    assert_eq!(rest.text(), "");
    // They are new directories by now, which the kernel exchanges itself.
    assert_eq!(rename(&sandbox, "/d", "/big", EXCHANGE), 0);
    assert_eq!(listing(&sandbox, "/d"), before.0);
}

fn exchanges_with_other_things() {
    let (_world, sandbox) = filled(|lower| {
        for dir in ["a", "b", "c", "in/deep"] {
            fs::create_dir_all(lower.join(dir)).expect("directories");
            fs::write(lower.join(dir).join("f"), dir).expect("a file");
        }
        fs::write(lower.join("file"), "file").expect("a file");
        symlink("a", lower.join("link")).expect("a link");
    });
    run(
        &sandbox,
        &shell("mkdir /new && echo new > /new/f; ln /file /other"),
    );
    for (one, other) in [
        ("/a", "/file"),
        ("/link", "/b"),
        ("/new", "/c"),
        ("/in/deep", "/a"),
    ] {
        assert_eq!(rename(&sandbox, one, other, EXCHANGE), 0, "{one} {other}");
    }
    let text = "cat /file/f /link/f /new/f /c/f /in/deep /a/f; readlink /b; [ /other -ef /in/deep ] && echo one";
    let seen = run(&sandbox, &shell(text)).text();
    assert_eq!(seen, "abcnew\nfilein/deepa\none\n");
    assert_eq!(
        run(&sandbox, &shell("ls -A / /in | grep moving")).text(),
        ""
    );
}

fn exchanges_answer_as_everywhere() {
    let (_world, sandbox) = filled(|lower| {
        for dir in ["a/sub/deep", "b", "locked/in"] {
            fs::create_dir_all(lower.join(dir)).expect("directories");
        }
    });
    run(&sandbox, &shell("chmod 500 /locked"));
    let cases = [
        ("/a", "/a/sub", libc::EINVAL),
        ("/a/sub", "/a", libc::EINVAL),
        ("/a", "/none", libc::ENOENT),
        ("/none", "/a", libc::ENOENT),
        ("/a", "/usr", libc::EBUSY),
        ("/a", "/tmp", libc::EBUSY),
        ("/a", "/locked/in", libc::EACCES),
        ("/a", "/a", 0),
        ("/a", "/b", 0),
    ];
    for (one, other, errno) in cases {
        assert_eq!(
            rename(&sandbox, one, other, EXCHANGE),
            errno,
            "{one} {other}"
        );
    }
    let found = run(
        &sandbox,
        &shell("ls -d /b/sub/deep /a; ls -A / /a | grep moving"),
    );
    assert_eq!(found.text(), "/a\n/b/sub/deep\n");
}

/// Two stored trees of different sizes.
fn fill_unlike(lower: &Path) {
    for (dir, files) in [("big", 500), ("small", 200)] {
        fs::create_dir(lower.join(dir)).expect("a directory");
        for file in 0..files {
            fs::write(lower.join(format!("{dir}/{file}")), dir).expect("a file");
        }
    }
}

fn count(sandbox: &Sandbox, dir: &str) -> u32 {
    let text = run(sandbox, &shell(&format!("find {dir} | wc -l"))).text();
    text.trim().parse().expect("a number")
}

fn a_killed_exchange_is_none_or_whole() {
    let mut killed = 0;
    for delay in if is_root() { 0..0 } else { 0..3 } {
        let (world, sandbox) = filled(fill_unlike);
        let before = (count(&sandbox, "/big"), count(&sandbox, "/small"));
        let flags = EXCHANGE.to_string();
        let words = ["/attack", "__rename", "/big", "/small", &flags];
        let started = start(&sandbox, &command(&words));
        eventually("it is being copied", || is_moving(&world));
        std::thread::sleep(Duration::from_millis(delay * 40));
        started.running.kill().expect("a kill");
        let outcome = started.finish();
        killed += u32::from(outcome.status() == ExitStatus::Signal(libc::SIGKILL));
        assert!(
            !is_moving(&world),
            "the command has ended, and so has its exchange"
        );
        let after = (count(&sandbox, "/big"), count(&sandbox, "/small"));
        assert!(
            after == before || (after.1, after.0) == before,
            "{after:?} of {before:?}"
        );
    }
    assert!(is_root() || killed > 0, "none was killed in the middle");
}

fn a_crash_leaves_both_trees_or_their_copies() {
    let mut decided = 0;
    for delay in if is_root() { 0..0 } else { 0..5 } {
        let (world, sandbox) = filled(fill_unlike);
        let before = [count(&sandbox, "/big"), count(&sandbox, "/small")];
        let flags = EXCHANGE.to_string();
        let words = ["/attack", "__rename", "/big", "/small", &flags];
        let _exchanging = start(&sandbox, &command(&words));
        eventually("it is being copied", || is_moving(&world));
        if delay > 1 {
            eventually("it is decided, or over", || {
                noted(&world).is_some() || !is_moving(&world)
            });
        }
        std::thread::sleep(Duration::from_millis(delay * 5));
        drop(sandbox);
        let noted = noted(&world);
        let again = world.open();
        let names = ["/big", "/small"].map(|name| count(&again, name));
        // What each name is taken for: its copy, as long as that has not arrived.
        let meant = match &noted {
            None => names,
            Some(at) => [0, 1].map(|end| {
                let copy = at.join(EXCHANGE_COPIES[end].to_str().expect("plain"));
                match copy.exists() {
                    true => count_on_host(&copy),
                    false => names[end],
                }
            }),
        };
        decided += u32::from(noted.is_some());
        let swapped = [before[1], before[0]];
        if noted.is_some() {
            assert_eq!(meant, swapped, "after {delay}");
        } else {
            assert!(
                meant == before || meant == swapped,
                "{meant:?} of {before:?}"
            );
        }
    }
    assert!(
        is_root() || decided > 0,
        "none was caught once it was decided"
    );
}

/// Where an exchange is noted that is decided, as the host sees it.
fn noted(world: &World) -> Option<PathBuf> {
    let entries = fs::read_dir(staging(world)).into_iter().flatten().flatten();
    let decided = |path: &PathBuf| {
        let mut ends = EXCHANGE_ENDS.iter();
        ends.all(|end| {
            let link = path.join(end.to_str().expect("plain"));
            link.symlink_metadata()
                .is_ok_and(|found| found.is_symlink())
        })
    };
    entries.map(|entry| entry.path()).find(decided)
}

/// How many names there are in a tree of the host, its own included.
fn count_on_host(path: &Path) -> u32 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    1 + entries
        .map(|entry| count_on_host(&entry.path()))
        .sum::<u32>()
}

/// The processes of the host whose parent is `pid`.
fn children(pid: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").expect("a /proc").flatten();
    let all = all.map(|entry| entry.path());
    let line = format!("PPid:\t{}", pid.file_name().expect("a pid").display());
    let is_child = |path: &PathBuf| {
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        status.lines().any(|found| found == line)
    };
    all.filter(is_child).collect()
}

/// Kills the mover's worker at once; false when there is none.
fn kill_worker(world: &World) -> bool {
    let named = |path: &PathBuf| fs::read_to_string(path.join("comm")).unwrap_or_default();
    let keeper = Path::new("/proc").join(world.keeper.pid().to_string());
    let agents = children(&keeper).into_iter();
    let below = agents.flat_map(|agent| children(&agent));
    let mut movers = below.filter(|path| named(path) == "avfs-mover\n");
    let worker = movers.next().and_then(|mover| children(&mover).pop());
    let pid = worker.and_then(|path| path.file_name()?.to_str()?.parse().ok());
    let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok()
}

fn a_killed_worker_leaves_the_old_or_the_new_and_ends_nobody() {
    let mut taken_back = 0;
    for delay in if is_root() { 0..0 } else { 0..8 } {
        let (world, sandbox) = filled(fill_unlike);
        let before = (listing(&sandbox, "/big"), listing(&sandbox, "/small"));
        let beside = start(
            &sandbox,
            &shell("until [ -e /tmp/over ]; do sleep 0.01; done"),
        );
        let flags = EXCHANGE.to_string();
        let words = ["/attack", "__rename", "/big", "/small", &flags];
        let exchanging = start(&sandbox, &command(&words));
        eventually("it is being copied", || is_moving(&world));
        if delay > 1 {
            eventually("it is decided, or over", || {
                noted(&world).is_some() || !is_moving(&world)
            });
        }
        std::thread::sleep(Duration::from_millis(delay * 3));
        let killed = kill_worker(&world);
        let answer = exchanging.finish().text();
        let after = (listing(&sandbox, "/big"), listing(&sandbox, "/small"));
        match answer.trim() {
            "0" => assert_eq!((after.1, after.0), before, "after {delay}"),
            answer => {
                assert!(killed, "{answer}");
                assert_eq!(answer.parse(), Ok(libc::EIO));
                assert_eq!(after, before, "after {delay}");
                taken_back += 1;
            }
        }
        eventually("nothing is left of it", || !is_moving(&world));
        let see = "ls -A / | grep -c -e moving -e unexchanged";
        assert_eq!(run(&sandbox, &shell(see)).text(), "0\n");
        fs::write(world.path("scratch/over"), "").expect("a file");
        good(&beside.finish());
    }
    assert!(is_root() || taken_back > 0, "none was killed in the middle");
}

/// Pairs of stored directories to be exchanged while others swap their names.
const PAIRS: u32 = 22;

fn fill_pairs(lower: &Path) {
    for pair in 0..PAIRS {
        for dir in ["a", "b"] {
            let path = lower.join(format!("in/{dir}{pair}/sub"));
            fs::create_dir_all(&path).expect("directories");
            for file in 0..30 {
                fs::write(path.join(file.to_string()), dir).expect("a file");
            }
        }
    }
}

fn swaps_during_exchanges_end_nobody() {
    let (world, sandbox) = filled(fill_pairs);
    let wait = shell("until [ -e /tmp/over ]; do sleep 0.01; done; mv /in/a0 /moved && echo moved");
    let beside = start(&sandbox, &wait);
    for disturbance in ["make", "swap", "remove", "close", "fenced"] {
        for name in ["ready", "disturbed", "exchanged"] {
            let _ = fs::remove_file(world.path("scratch").join(name));
        }
        let disturbing = start(&sandbox, &command(&["/attack", "__disturb", disturbance]));
        let words = ["/attack", "__exchange_amid", disturbance];
        let outcome = run(&sandbox, &command(&words));
        good(&outcome);
        good(&disturbing.finish());
        assert!(sandbox.is_alive(), "{disturbance}");
        crate::say(&format!("    ({disturbance}: {})", outcome.text().trim()));
    }
    eventually("nothing is left of them", || !is_moving(&world));
    fs::write(world.path("scratch/over"), "").expect("a file");
    let outcome = beside.finish();
    good(&outcome);
    assert_eq!(outcome.text(), "moved\n", "the others go on");
}

fn no_path_leads_to_copies() {
    if is_root() {
        return;
    }
    let (world, sandbox) = filled(fill_unlike);
    let flags = EXCHANGE.to_string();
    // Whatever is listed while copies are made and when they are there.
    let look = "touch /tmp/ready; until [ -e /tmp/over ]; do \
                find / -xdev '(' -name staging -o -name to-first -o -name to-second ')' 2> /dev/null; \
                ls -d /proc/staging /proc/1/root/proc/staging /proc/self/root/proc/staging 2> /dev/null; done; \
                echo looked";
    let looking = start(&sandbox, &shell(look));
    eventually("it looks", || world.path("scratch/ready").exists());
    let words = ["/attack", "__rename", "/big", "/small", &flags];
    let exchanging = start(&sandbox, &command(&words));
    eventually("it is being copied", || is_moving(&world));
    assert_eq!(exchanging.finish().text(), "0\n");
    fs::write(world.path("scratch/over"), "").expect("a file");
    assert_eq!(looking.finish().text(), "looked\n");
    assert!(staging(&world).is_dir(), "that is where they were");
}
