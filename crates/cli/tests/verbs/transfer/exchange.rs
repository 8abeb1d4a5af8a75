//! The transfer directory: all that an agent can name of the host, and nothing around it.

use super::{at, write};
use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const SECRET: &str = "not for agents";

/// The binary, run by an agent; gives its answer, be it an error.
fn agent(home: &Home, words: &[&str]) -> Value {
    let mut command = home.command(&[&["--json"], words].concat());
    let output = command.env("AVFS_AGENT", "a").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
}

/// A home with a transfer directory, and a secret beside it.
fn exchange(home: &Home) -> PathBuf {
    let dir = at(home, "exchange");
    write(&dir, "in/a.txt", "a");
    write(&dir, "in/deep/b.txt", "b");
    write(&at(home, "outside"), "secret/key", SECRET);
    home.give(home.path());
    home.ok(&["transfer", "set", dir.to_str().unwrap()]);
    dir
}

/// Nothing of the secret is in the vault.
fn is_kept(home: &Home, place: &str) {
    let found = home.json(&["grep", "--fixed-strings", SECRET, "/"]);
    assert_eq!(found["count"], 0, "{place}: {found:#}");
}

#[test]
fn without_one_there_is_none_and_only_the_owner_sets_it() {
    with_vault(AVFS, |home| {
        fs::create_dir(at(home, "exchange")).unwrap();
        home.give(&at(home, "exchange"));
        let dir = at(home, "exchange");
        let dir = dir.to_str().unwrap();
        let none = agent(home, &["transfer", "in", "x"]);
        assert_eq!(none["error"], "NotFound", "{none:#}");
        assert!(none["hint"].as_str().unwrap().contains("transfer set"));
        for words in [
            &["transfer", "set", dir][..],
            &["transfer", "off"],
            &["transfer", "show"],
            // What it names of the host besides stays the owner's.
            &["import", dir],
            &["export", "/", dir],
        ] {
            assert_eq!(agent(home, words)["error"], "Denied", "{words:?}");
        }
        assert_eq!(home.json(&["transfer", "show"])["dir"], Value::Null);
        assert_eq!(home.json(&["transfer", "set", dir])["dir"], dir);
        home.ok(&["daemon", "stop"]);
        assert_eq!(home.json(&["transfer", "show"])["dir"], dir, "it is kept");
        assert_eq!(home.json(&["transfer", "off"])["dir"], Value::Null);
        let told = home.json(&["audit", "--operation", "transfer"]);
        assert_eq!(told["total_count"], 2, "{told:#}");
        for wrong in [
            home.avfs_home(),
            home.avfs_home().parent().unwrap().to_owned(),
            at(home, "none"),
        ] {
            let refused = home.json(&["transfer", "set", wrong.to_str().unwrap()]);
            assert_eq!(refused["error"], "Invalid", "{refused:#}");
        }
    });
}

#[test]
fn an_agent_brings_things_in_and_out() {
    with_vault(AVFS, |home| {
        let dir = exchange(home);
        let imported = agent(home, &["transfer", "in", "in", "/data"]);
        assert_eq!(imported["files_imported"], 2, "{imported:#}");
        assert_eq!(home.ok(&["cat", "/data/deep/b.txt"]), "b");
        let told = home.json(&["audit", "--operation", "import"]);
        assert_eq!(told["entries"][0]["by"], "agent:a", "{told:#}");
        agent(home, &["write", "/data/c.txt", "c"]);
        let exported = agent(home, &["transfer", "out", "/data", "report"]);
        assert_eq!(exported["files_exported"], 3, "{exported:#}");
        assert_eq!(exported["real_path"], "report");
        assert_eq!(fs::read_to_string(dir.join("report/c.txt")).unwrap(), "c");
        let again = agent(home, &["transfer", "out", "/data", "report"]);
        assert_eq!(again["error"], "AlreadyExists", "{again:#}");
        // An archive, and a place further down.
        let tar = Command::new("tar")
            .args(["czf", "x.tgz", "in"])
            .current_dir(&dir)
            .status();
        assert!(tar.unwrap().success());
        home.give(&dir);
        agent(home, &["transfer", "in", "x.tgz", "/tar"]);
        assert_eq!(home.ok(&["cat", "/tar/in/a.txt"]), "a");
        agent(home, &["transfer", "in", "in/deep", "/deep"]);
        assert_eq!(home.ok(&["cat", "/deep/b.txt"]), "b");
        let left: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert_eq!(left.len(), 3, "{left:?}");
    });
}

#[test]
fn no_name_leads_out_of_it() {
    with_vault(AVFS, |home| {
        let dir = exchange(home);
        let outside = at(home, "outside");
        symlink(outside.join("secret"), dir.join("link")).unwrap();
        symlink("../outside/secret", dir.join("relative")).unwrap();
        symlink(outside.join("secret/key"), dir.join("file")).unwrap();
        symlink("in", dir.join("inside")).unwrap();
        let absolute = outside.join("secret");
        for name in [
            "..",
            "../outside/secret",
            "in/../../outside/secret",
            "link",
            "link/key",
            "relative",
            "file",
            "inside",
            "/etc",
            "/",
            "",
            "none",
            "in/a.txt/..",
            "/proc/self/root",
            absolute.to_str().unwrap(),
        ] {
            let refused = agent(home, &["transfer", "in", name, "/stolen"]);
            assert!(refused["error"].is_string(), "{name}: {refused:#}");
            is_kept(home, name);
        }
        symlink(outside.join("new"), dir.join("dangling")).unwrap();
        for name in [
            "..",
            ".",
            "",
            "a/b",
            "in/new",
            "link/new",
            "link",
            "dangling",
            "/tmp/avfs-stolen",
            "../outside/new",
            "in",
        ] {
            let refused = agent(home, &["transfer", "out", "/", name]);
            assert!(refused["error"].is_string(), "{name}: {refused:#}");
        }
        let names = |path: PathBuf| fs::read_dir(path).unwrap().count();
        assert_eq!(
            (names(outside.clone()), names(outside.join("secret"))),
            (1, 1)
        );
        assert_eq!(names(dir.join("in")), 2);
        // A link is brought in as a link, and leads nowhere on the host.
        let whole = agent(home, &["transfer", "in", ".", "/all"]);
        assert!(whole["files_imported"].as_u64().unwrap() >= 5, "{whole:#}");
        is_kept(home, "all of it");
        agent(home, &["transfer", "out", "/all", "copy"]);
        let through = agent(home, &["transfer", "in", "copy/link", "/stolen"]);
        assert_eq!(through["error"], "Denied", "{through:#}");
    });
}

#[test]
fn what_has_other_names_or_is_no_file_stays_out() {
    with_vault(AVFS, |home| {
        let dir = exchange(home);
        fs::hard_link(at(home, "outside/secret/key"), dir.join("in/key")).unwrap();
        fs::hard_link(at(home, "outside/secret/key"), dir.join("key.tar")).unwrap();
        let fifo = |name: &str| {
            let path = dir.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        };
        fifo("fifo");
        fifo("in/fifo");
        let device = dir.join("in/device");
        let made = mknodat(CWD, &device, FileType::CharacterDevice, Mode::RWXU, 0x101);
        let _socket = std::os::unix::net::UnixListener::bind(dir.join("in/socket")).unwrap();
        let imported = agent(home, &["transfer", "in", "in", "/data"]);
        let skipped = imported["skipped"].to_string();
        assert!(skipped.contains("other names"), "{imported:#}");
        assert_eq!(skipped.contains("device"), made.is_ok(), "{imported:#}");
        assert!(skipped.contains("socket"), "{imported:#}");
        is_kept(home, "hard links");
        for name in [
            "key.tar",
            "fifo",
            "in/fifo",
            "in/device",
            "in/socket",
            "in/a.txt/",
        ] {
            let refused = agent(home, &["transfer", "in", name, "/stolen"]);
            assert!(refused["error"].is_string(), "{name}: {refused:#}");
        }
        is_kept(home, "single files");
    });
}

/// Somebody exchanges a directory for a link to the outside, over and over.
#[test]
fn what_is_swapped_meanwhile_leads_nowhere() {
    with_vault(AVFS, |home| {
        let dir = exchange(home);
        for number in 0..50 {
            write(&dir, &format!("x/secret/{number}/key"), "harmless");
        }
        home.give(&dir);
        symlink(at(home, "outside"), dir.join("y")).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (x, y) = (dir.join("x"), dir.join("y"));
                while !over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &x, CWD, &y, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let mut brought_in = 0;
            for _ in 0..30 {
                for name in ["x/secret", "y/secret", "."] {
                    let answer = agent(home, &["transfer", "in", name, "/data"]);
                    brought_in += usize::from(answer["error"].is_null());
                }
            }
            over.store(true, Ordering::Relaxed);
            assert!(brought_in > 0, "sometimes it was a directory");
        });
        is_kept(home, "swapped");
    });
}
