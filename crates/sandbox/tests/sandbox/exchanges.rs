//! Directories that came from the tree change places with anything.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use avfs_sandbox::{EXCHANGE_COPIES, EXCHANGE_ENDS, ExitStatus, Sandbox};

use crate::Test;
use crate::rename_roles::EXCHANGE;
use crate::renames::{fill_with_everything, fill_with_many, filled, is_moving, is_root};
use crate::renames::{listing, rename};
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
                let copy = EXCHANGE_COPIES[end].to_str().expect("plain");
                let inside = format!("/{at}/{copy}");
                let is_there = world.path(&format!("upper{inside}")).exists();
                if is_there {
                    count(&again, &inside)
                } else {
                    names[end]
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

/// The temporary name of an exchange that is decided.
fn noted(world: &World) -> Option<String> {
    let entries = fs::read_dir(world.path("upper"))
        .expect("the layer")
        .flatten();
    let decided = |entry: &fs::DirEntry| {
        let mut ends = EXCHANGE_ENDS.iter();
        ends.all(|end| {
            let link = entry.path().join(end.to_str().expect("plain"));
            link.symlink_metadata()
                .is_ok_and(|found| found.is_symlink())
        })
    };
    let mut found = entries.filter(decided);
    Some(found.next()?.file_name().to_string_lossy().into_owned())
}
