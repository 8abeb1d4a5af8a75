//! Exports whose daemon is killed: nothing of theirs stays on the host, and nothing of it is taken in.

use super::at;
use crate::AVFS;
use avfs_testkit::{Home, SOON, process_ends, wait_for, with_vault};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn leftovers(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_aside = |path: &PathBuf| path.to_string_lossy().contains("/.avfs-export-0");
    names.filter(is_aside).collect()
}

/// A directory of the home's user, with as much in it as takes a while to write.
fn large(home: &Home) -> PathBuf {
    let dir = at(home, "place/project");
    let script = "mkdir -p place/project/closed && cd place/project && \
         for i in $(seq 1500); do echo $i > f$i; echo $i > closed/g$i; done && \
         head -c 20000000 /dev/urandom > large && chmod 555 closed";
    let mut made = home.host_command("sh");
    assert!(made.args(["-c", script]).status().unwrap().success());
    dir
}

/// Kills the daemon while it has something beside the target of an export; whether it was early enough.
fn cut_off(home: &Home, words: &[&str], beside: &Path) -> bool {
    let pid = home.daemon_pid().unwrap();
    let mut export = home.command(words);
    export.stdout(Stdio::null()).stderr(Stdio::null());
    let mut export = export.spawn().unwrap();
    while leftovers(beside).is_empty() && export.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let kill = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(kill.unwrap().success());
    assert!(process_ends(pid, SOON));
    export.wait().unwrap();
    !leftovers(beside).is_empty()
}

fn cut_off_at_last(home: &Home, words: &[&str], beside: &Path, target: Option<&Path>) {
    for _ in 0..50 {
        if cut_off(home, words, beside) {
            return;
        }
        home.ok(&["vault", "list"]);
        if let Some(target) = target {
            let mut gone = home.host_command("sh");
            gone.args(["-c", "chmod -R u+w \"$0\"; rm -rf \"$0\""])
                .arg(target);
            assert!(gone.status().unwrap().success());
        }
    }
    panic!("every export was done before its daemon could be killed");
}

#[test]
fn what_an_export_left_is_gone_after_the_next_start() {
    with_vault(AVFS, |home| {
        large(home);
        home.ok(&["import", "place/project", "/p"]);
        let beside = at(home, "place");
        // Of the same kind, but no export of this home has made it.
        let alike = beside.join(".avfs-export-01999999999970008000000000000000");
        let mut made = home.host_command("mkdir");
        assert!(made.arg(&alike).status().unwrap().success());
        fs::write(alike.join("mine"), "mine").unwrap();
        let only_mine = || leftovers(&beside) == [alike.clone()];
        for target in ["place/out", "place/out.tar"] {
            fs::rename(&alike, at(home, "kept")).unwrap();
            let words = ["export", "/p", target];
            cut_off_at_last(home, &words, &beside, Some(&at(home, target)));
            fs::rename(at(home, "kept"), &alike).unwrap();
            home.ok(&["vault", "list"]);
            assert!(wait_for(SOON, only_mine), "{:?}", leftovers(&beside));
            assert!(!at(home, target).exists());
        }
        assert_eq!(
            fs::read_dir(home.avfs_home().join("exports"))
                .unwrap()
                .count(),
            0
        );
        home.ok(&["import", "place", "/taken"]);
        let name = alike.file_name().unwrap().to_str().unwrap();
        let mine = home.ok(&["cat", &format!("/taken/{name}/mine")]);
        assert_eq!(mine, "mine", "names are not trusted alone");
        home.ok(&["export", "/p", "place/out"]);
    });
}

#[test]
fn what_going_back_left_is_gone_and_never_imported() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let dir = large(&home);
    home.ok(&["import", "place/project", "/p"]);
    let script = "cd /p && for i in $(seq 1500); do echo new > f$i; echo n > n$i; done";
    assert_eq!(home.shell(script)["result"]["exit_code"], 0);
    let words = ["export", "--changed-only", "place/project"];
    if !cut_off(&home, &words, &dir) {
        // All of it went back first: then there is nothing to settle.
        return;
    }
    let before = fs::read_to_string(dir.join("f1")).unwrap();
    assert!(["1\n", "new\n"].contains(&&before[..]), "{before}");
    home.ok(&["import", "place/project", "/again"]);
    assert!(leftovers(&dir).is_empty());
    let listed = home.json(&["ls", "/again"]).to_string();
    assert!(!listed.contains(".avfs-export"), "{listed}");
    assert_eq!(fs::read_to_string(dir.join("f1")).unwrap(), "1\n", "undone");
}

#[test]
fn an_export_under_way_is_not_imported() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    large(&home);
    home.ok(&["import", "place/project", "/p"]);
    let beside = at(&home, "place");
    let mut export = home
        .command(&["export", "/p", "place/out"])
        .spawn()
        .unwrap();
    while leftovers(&beside).is_empty() && export.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    home.ok(&["import", "place", "/taken"]);
    assert!(export.wait().unwrap().success());
    let listed = home.json(&["ls", "/taken"]).to_string();
    assert!(!listed.contains(".avfs-export"), "{listed}");
}
