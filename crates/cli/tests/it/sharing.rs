//! What forks share, and what they must not.

use crate::{changes, with_vault};

fn shell_in(home: &avfs_testkit::Home, vault: &str, text: &str) -> serde_json::Value {
    home.json(&["--vault", vault, "exec", "--shell", text])
}

#[test]
fn forks_that_differ_in_a_mode_each_show_their_own() {
    with_vault(|home| {
        home.ok(&["write", "/tool", "#!/bin/sh\necho ran\n"]);
        home.ok(&["vault", "fork", "v", "plain"]);
        home.ok(&["vault", "fork", "v", "runs"]);
        let envelope = shell_in(home, "runs", "chmod 755 /tool");
        assert_eq!(changes(&envelope["result"]), ["mode /tool"]);
        for _ in 0..2 {
            let mode =
                |vault| shell_in(home, vault, "stat -c %a /tool")["result"]["stdout"].clone();
            assert_eq!(mode("plain"), "644\n");
            assert_eq!(mode("runs"), "755\n");
        }
        assert_eq!(shell_in(home, "runs", "/tool")["result"]["stdout"], "ran\n");
        assert_eq!(shell_in(home, "plain", "/tool")["result"]["exit_code"], 126);
    });
}

#[test]
fn of_two_equal_files_only_the_written_one_changes() {
    with_vault(|home| {
        home.ok(&["write", "/one", "same"]);
        home.ok(&["write", "/two", "same"]);
        let envelope = home.shell("cat /one /two; echo more >> /one; cat /two");
        assert_eq!(envelope["result"]["stdout"], "samesamesame");
        assert_eq!(changes(&envelope["result"]), ["modified /one"]);
        assert_eq!(home.ok(&["cat", "/two"]), "same");
        assert_eq!(home.ok(&["cat", "/one"]), "samemore\n");
    });
}

#[test]
fn a_hard_link_pair_stays_a_pair() {
    with_vault(|home| {
        home.shell("echo one > /a; ln /a /b; echo alone > /c");
        // A new daemon shows the vault anew, from what is stored alone.
        home.ok(&["daemon", "stop"]);
        let envelope = home.shell("stat -c %h /a /b /c; [ /a -ef /b ] && echo same");
        assert_eq!(envelope["result"]["stdout"], "2\n2\n1\nsame\n");
        home.ok(&["vault", "fork", "v", "f"]);
        let envelope = shell_in(home, "f", "stat -c %h /a /b");
        assert_eq!(envelope["result"]["stdout"], "2\n2\n");
    });
}

#[test]
fn a_fork_and_its_source_part_ways() {
    with_vault(|home| {
        home.ok(&["write", "/f", "old"]);
        home.ok(&["vault", "fork", "v", "f", "--use"]);
        home.shell("echo new > /f; mkdir /d; echo x > /d/x");
        assert_eq!(home.ok(&["--vault", "v", "cat", "/f"]), "old");
        let diff = home.json(&["diff"]);
        assert_eq!(
            changes(&diff),
            ["created /d", "created /d/x", "modified /f"]
        );
        let diff = home.json(&["diff", "vault:v", "HEAD", "--patch"]);
        let patch = diff["patch"].as_str().unwrap();
        assert!(patch.contains("-old") && patch.contains("+new"), "{patch}");
        assert_eq!(
            home.json(&["--vault", "v", "diff", "HEAD", "HEAD"])["identical"],
            true
        );
    });
}
