//! A home that may only be read is read, and everything that would change it is refused.

use crate::AVFS;
use avfs_testkit::{Home, scan, skip};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const READING: &[&[&str]] = &[
    &["vault", "list"],
    &["vault", "info"],
    &["vault", "log"],
    &["ls", "/"],
    &["cat", "/d/f"],
    &["stat", "/d/f"],
    &["tree", "/"],
    &["log", "/d/f"],
    &["diff"],
    &["grep", "words", "/"],
    &["find", "/"],
    &["search", "words"],
    &["checkpoint", "list"],
    &["audit"],
    &["audit", "verify"],
    &["stats"],
    &["fsck"],
    &["quota"],
    &["policy", "list"],
    &["job", "list"],
    &["daemon", "status"],
];

const CHANGING: &[&[&str]] = &[
    &["write", "/new", "x"],
    &["mkdir", "/new"],
    &["rm", "/d/f"],
    &["exec", "--", "true"],
    &["job", "start", "--", "true"],
    &["import", ".", "/new"],
    &["vault", "create", "new"],
    &["vault", "fork", "v", "new"],
    &["vault", "delete", "v"],
    &["vault", "use", "v"],
    &["checkpoint", "save", "new"],
    &["checkpoint", "restore", "point"],
    &["prune", "--keep", "1"],
    &["gc"],
    &["compact"],
    &["quota", "set", "max_files", "9"],
    &["tag", "/d/f", "t"],
];

fn fill(home: &Home) {
    home.ok(&["vault", "create", "v"]);
    home.ok(&["mkdir", "/d"]);
    home.ok(&["write", "/d/f", "some words"]);
    home.shell("head -c 5000000 /dev/urandom > /large");
    home.ok(&["checkpoint", "save", "point"]);
    home.ok(&["write", "/d/g", "more"]);
    home.json(&["job", "start", "--", "sleep", "600"]);
}

/// A home of somebody whom modes keep out.
fn of_ordinary_user() -> Home {
    Home::of_ordinary_user(AVFS).unwrap_or_else(|| Home::new(AVFS))
}

/// Takes the right to write from, or gives it back to, all that is in a home.
fn set_writable(dir: &Path, writable: bool) {
    let mut below = vec![dir.to_owned()];
    while let Some(path) = below.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_symlink() {
            continue;
        }
        // What overlayfs works in has no mode at all, and is to be looked at.
        let mode = meta.permissions().mode() | if meta.is_dir() { 0o500 } else { 0 };
        let mode = if writable {
            mode | 0o200
        } else {
            mode & !0o222
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        if meta.is_dir() {
            below.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
}

#[test]
fn a_home_without_the_right_to_write_is_read() {
    let home = of_ordinary_user();
    fill(&home);
    let pid = home.daemon_pid().unwrap();
    let kill = home
        .host_command("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(kill.unwrap().success());
    set_writable(&home.avfs_home(), false);
    let before = scan(&home.avfs_home());
    for words in READING {
        home.ok(words);
    }
    assert_eq!(home.json(&["daemon", "status"])["read_only"], true);
    let jobs = home.json(&["job", "list"]);
    assert_eq!(jobs["jobs"][0]["status"], "lost", "{jobs}");
    let out = home.user_home().join("out");
    home.ok(&["export", "/", out.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(out.join("d/g")).unwrap(), "more");
    for words in CHANGING {
        let answer = home.json(words);
        assert_eq!(answer["error"], "Unavailable", "{words:?}: {answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("can only be read"), "{words:?}: {message}");
    }
    assert_eq!(scan(&home.avfs_home()), before, "nothing is changed in it");
    // Once it may be written, nobody has to know which daemon serves it.
    set_writable(&home.avfs_home(), true);
    let refused = home.json(&["write", "/d/f", "new"]);
    assert!(refused["hint"].to_string().contains("again"), "{refused}");
    home.ok(&["write", "/d/f", "new"]);
    assert_eq!(home.ok(&["cat", "/d/f"]), "new");
    assert_eq!(home.json(&["fsck"])["clean"], true);
}

/// Only root can make the mount, in a namespace that the daemon is started in, too.
#[test]
fn a_home_on_a_read_only_mount_is_read() {
    let home = Home::new(AVFS);
    if !home.is_root() {
        skip("a read-only mount needs root");
        return;
    }
    fill(&home);
    // What the last daemon had only in its log counts as well.
    let pid = home.daemon_pid().unwrap();
    let kill = home
        .host_command("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(kill.unwrap().success());
    let words = |list: &[&[&str]]| -> String {
        let lines = list
            .iter()
            .map(|words| format!("run {}\n", words.join(" ")));
        lines.collect()
    };
    let script = format!(
        "set -e; mount --bind \"$AVFS_HOME\" \"$AVFS_HOME\"; mount -o remount,ro,bind \"$AVFS_HOME\"
         run() {{ echo \"$*\"; \"$0\" --json \"$@\" > answer; echo $? done; }}
         set +e\n{}\necho changing\n{}\n
         \"$0\" cat /d/g; echo; \"$0\" daemon stop",
        words(READING),
        words(CHANGING),
    );
    let binary = home.command::<&str>(&[]).get_program().to_owned();
    let mut shell = home.host_command("unshare");
    shell.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    let output = shell.arg(binary).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let (reading, changing) = said
        .split_once("changing\n")
        .unwrap_or_else(|| panic!("{said}{told}"));
    assert_eq!(
        reading.matches("\n0 done").count(),
        READING.len(),
        "{said}{told}"
    );
    assert!(!changing.contains("\n0 done"), "{said}{told}");
    assert!(changing.contains("\nmore\n"), "{said}{told}");
    let last: Value =
        serde_json::from_slice(&fs::read(home.path().join("answer")).unwrap()).unwrap();
    assert_eq!(last["error"], "Unavailable", "{last}");
    home.ok(&["write", "/d/f", "new"]);
    assert_eq!(home.json(&["fsck"])["clean"], true);
}
