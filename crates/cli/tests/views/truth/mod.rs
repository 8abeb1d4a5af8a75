//! What a report says happened is what happened: reports against scans that share no code with them.

mod hostile;
mod judge;

use std::collections::BTreeMap;

use avfs_testkit::{Home, number};
use judge::{differences, reported, scan};
use serde_json::Value;

use crate::AVFS;
/// A part for every run; `AVFS_STORM_ROUNDS=1000 cargo test --test views truth` is the whole.
const ROUNDS: u64 = 8;

#[test]
fn reports_of_random_storms_equal_independent_scans() {
    for home in Home::of_every_user(AVFS) {
        for round in 0..number("AVFS_STORM_ROUNDS", ROUNDS) {
            // What storms leave behind grows; all of it is to be seen in one output.
            if round % 50 == 0 {
                let vault = format!("storm-{round}");
                home.ok(&["vault", "create", &vault]);
                home.ok(&["vault", "use", &vault]);
                home.ok(&["write", "/scan.py", include_str!("../../scripts/scan.py")]);
                home.ok(&["write", "/storm.py", include_str!("../../scripts/storm.py")]);
                home.ok(&["mkdir", "/w"]);
            }
            // Every third round starts from a fresh view, so that what changes is in the tree.
            if round % 3 == 2 {
                home.close_view();
            }
            let before = scan(&home, &[]);
            let seed = round.to_string();
            let envelope = home.exec(&["/usr/bin/python3", "/storm.py", "/w", &seed, "20"]);
            assert_eq!(envelope["result"]["exit_code"], 0, "{envelope:#}");
            let after = scan(&home, &[]);
            let expected: BTreeMap<String, String> = differences(&before, &after)
                .into_iter()
                .map(|(path, word)| (path, word.to_owned()))
                .collect();
            assert_eq!(
                reported(&envelope),
                expected,
                "seed {round} as {}",
                home.user()
            );
            let listed = envelope["result"]["changed_files"]
                .as_array()
                .expect("a list");
            let mut listed: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
            // The report goes by the tree, where `a/b` comes before `a.tmp`; text does not.
            listed.sort_unstable();
            assert_eq!(
                listed,
                expected.keys().collect::<Vec<_>>(),
                "changed_files agrees"
            );
        }
    }
}

#[test]
fn forks_that_differ_in_a_mode_each_show_their_own() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "one"]);
        home.ok(&["write", "/script", "#!/bin/sh\necho ran\n"]);
        home.ok(&["vault", "fork", "one", "two"]);
        let envelope = home.json(&[
            "--vault", "two", "proxy", "exec", "--", "chmod", "755", "/script",
        ]);
        assert_eq!(envelope["result"]["changes"][0]["kind"], "mode");
        // A third fork of each, so that both modes come from trees shown at the same time.
        home.ok(&["vault", "fork", "one", "one-again"]);
        home.ok(&["vault", "fork", "two", "two-again"]);
        let mode = |vault: &str| {
            let envelope = home.json(&[
                "--vault", vault, "proxy", "exec", "--", "stat", "-c", "%a", "/script",
            ]);
            envelope["result"]["stdout"]
                .as_str()
                .expect("text")
                .trim()
                .to_owned()
        };
        for _ in 0..2 {
            assert_eq!(mode("one-again"), "644", "as {}", home.user());
            assert_eq!(mode("two-again"), "755", "as {}", home.user());
        }
        let ran = home.json(&["--vault", "two-again", "proxy", "exec", "--", "/script"]);
        assert_eq!(ran["result"]["stdout"], "ran\n");
        let denied = home.json(&["--vault", "one-again", "proxy", "exec", "--", "/script"]);
        assert_eq!(denied["result"]["status"], "could_not_start");
    }
}

#[test]
fn writing_one_of_two_equal_files_leaves_the_other() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.shell("cp -p /usr/bin/env /a; cp -p /a /b");
        home.close_view();
        let envelope = home.shell("echo more >> /a; cmp /usr/bin/env /b && ! cmp -s /a /b");
        assert_eq!(envelope["result"]["exit_code"], 0, "{envelope:#}");
        assert_eq!(
            envelope["result"]["changed_files"],
            serde_json::json!(["/a"])
        );
    }
}

/// Names that later commands give a file are names of the same file wherever the vault is shown anew.
#[test]
fn a_hard_link_that_a_later_command_makes_is_one_in_forks() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let exec = |vault: &str, text: &str| {
            let words = ["--vault", vault, "proxy", "exec", "--shell", text];
            home.json(&words)["result"]["stdout"].clone()
        };
        exec("v", "echo one > /x; ln /x /y");
        exec("v", "ln /x /z");
        home.ok(&["vault", "fork", "v", "copy"]);
        let numbers = exec("copy", "stat -c %h /x /y /z; [ /x -ef /z ] && cat /z");
        assert_eq!(numbers, "3\n3\n3\none\n", "as {}", home.user());
    }
}

#[test]
fn a_hard_link_pair_stays_a_pair() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let made = home.shell("echo one > /a; ln /a /b; echo other > /c");
        assert_eq!(
            made["result"]["changed_files"],
            serde_json::json!(["/a", "/b", "/c"])
        );
        home.close_view();
        let seen = home.shell("stat -c %h /a /b /c; [ /a -ef /b ] && ! [ /a -ef /c ] && echo same");
        assert_eq!(
            seen["result"]["stdout"],
            "2\n2\n1\nsame\n",
            "as {}",
            home.user()
        );
        home.ok(&["vault", "fork", "v", "w"]);
        let seen = home.json(&[
            "--vault",
            "w",
            "proxy",
            "exec",
            "--shell",
            "[ /a -ef /b ] && echo same",
        ]);
        assert_eq!(seen["result"]["stdout"], "same\n");
        // A file verb writes through both names.
        home.ok(&["--vault", "w", "write", "/a", "two"]);
        assert_eq!(home.ok(&["--vault", "w", "cat", "/b"]), "two");
    }
}

#[test]
fn a_directory_of_the_tree_can_be_moved_and_changed_below() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.shell(
            "mkdir -p /a/b/c; for i in 1 2 3; do echo $i > /a/b/f$i; done; echo deep > /a/b/c/d",
        );
        home.close_view();
        let moved = home.shell("mv /a/b /b2; rm /b2/f1; echo new > /b2/c/e; echo 4 > /b2/f2");
        assert_eq!(moved["result"]["exit_code"], 0, "{moved:#}");
        home.close_view();
        let seen = home.shell("cd /; find a b2 -type f -exec cat {} + | sort; find a b2 | sort");
        assert_eq!(
            seen["result"]["stdout"],
            "3\n4\ndeep\nnew\na\nb2\nb2/c\nb2/c/d\nb2/c/e\nb2/f2\nb2/f3\n",
            "as {}",
            home.user()
        );
    }
}

#[test]
fn touched_but_unchanged_files_are_not_reported() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.shell("mkdir /d; echo x > /d/f; chmod 640 /d/f");
        home.close_view();
        let envelope = home.shell(
            "touch /d/f; chmod 600 /d/f; chmod 640 /d/f; cat /d/f > /tmp/t; cat /tmp/t > /d/f",
        );
        assert_eq!(
            envelope["result"]["changed_files"],
            serde_json::json!([]),
            "{envelope:#}"
        );
    }
}

#[test]
fn home_and_scratch_are_not_among_the_changed_files() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let envelope =
            home.shell("echo x > ~/.cache-of-a-tool; echo y > /tmp/scratch; echo z > /mine");
        assert_eq!(
            envelope["result"]["changed_files"],
            serde_json::json!(["/mine"])
        );
        // The home directory itself came with its first file.
        assert!(
            envelope["result"]["home_changes"]
                .as_u64()
                .expect("a number")
                >= 1
        );
        assert_eq!(home.ok(&["cat", "/tmp/scratch"]), "y\n");
        home.ok(&["write", "/tmp/back", "b"]);
        let seen = home.shell("cat /tmp/back; cat ~/.cache-of-a-tool");
        assert_eq!(seen["result"]["stdout"], "bx\n");
    }
}

/// Overlayfs keeps notes in extended attributes; a command that sets such names itself fools nobody.
#[test]
fn notes_that_only_look_like_the_overlays_are_ignored() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.shell("mkdir /secret /d; echo s > /secret/s; echo d > /d/f");
        home.close_view();
        let script = "import os
for name, value in [('opaque', b'y'), ('redirect', b'/secret'), ('whiteout', b'y'), ('metacopy', b'')]:
    for path in ['/d', '/d/f']:
        for prefix in ['user.overlay.', 'trusted.overlay.']:
            try: os.setxattr(path, prefix + name, value)
            except OSError: pass
open('/d/g', 'w').write('g')
print(sorted(os.listdir('/d')))";
        let seen = home.exec(&["/usr/bin/python3", "-c", script]);
        assert_eq!(seen["result"]["stdout"], "['f', 'g']\n", "{seen:#}");
        assert_eq!(
            seen["result"]["changed_files"],
            serde_json::json!(["/d/g"]),
            "as {}",
            home.user()
        );
        home.close_view();
        assert_eq!(
            home.shell("ls /d; cat /d/*")["result"]["stdout"],
            "f\ng\nd\ng"
        );
    }
}

/// `mv` would copy where rename(2) fails; git and os.rename would not.
#[test]
fn a_stored_directory_is_renamed_by_tools_that_do_not_copy() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let made = home.shell(
            "mkdir -p /r/src/deep && cd /r && echo 1 > src/a && echo 2 > src/deep/b && ln -s a src/l && \
             git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm one",
        );
        assert_eq!(made["result"]["exit_code"], 0, "{made:#}");
        home.close_view();
        let moved = home.shell("cd /r && git mv src lib && git status --porcelain");
        assert_eq!(
            moved["result"]["exit_code"],
            0,
            "as {}: {moved:#}",
            home.user()
        );
        let text = moved["result"]["stdout"].as_str().expect("text");
        assert!(
            text.lines().all(|line| line.starts_with("R  src/")),
            "{text}"
        );
        home.close_view();
        let script = "import os; os.rename('/r/lib', '/r/again'); print(sorted(os.listdir('/r')))";
        let renamed = home.exec(&["/usr/bin/python3", "-c", script]);
        assert_eq!(
            renamed["result"]["stdout"],
            "['.git', 'again']\n",
            "as {}",
            home.user()
        );
        let changes = reported(&renamed);
        for name in ["", "/a", "/deep", "/deep/b", "/l"] {
            assert_eq!(
                changes.get(&format!("/r/lib{name}")).map(String::as_str),
                Some("deleted")
            );
            assert_eq!(
                changes.get(&format!("/r/again{name}")).map(String::as_str),
                Some("created")
            );
        }
        home.close_view();
        assert_eq!(
            home.shell("cat /r/again/l /r/again/deep/b")["result"]["stdout"],
            "1\n2\n"
        );
    }
}

/// Both cannot succeed: each would be within the other.
#[test]
fn directories_moved_into_each_other_at_once_stay_whole() {
    const RACE: &str = r#"
import os, threading
def move(source, target, tries):
    for _ in range(tries):
        try:
            return os.rename(source, target)
        except OSError:
            pass
movers = [threading.Thread(target=move, args=args)
          for args in [("/w/a", "/w/b/x", 1), ("/w/b", "/w/a/d", 3000)]]
for thread in movers: thread.start()
for thread in movers: thread.join()
"#;
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.shell("mkdir -p /w/a/s && cd /w/a/s && seq 1500 | xargs -I@ sh -c 'echo @ > f@'");
        home.close_view();
        home.ok(&["write", "/race.py", RACE]);
        home.shell("mkdir /w/b && python3 /race.py");
        let seen = home.shell("find /w -name 'f*' -type f | wc -l; find /w -type d | sort");
        let text = seen["result"]["stdout"].as_str().unwrap();
        let into_b = "1500\n/w\n/w/b\n/w/b/x\n/w/b/x/s\n";
        let into_a = "1500\n/w\n/w/a\n/w/a/d\n/w/a/s\n";
        assert!(
            [into_a, into_b].contains(&text),
            "{text} as {}",
            home.user()
        );
    }
}
