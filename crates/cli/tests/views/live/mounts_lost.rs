//! Mounts whose daemon or keeper is gone, or stays for them.

use std::time::Duration;

use avfs_testkit::{SOON, process_ends, signal, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use super::causes;
use super::mounts::{mounts, scenes, text};
/// However a daemon dies while programs write, what they wrote is a version afterwards.
#[test]
fn a_killed_daemon_loses_nothing_that_was_written() {
    for scene in scenes() {
        let home = &scene.home;
        for pause in [0, 70] {
            let dir = scene.mount();
            let daemon = home.daemon_pid().expect("it runs");
            let script = format!(
                "cd $M; mkdir -p k{pause}; i=0; while i=$((i+1)); \
                 echo $i > k{pause}/f$i && mv k{pause}/f$i k{pause}/g$i && echo $i; do :; done"
            );
            let mut writer = home.host_command("sh");
            let writer = writer.args(["-c", &script]).env("M", &dir);
            let writer = writer.stdout(std::process::Stdio::piped());
            let writer = writer.stderr(std::process::Stdio::null());
            let mut writer = writer.spawn().expect("it runs");
            let first = format!("k{pause}/g5");
            assert!(wait_for(SOON, || scene.there(&first)), "{scene}");
            std::thread::sleep(Duration::from_millis(pause));
            signal(daemon, Signal::KILL);
            assert!(process_ends(daemon, SOON), "{scene}");
            if scene.driver == "overlay" {
                // What it writes goes to the layer; nothing tells it of the daemon's end.
                let _ = writer.kill();
            }
            let written = writer.wait_with_output().expect("it ends").stdout;
            let written = String::from_utf8_lossy(&written).lines().count();
            assert!(written >= 5, "{scene}");
            // The next start makes a version of it, and takes the dead mount away.
            let kept = home.ok(&["ls", &format!("/k{pause}")]);
            for number in 1..=written {
                let name = format!("g{number}");
                assert!(
                    kept.split_whitespace().any(|it| it == name),
                    "{scene}: {name}"
                );
            }
            assert!(causes(home).iter().any(|it| it == "interrupted"), "{scene}");
            assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "{scene}");
        }
    }
}

/// The keeper shows the stored files to an overlay; a FUSE mount can do without.
#[test]
fn a_killed_keeper_loses_nothing() {
    for scene in scenes() {
        let home = &scene.home;
        let dir = scene.mount();
        scene.host("echo before > $M/before");
        let keeper = home.json(&["daemon", "status"])["keeper_pid"].as_u64();
        let keeper = u32::try_from(keeper.expect("it runs")).expect("a pid");
        signal(keeper, Signal::KILL);
        assert!(process_ends(keeper, SOON), "{scene}");
        assert_eq!(home.ok(&["cat", "/before"]), "before\n", "{scene}");
        match scene.driver {
            "fuse" => {
                scene.host("echo after > $M/after");
                home.ok(&["unmount", text(&dir)]);
                assert_eq!(home.ok(&["cat", "/after"]), "after\n", "{scene}");
            }
            _ => {
                assert_eq!(mounts(home).len(), 0, "{scene}");
                assert!(causes(home).iter().any(|it| it == "interrupted"), "{scene}");
                scene.mount();
                assert_eq!(scene.host("cat $M/before"), "before\n", "{scene}");
            }
        }
    }
}

#[test]
fn a_daemon_stays_while_something_is_mounted() {
    // One way to mount stands for all: it is the daemon that counts them.
    for scene in scenes().into_iter().rev().take(1) {
        let home = &scene.home;
        home.ok(&["daemon", "stop"]);
        let words = ["serve", "--foreground", "--idle-timeout", "3"];
        let mut daemon = home.command(&words);
        let mut daemon = daemon
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it runs");
        assert!(
            wait_for(SOON, || home.daemon_pid() == Some(daemon.id())),
            "{scene}"
        );
        scene.mount();
        std::thread::sleep(Duration::from_millis(5_000));
        assert_eq!(scene.host("cat $M/src/a.txt"), "stored\n", "{scene}");
        assert!(
            daemon.try_wait().expect("it can be asked").is_none(),
            "{scene}"
        );
        home.ok(&["unmount"]);
        assert!(daemon.wait().expect("it ends").success(), "{scene}");
    }
}

#[test]
fn dead_mounts_are_mended() {
    for scene in scenes().into_iter().filter(|scene| scene.driver == "fuse") {
        let home = &scene.home;
        let dir = scene.mount();
        scene.host("echo kept > $M/kept");
        let die = || {
            let daemon = home.daemon_pid().expect("it runs");
            signal(daemon, Signal::KILL);
            assert!(process_ends(daemon, SOON), "{scene}");
        };
        die();
        assert!(
            std::fs::metadata(&dir).is_err(),
            "{scene}: nobody serves it"
        );
        let report = home.json(&["doctor"]);
        assert!(
            report["mounts"].to_string().contains(text(&dir)),
            "{report}"
        );
        let report = home.json(&["doctor", "--fix"]);
        let ours = report["mounts"].as_array().unwrap().iter();
        let mut ours = ours.filter(|mount| mount["dir"] == text(&dir));
        assert_eq!(ours.next().map(|it| &it["fixed"]), Some(&Value::Bool(true)));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "{scene}");
        assert_eq!(home.ok(&["cat", "/kept"]), "kept\n", "{scene}");
        // Mounting again mends it, too.
        scene.mount();
        die();
        scene.mount();
        assert_eq!(scene.host("cat $M/kept"), "kept\n", "{scene}");
        home.ok(&["unmount", text(&dir)]);
    }
}
