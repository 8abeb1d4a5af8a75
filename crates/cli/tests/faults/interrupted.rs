//! What is left when the daemon or the keeper is killed in the middle of a command.

use std::process::{Child, Stdio};

use avfs_testkit::{Home, SOON, process_ends, signal, wait_for};
use serde_json::{Value, json};

use crate::AVFS;

/// A vault in which a command writes one file after the other, until it is killed.
fn writing(home: &Home) -> Child {
    home.ok(&["vault", "create", "v"]);
    home.ok(&["write", "/before", "kept"]);
    let script =
        "i=0; while :; do i=$((i+1)); echo $i > /f$i; echo $i > /tmp/written; sleep 0.005; done";
    let child = home
        .command(&["--json", "proxy", "exec", "--shell", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    assert!(
        wait_for(SOON, || written(home) >= 20),
        "the command writes, as {}",
        home.user()
    );
    child
}

/// How many files the command says it has written.
fn written(home: &Home) -> u64 {
    // The scratch file is read on the host: asking the daemon would commit.
    let layers = home.avfs_home().join("layers");
    let Ok(vaults) = std::fs::read_dir(layers) else {
        return 0;
    };
    vaults
        .flatten()
        .filter_map(|vault| std::fs::read_to_string(vault.path().join("tmp/written")).ok())
        .filter_map(|text| text.trim().parse().ok())
        .next()
        .unwrap_or(0)
}

/// The count at a moment when the file that says it is not just being rewritten.
fn at_least_written(home: &Home) -> u64 {
    let mut count = 0;
    wait_for(SOON, || {
        count = written(home);
        count > 0
    });
    count
}

fn kill(pid: u64) {
    let pid = u32::try_from(pid).expect("a pid");
    signal(pid, rustix::process::Signal::KILL);
}

fn check_kept(home: &Home, count: u64) {
    let version = &home.json(&["vault", "log"])[0];
    assert_eq!(version["cause"], "interrupted", "{version:#}");
    assert_eq!(home.ok(&["cat", "/before"]), "kept");
    // The file being written at the moment of the kill may be empty; those before it are whole.
    for number in [1, count / 2, count - 1] {
        let path = format!("/f{number}");
        assert_eq!(
            home.ok(&["cat", &path]),
            format!("{number}\n"),
            "as {}",
            home.user()
        );
    }
    let next = home.shell("echo on; ls / | grep -c '^f'");
    let text = next["result"]["stdout"].as_str().expect("text");
    let seen: u64 = text
        .lines()
        .nth(1)
        .expect("two lines")
        .parse()
        .expect("a number");
    assert!(seen >= count, "{seen} of {count} files are seen");
    assert_eq!(home.json(&["audit", "verify"])["valid"], true);
}

#[test]
fn kill_of_the_daemon_during_an_exec_keeps_the_work() {
    for home in Home::of_every_user(AVFS) {
        let mut child = writing(&home);
        let status = home.json(&["daemon", "status"]);
        let keeper = status["keeper_pid"].as_u64().expect("a keeper");
        let count = at_least_written(&home);
        kill(status["pid"].as_u64().expect("a daemon"));
        // Nothing hangs: the client fails, the keeper and all below it end.
        let outcome = child.wait().expect("the client ends");
        assert_eq!(outcome.code(), Some(125), "our failure, not the command's");
        assert!(
            process_ends(keeper as u32, SOON),
            "the keeper ends with the daemon"
        );
        check_kept(&home, count);
    }
}

#[test]
fn kill_of_the_keeper_during_an_exec_keeps_the_work() {
    for home in Home::of_every_user(AVFS) {
        let child = writing(&home);
        let status = home.json(&["daemon", "status"]);
        let count = at_least_written(&home);
        kill(status["keeper_pid"].as_u64().expect("a keeper"));
        let output = child.wait_with_output().expect("the client ends");
        let envelope: Value = serde_json::from_slice(&output.stdout).expect("an envelope");
        assert_eq!(envelope["success"], false);
        assert_eq!(envelope["result"]["status"], "interrupted", "{envelope:#}");
        assert_eq!(envelope["result"]["exit_code"], Value::Null);
        let changed = envelope["result"]["changed_files"]
            .as_array()
            .expect("a list");
        assert!(
            changed.contains(&json!("/f1")),
            "the changes so far are reported"
        );
        let after = home.json(&["daemon", "status"]);
        assert_eq!(after["pid"], status["pid"], "the daemon lives on");
        check_kept(&home, count);
    }
}

#[test]
fn kill_of_an_idle_daemon_loses_nothing_and_leaves_nothing() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let envelope = home.shell("echo a > /a; mkdir /d; echo b > /d/b");
        assert_eq!(
            envelope["result"]["changed_files"],
            json!(["/a", "/d", "/d/b"])
        );
        let status = home.json(&["daemon", "status"]);
        kill(status["pid"].as_u64().expect("a daemon"));
        assert!(process_ends(
            status["keeper_pid"].as_u64().expect("a keeper") as u32,
            SOON
        ));
        let version = &home.json(&["vault", "log"])[0];
        assert_eq!(
            version["cause"], "exec",
            "what was committed is not interrupted"
        );
        assert_eq!(home.shell("cat /a /d/b")["result"]["stdout"], "a\nb\n");
    }
}

/// Exchanges two stored directories, which without root takes a while.
const EXCHANGE: &str = "import ctypes; at = -100; \
                        assert ctypes.CDLL(None).renameat2(at, b'/a', at, b'/b', 2) == 0";

/// Whether the layer of the only vault shows an exchange that has begun, and one that is decided.
fn exchange_begun(home: &Home) -> Option<bool> {
    let listed = |path: &std::path::Path| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let vaults = listed(&home.avfs_home().join("layers"));
    let layers = vaults.iter().flat_map(|vault| listed(vault));
    // Copies get ready in a directory on which the sandbox's process table is mounted.
    let staging = layers.flat_map(|layer| listed(&layer.join("upper/proc")));
    let mut moving = staging.flat_map(|staging| listed(&staging));
    let moving = moving.next()?;
    Some(moving.join("first").is_symlink())
}

/// What the files of a directory say, each once, and how many there are.
fn said(home: &Home, dir: &str) -> (String, String) {
    let seen = home.shell(&format!("cat {dir}/* | sort -u; ls {dir} | wc -l"));
    let text = seen["result"]["stdout"].as_str().expect("text").to_owned();
    let (words, count) = text.trim_end().rsplit_once('\n').expect("two lines");
    (words.to_owned(), count.trim().to_owned())
}

#[test]
fn kill_of_the_daemon_during_an_exchange_leaves_the_old_or_the_new() {
    let Some(home) = Home::of_ordinary_user(AVFS) else {
        return;
    };
    home.ok(&["vault", "create", "v"]);
    home.shell(
        "for d in a b; do mkdir /$d; for f in $(seq 300); do echo $d > /$d/$f; done; done; rm /b/300",
    );
    let old = [said(&home, "/a"), said(&home, "/b")];
    for wants_decided in [false, true] {
        // So that they are stored, and not of this layer.
        home.ok(&["daemon", "stop"]);
        let before = [said(&home, "/a"), said(&home, "/b")];
        let status = home.json(&["daemon", "status"]);
        let mut child = home
            .command(&["proxy", "exec", "--", "python3", "-c", EXCHANGE])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let begun = || exchange_begun(&home).is_some_and(|decided| decided >= wants_decided);
        assert!(wait_for(SOON, begun), "it is seen while it is done");
        let decided = exchange_begun(&home) == Some(true);
        kill(status["pid"].as_u64().expect("a daemon"));
        child.wait().expect("the client ends");
        let keeper = status["keeper_pid"].as_u64().expect("a keeper") as u32;
        assert!(process_ends(keeper, SOON));
        let after = [said(&home, "/a"), said(&home, "/b")];
        let [first, second] = before.clone();
        let swapped = [second, first];
        assert!(
            after == before || after == swapped,
            "{after:?} of {before:?}"
        );
        assert!(!decided || after == swapped, "it was decided");
        assert!(before == old || wants_decided);
    }
}
