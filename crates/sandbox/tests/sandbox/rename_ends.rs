//! Renames that are disturbed or end in their middle: by a signal, a kill, a crash, the death of the mover.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use avfs_sandbox::{Event, ExitStatus, Sandbox};

use crate::Test;
use crate::lives::parent;
use crate::renames::{fill_with_many, filled, good, is_moving, is_root};
use crate::world::{command, eventually, run, shell, start};

pub const TESTS: &[Test] = &[
    (
        "signals_do_not_disturb_a_rename",
        signals_do_not_disturb_a_rename,
    ),
    (
        "a_killed_rename_leaves_one_name",
        a_killed_rename_leaves_one_name,
    ),
    ("a_crash_leaves_a_whole_tree", a_crash_leaves_a_whole_tree),
    (
        "a_dead_mover_takes_its_sandbox",
        a_dead_mover_takes_its_sandbox,
    ),
];

fn signals_do_not_disturb_a_rename() {
    let (_world, sandbox) = filled(fill_with_many);
    let outcome = run(
        &sandbox,
        &command(&["/attack", "__rename_alarmed", "/big", "/moved"]),
    );
    good(&outcome);
    assert_eq!(outcome.text(), "0\n");
    assert_eq!(run(&sandbox, &shell("ls /moved | wc -l")).text(), "41\n");
}

fn a_killed_rename_leaves_one_name() {
    let (world, sandbox) = filled(fill_with_many);
    let count = |dir: &str| {
        let text = run(&sandbox, &shell(&format!("find {dir} | wc -l"))).text();
        text.trim().parse::<u32>().expect("a number")
    };
    let all = count("/big");
    let (mut here, mut there, mut killed) = ("/big", "/moved", 0);
    let moving = || is_moving(&world);
    for _ in 0..if is_root() { 0 } else { 6 } {
        // Once it has been moved it is all in the upper layer, where the kernel renames it.
        if there == "/big" {
            break;
        }
        let started = start(
            &sandbox,
            &command(&["/attack", "__rename", here, there, "0"]),
        );
        eventually("it is being copied, or has been", || {
            moving() || world.path("upper/moved").exists()
        });
        std::thread::sleep(Duration::from_millis(killed * 7));
        started.running.kill().expect("a kill");
        let outcome = started.finish();
        killed += u64::from(outcome.status() == ExitStatus::Signal(libc::SIGKILL));
        assert!(!moving(), "the command has ended, so its copy is gone");
        if world.path("upper/moved").exists() {
            (here, there) = (there, here);
        }
        assert_eq!(count(here), all);
        assert_eq!(run(&sandbox, &shell(&format!("ls {there}"))).text(), "");
    }
    assert!(is_root() || killed > 0, "none was killed in the middle");
}

fn a_crash_leaves_a_whole_tree() {
    for delay in if is_root() { 0..0 } else { 0..4 } {
        let (world, sandbox) = filled(fill_with_many);
        let count = |sandbox: &Sandbox, dir: &str| {
            let text = run(sandbox, &shell(&format!("find {dir} | wc -l"))).text();
            text.trim().parse::<u32>().expect("a number")
        };
        let all = count(&sandbox, "/big");
        let _moving = start(
            &sandbox,
            &command(&["/attack", "__rename", "/big", "/moved", "0"]),
        );
        eventually("it is being copied, or has been", || {
            is_moving(&world) || world.path("upper/moved").exists()
        });
        std::thread::sleep(Duration::from_millis(delay * delay * 20));
        drop(sandbox);
        let again = world.open();
        let (old, new) = (count(&again, "/big"), count(&again, "/moved"));
        assert!(old == all || new == all, "{old} and {new} of {all}");
        assert!(new == all || new == 0, "the new name is whole or not there");
    }
}

fn a_dead_mover_takes_its_sandbox() {
    if is_root() {
        return;
    }
    let (world, sandbox) = filled(|_| {});
    let find = shell("grep -lx avfs-mover /proc/[0-9]*/comm; sleep 30");
    let started = start(&sandbox, &find);
    // Killed earlier, the mover would keep the command from starting at all.
    let event = crate::world::next_event(&started.running);
    assert!(matches!(event, Event::Started { .. }), "{event:?}");
    // As the host numbers them, it is a child of the agent, which is one of the keeper's.
    let named = |pid: &Path| fs::read_to_string(pid.join("comm")).unwrap_or_default();
    let keeper = Path::new("/proc").join(world.keeper.pid().to_string());
    let movers = || -> Vec<_> {
        let all = fs::read_dir("/proc")
            .expect("a /proc")
            .flatten()
            .map(|entry| entry.path());
        let ours = |path: &PathBuf| parent(&parent(path)) == keeper;
        all.filter(|path| named(path) == "avfs-mover\n")
            .filter(ours)
            .collect()
    };
    let [mover] = &movers()[..] else {
        panic!("there is one mover")
    };
    let pid = mover
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a kill");
    eventually("the sandbox is gone", || !sandbox.is_alive());
    assert_eq!(started.finish().last(), &Event::Lost);
}
