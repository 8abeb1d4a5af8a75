//! Directories that came from the tree are renamed like any other.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use avfs_sandbox::{ExitStatus, SANDBOX_UID, STAGING_IN, Sandbox};

use crate::Test;
use crate::attacks::armed;
use crate::rename_roles::{EXCHANGE, NOREPLACE};
use crate::world::{Outcome, STAGING, World, command, run, shell, start};

pub const TESTS: &[Test] = &[
    ("whole_trees_are_renamed", whole_trees_are_renamed),
    ("renames_answer_as_everywhere", renames_answer_as_everywhere),
    ("tools_rename_directories", tools_rename_directories),
    ("changed_trees_are_renamed", changed_trees_are_renamed),
    ("renames_at_once", renames_at_once),
    ("renames_keep_to_own_rights", renames_keep_to_own_rights),
    ("debuggers_see_renames", debuggers_see_renames),
    ("the_mover_is_out_of_reach", the_mover_is_out_of_reach),
    ("the_cost_of_a_rename", the_cost_of_a_rename),
];

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives a tree in the lower layer to the commands, as the views do.
fn give(path: &Path) {
    if !is_root() {
        return;
    }
    let metadata = fs::symlink_metadata(path).expect("metadata");
    lchown(path, Some(SANDBOX_UID), Some(SANDBOX_UID)).expect("a chown");
    if metadata.is_dir() {
        for entry in fs::read_dir(path).expect("a directory") {
            give(&entry.expect("an entry").path());
        }
    } else if metadata.is_file() {
        // It takes set-id bits away.
        fs::set_permissions(path, metadata.permissions()).expect("a mode");
    }
}

/// A world whose lower layer is `fill`ed, and in which this program is `/attack`.
pub fn filled(fill: impl FnOnce(&Path)) -> (World, Sandbox) {
    let world = World::new();
    let lower = world.path("lower");
    fill(&lower);
    let sandbox = {
        give(&lower);
        armed(&world)
    };
    (world, sandbox)
}

pub fn rename(sandbox: &Sandbox, from: &str, to: &str, flags: u32) -> i32 {
    let flags = flags.to_string();
    let outcome = run(
        sandbox,
        &command(&["/attack", "__rename", from, to, &flags]),
    );
    let text = outcome.text();
    text.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{text}{}", outcome.complaint()))
}

/// Everything about a tree that a rename must not change.
pub fn listing(sandbox: &Sandbox, dir: &str) -> String {
    let text = format!(
        "cd {dir} && find . -type f -printf '%P %m %s %T@ %n\\n' | sort && \
         find . ! -type f -printf '%P %y %m %T@ %l\\n' | sort && \
         find . -type f -perm -400 -print0 | sort -z | xargs -0 cksum"
    );
    let outcome = run(sandbox, &shell(&text));
    good(&outcome);
    outcome.text()
}

pub fn good(outcome: &Outcome) {
    let complaint = outcome.complaint();
    assert_eq!(
        outcome.status(),
        ExitStatus::Code(0),
        "{complaint}{}",
        outcome.text()
    );
}

/// A tree with one of everything.
pub fn fill_with_everything(lower: &Path) {
    let dir = lower.join("d");
    fs::create_dir_all(dir.join("sub/deep/er")).expect("directories");
    fs::create_dir(dir.join("empty")).expect("a directory");
    fs::write(dir.join("file"), "content").expect("a file");
    fs::write(dir.join("sub/program"), "#!/bin/sh\n").expect("a file");
    fs::write(dir.join("large"), vec![7; 9_000_000]).expect("a file");
    let sparse = fs::File::create(dir.join("sparse")).expect("a file");
    sparse.set_len(50_000_000).expect("a hole");
    fs::write(dir.join("one"), "linked").expect("a file");
    fs::hard_link(dir.join("one"), dir.join("sub/deep/er/two")).expect("a link");
    symlink("../nowhere", dir.join("sub/link")).expect("a link");
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o640);
    rustix::fs::mknodat(rustix::fs::CWD, dir.join("fifo"), fifo, mode, 0).expect("a fifo");
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(dir.join("file"), "user.note", b"kept", flags).expect("an attribute");
    rustix::fs::setxattr(dir.join("sub"), "user.note", b"too", flags).expect("an attribute");
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for name in ["file", "sub/program", "empty"] {
        let file = fs::File::open(dir.join(name)).expect("a file");
        file.set_modified(old).expect("a time");
    }
    fs::create_dir(dir.join("closed")).expect("a directory");
    fs::write(dir.join("closed/in"), "in").expect("a file");
    fs::write(dir.join("secret"), "secret").expect("a file");
    for (name, mode) in [("sub/program", 0o755), ("secret", 0o000), ("closed", 0o555)] {
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
}

fn whole_trees_are_renamed() {
    let (world, sandbox) = filled(fill_with_everything);
    let before = listing(&sandbox, "/d");
    assert_eq!(rename(&sandbox, "/d", "/e", 0), 0);
    assert_eq!(listing(&sandbox, "/e"), before);
    assert_eq!(
        run(&sandbox, &shell("ls -A / | grep -c -e '^d$' -e moving")).text(),
        "0\n"
    );
    let see = "chmod 400 /e/secret; cat /e/secret; chmod 0 /e/secret; du -k /e/sparse | cut -f1; \
               [ /e/one -ef /e/sub/deep/er/two ] || echo apart";
    let outcome = run(&sandbox, &shell(see));
    let text = outcome.text();
    let blocks = text.strip_prefix("secret").expect(&text);
    let blocks: u32 = blocks
        .trim()
        .parse()
        .expect("a size, and linked names that are one file");
    assert!(is_root() || blocks < 1000, "the hole takes {blocks} KiB");
    if !is_root() {
        let mut value = [0; 16];
        for (name, expected) in [("file", "kept"), ("sub", "too")] {
            let path = world.path("upper/e").join(name);
            let length = rustix::fs::getxattr(path, "user.note", &mut value[..]).expect("kept");
            assert_eq!(&value[..length], expected.as_bytes());
        }
    }
    // Further moves, also into another directory and back over an empty one.
    let text = "mkdir /in /d && /attack __rename /e /in/x 0 && /attack __rename in/x/ d// 0";
    assert_eq!(run(&sandbox, &shell(text)).text(), "0\n0\n");
    assert_eq!(listing(&sandbox, "/d"), before);
}

fn fill_for_answers(lower: &Path) {
    for dir in [
        "d/sub", "empty", "full/x", "e1", "e2", "var/tmp", "noted", "s1", "s2",
    ] {
        fs::create_dir_all(lower.join(dir)).expect("directories");
        fs::write(lower.join(dir).join("../mark"), "mark").expect("a file");
    }
    for dir in ["d", "e1", "e2", "noted", "s1", "s2"] {
        fs::write(lower.join(dir).join("f"), dir).expect("a file");
    }
    fs::write(lower.join("file"), "file").expect("a file");
    symlink("d", lower.join("link")).expect("a link");
    let _ = fs::remove_file(lower.join("full/mark"));
}

fn renames_answer_as_everywhere() {
    let (_world, sandbox) = filled(fill_for_answers);
    let cases: &[(&str, &str, u32, i32)] = &[
        ("/d", "/full", 0, libc::ENOTEMPTY),
        ("/d", "/d/sub/d", 0, libc::EINVAL),
        ("/d", "/d", 0, 0),
        ("/d", "/full", NOREPLACE, libc::EEXIST),
        ("/d", "/empty", NOREPLACE, libc::EEXIST),
        ("/d", "/file", 0, libc::ENOTDIR),
        ("/file", "/d", 0, libc::EISDIR),
        ("/none", "/n", 0, libc::ENOENT),
        ("/d", "/none/n", 0, libc::ENOENT),
        ("/d/.", "/n", 0, libc::EBUSY),
        ("/d", "", 0, libc::ENOENT),
        ("/link/", "/n", 0, libc::ENOTDIR),
        ("/d", "/tmp/d", 0, libc::EXDEV),
        ("/usr", "/u", 0, libc::EBUSY),
        ("/d", "/n", 64, libc::EINVAL),
        ("/d/sub", "/d", 0, libc::ENOTEMPTY),
        // These succeed, and change what follows.
        ("/link", "/link2", 0, 0),
        ("/d", "/empty", 0, 0),
        ("/empty/f", "/f", 0, 0),
        ("/noted", "/nn", NOREPLACE, 0),
    ];
    for (from, to, flags, errno) in cases {
        let found = rename(&sandbox, from, to, *flags);
        assert_eq!(found, *errno, "{from} {to} {flags}");
    }
    let text = "cat /f /empty/mark /nn/f; ls -d /empty/sub; ls -A / | grep moving";
    assert_eq!(run(&sandbox, &shell(text)).text(), "dmarknoted/empty/sub\n");
    assert_eq!(rename(&sandbox, "/e1", "/e2", EXCHANGE), 0);
    // The mover cannot do this.
    if !is_root() {
        assert_eq!(
            rename(&sandbox, "/var", "/v", 0),
            libc::EBUSY,
            "something is mounted in it"
        );
        assert_eq!(
            run(&sandbox, &shell("ls -A /var; ls -A / | grep moving")).text(),
            "mark\ntmp\n"
        );
    }
    // Relative to a directory that was opened, and to one that is current.
    let outcome = run(
        &sandbox,
        &command(&["/attack", "__rename_at", "/", "s1", "s3"]),
    );
    assert_eq!(outcome.text(), "0\n");
    let outcome = run(
        &sandbox,
        &shell("cd /empty && /attack __rename ../s2 s4/ 0; cat s4/f /s3/f"),
    );
    assert_eq!(outcome.text(), "0\ns2s1");
}

fn tools_rename_directories() {
    let (_world, sandbox) = filled(|lower| {
        for dir in ["a", "b", "c", "m", "p", "repo/dir/sub"] {
            fs::create_dir_all(lower.join(dir)).expect("directories");
            fs::write(lower.join(dir).join("f"), dir).expect("a file");
        }
        let git = "cd repo && git init -q && git add -A && \
                   git -c user.name=n -c user.email=e@x commit -qm first";
        let done = std::process::Command::new("sh")
            .args(["-c", git])
            .current_dir(lower)
            .env("HOME", lower)
            .status();
        assert!(done.expect("a shell").success(), "a repository");
    });
    let tools = [
        ("python3", "import os; os.rename('/a', '/a2')", "/a2/f"),
        (
            "python3",
            "import shutil; shutil.move('/b', '/a2/b2')",
            "/a2/b2/f",
        ),
        ("node", "require('fs').renameSync('/c', '/c2')", "/c2/f"),
        ("perl", "rename('/p', '/p2') or die $!", "/p2/f"),
    ];
    for (tool, code, proof) in tools {
        let flag = if tool == "python3" { "-c" } else { "-e" };
        // In the tool itself: none of these falls back to copying.
        let outcome = run(&sandbox, &command(&[tool, flag, code]));
        if outcome.events.len() == 1 {
            crate::say(&format!("    (there is no {tool} here)"));
            continue;
        }
        good(&outcome);
        good(&run(&sandbox, &command(&["cat", proof])));
    }
    let text = "export HOME=/tmp; cd /repo && git mv dir moved && git status --porcelain && \
                mv /m /m2 && cat /m2/f";
    let outcome = run(&sandbox, &shell(text));
    good(&outcome);
    assert_eq!(outcome.text(), "R  dir/sub/f -> moved/sub/f\nm");
}

/// Many files, hard links between directories, many levels.
pub fn fill_with_many(lower: &Path) {
    for dir in 0..20 {
        let path = lower.join(format!("big/{dir}"));
        fs::create_dir_all(&path).expect("a directory");
        for file in 0..100 {
            fs::write(path.join(file.to_string()), format!("{dir} {file}")).expect("a file");
        }
        fs::hard_link(path.join("0"), lower.join(format!("big/link{dir}"))).expect("a link");
    }
    fs::create_dir_all(lower.join("big").join("deep/".repeat(300))).expect("directories");
}

fn changed_trees_are_renamed() {
    let (_world, sandbox) = filled(fill_with_many);
    let change = "cd /big && rm 3/7 && echo new > 4/new && echo changed > 5/1 && rm -r 6 link6 && \
                  chmod 600 7/1 && mv 8/1 9/moved && mkdir -p 10/x/y && ln 4/new 10/x/linked";
    good(&run(&sandbox, &shell(change)));
    let before = listing(&sandbox, "/big");
    let began = Instant::now();
    assert_eq!(rename(&sandbox, "/big", "/moved", 0), 0);
    crate::say(&format!("    (2,000 files: {:.0?})", began.elapsed()));
    let after = listing(&sandbox, "/moved");
    for (after, before) in after.lines().zip(before.lines()) {
        assert_eq!(after, before);
    }
    assert_eq!(after.len(), before.len());
    assert_eq!(run(&sandbox, &shell("ls /big")).text(), "");
}

fn renames_at_once() {
    let (_world, sandbox) = filled(|lower| {
        for dir in 0..8 {
            fs::create_dir_all(lower.join(format!("own{dir}/sub"))).expect("a directory");
            fs::write(lower.join(format!("own{dir}/sub/f")), "f").expect("a file");
        }
        fs::create_dir_all(lower.join("prize/sub")).expect("a directory");
        for file in 0..50 {
            fs::write(lower.join(format!("prize/{file}")), "f").expect("a file");
        }
    });
    let other = start(
        &sandbox,
        &command(&["/attack", "__rename", "/own7", "/other7", "0"]),
    );
    let outcome = run(&sandbox, &command(&["/attack", "__rename_race"]));
    good(&outcome);
    assert_eq!(outcome.text(), "1 of 8 won\n");
    assert_eq!(other.finish().text(), "0\n");
    let see = "ls -d /won* | wc -l; ls /won*/ | wc -l; ls -d /prize; cat /own*-40/sub/f | wc -c";
    assert_eq!(run(&sandbox, &shell(see)).text(), "1\n51\n7\n");
}

/// Where copies get ready, as the host sees it.
pub fn staging(world: &World) -> PathBuf {
    world.path("upper").join(STAGING_IN).join(STAGING)
}

/// Whether something is being copied.
pub fn is_moving(world: &World) -> bool {
    fs::read_dir(staging(world)).is_ok_and(|mut entries| entries.next().is_some())
}

fn renames_keep_to_own_rights() {
    let (_world, sandbox) = filled(|lower| {
        for dir in ["d/sub", "locked/sub/in", "e/sub"] {
            fs::create_dir_all(lower.join(dir)).expect("directories");
        }
        fs::set_permissions(lower.join("locked/sub"), fs::Permissions::from_mode(0o000))
            .expect("a mode");
    });
    assert_eq!(rename(&sandbox, "/locked/sub/in", "/in", 0), libc::EACCES);
    assert_eq!(rename(&sandbox, "/d", "/locked/sub/d", 0), libc::EACCES);
    let outcome = run(
        &sandbox,
        &command(&["/attack", "__rename_fenced", "/d", "/e/d"]),
    );
    good(&outcome);
    let errno: i32 = outcome.text().trim().parse().expect("a number");
    assert!([libc::EACCES, libc::EXDEV].contains(&errno), "{errno}");
    assert_eq!(run(&sandbox, &shell("ls -d /d /e/d")).text(), "/d\n");
    // The same name means another file to the mover than to the caller.
    let outcome = run(
        &sandbox,
        &shell("cd /e && /attack __rename /proc/self/cwd/sub /x 0"),
    );
    let errno: i32 = outcome.text().trim().parse().expect("a number");
    assert_eq!(errno, if is_root() { 0 } else { libc::EXDEV });
}

fn debuggers_see_renames() {
    let (_world, sandbox) = filled(|lower| {
        for dir in ["a/sub", "b/sub"] {
            fs::create_dir_all(lower.join(dir)).expect("directories");
        }
    });
    let tools = [
        (
            "strace",
            "strace -f -e trace=rename /attack __rename /a /a2 0",
            "rename(\"/a\", \"/a2\")",
        ),
        (
            "gdb",
            "gdb -q -batch -ex 'catch syscall rename' -ex run -ex bt -ex continue -ex continue \
             --args /attack __rename /b /b2 0",
            "exited normally",
        ),
    ];
    for (tool, text, proof) in tools {
        let mut traced = shell(&format!("{text} 2>&1"));
        traced.env.push((b"HOME".to_vec(), b"/tmp".to_vec()));
        if run(&sandbox, &shell(&format!("command -v {tool}"))).status() != ExitStatus::Code(0) {
            crate::say(&format!("    (there is no {tool} here)"));
            continue;
        }
        let outcome = run(&sandbox, &traced);
        assert!(outcome.text().contains(proof), "{tool}: {}", outcome.text());
        assert!(
            outcome.text().lines().any(|line| line == "0"),
            "{tool}: {}",
            outcome.text()
        );
    }
}

fn the_mover_is_out_of_reach() {
    let (_world, sandbox) = filled(|lower| {
        fs::create_dir_all(lower.join("d/sub")).expect("directories");
    });
    let find = "m=$(grep -lx avfs-mover /proc/[0-9]*/comm | tr -dc 0-9); ";
    let pid = run(&sandbox, &shell(&format!("{find} echo $m"))).text();
    for file in ["mem", "environ", "maps", "fd", "root", "cwd", "exe", "auxv"] {
        let look = format!("{find} p=/proc/$m/{file}; cat $p || ls $p/ || readlink $p");
        let outcome = run(&sandbox, &shell(&look));
        assert_ne!(outcome.status(), ExitStatus::Code(0), "{look}");
        assert_eq!(outcome.text(), "", "{look}");
    }
    let text = format!("{find} for s in KILL STOP TERM SEGV; do kill -$s $m && echo done; done");
    assert_eq!(run(&sandbox, &shell(&text)).text(), "");
    let outcome = run(&sandbox, &command(&["/attack", "__reach", pid.trim()]));
    good(&outcome);
    for line in outcome.text().lines() {
        assert!(line.ends_with(" -1"), "{line}");
    }
    assert_eq!(rename(&sandbox, "/d", "/e", 0), 0, "and it works");
    assert_eq!(
        sandbox.processes().expect("a count"),
        0,
        "it is not a command's process"
    );
}

/// Says what a rename of a file costs; a busy machine would make any bound a lie.
fn the_cost_of_a_rename() {
    let (world, sandbox) = filled(|_| {});
    let inside = run(
        &sandbox,
        &command(&["/attack", "__rename_often", "/a", "/b"]),
    );
    good(&inside);
    let outside = std::process::Command::new(crate::world::own_binary())
        .arg("__rename_often")
        .args([world.path("scratch/a"), world.path("scratch/b")])
        .output()
        .expect("a run on the host");
    let outside = String::from_utf8_lossy(&outside.stdout).into_owned();
    let (inside, outside) = (inside.text(), outside.trim());
    crate::say(&format!(
        "    (a rename: {} inside, {outside} on the host)",
        inside.trim()
    ));
}
