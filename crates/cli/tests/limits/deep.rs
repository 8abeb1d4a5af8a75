//! Trees, commands and requests that are as deep as can be: the daemon answers or refuses, and lives on.

use crate::AVFS;
use avfs_testkit::{Home, ask, status_and_body};
use std::fs;

/// As many levels as one path can name, and how often such a chain is put into the deepest directory of another one.
const LEVELS: usize = 1_900;
const CHAINS: usize = 3;

/// A tree that is deeper than a path can name, at `/deep`.
fn with_deep_tree(home: &Home) {
    let chain = "/d".repeat(LEVELS);
    home.ok(&["mkdir", "-p", "/deep"]);
    home.ok(&["write", "/deep/f", "x"]);
    for _ in 0..CHAINS {
        home.ok(&["mkdir", "-p", &format!("/next{chain}")]);
        home.ok(&["mv", "/deep", &format!("/next{chain}/deep")]);
        home.ok(&["mv", "/next", "/deep"]);
    }
}

/// Asks for something that may be refused. The program that asks must end by itself.
fn ends(home: &Home, words: &[&str]) {
    let output = home.avfs(words);
    let said = String::from_utf8_lossy(&output.stderr);
    let head: String = said.chars().take(500).collect();
    assert!(output.status.code().is_some(), "{}: {head}", words[0]);
}

#[test]
fn a_deep_tree_goes_through_every_verb() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let daemon = home.daemon_pid();
        home.ok(&["checkpoint", "save", "flat"]);
        with_deep_tree(&home);
        home.ok(&["checkpoint", "save", "deep"]);
        assert_eq!(home.ok(&["ls", "/deep"]).lines().count(), 1);
        let text = home.ok(&["tree", "/deep", "-L", "1000"]);
        assert_eq!(text.lines().count(), 1_003);
        let json = home.ok(&["tree", "/", "--json"]);
        let (open, shut) = (json.matches('{').count(), json.matches('}').count());
        let levels = CHAINS * (LEVELS + 1);
        assert!(open == shut && open > levels, "{open} {shut}");
        ends(&home, &["diff", "flat", "deep"]);
        ends(&home, &["find", "/", "--name", "f"]);
        home.ok(&["vault", "fork", "v", "other"]);
        home.ok(&["checkpoint", "restore", "flat"]);
        home.ok(&["checkpoint", "restore", "deep"]);
        home.ok(&["fsck"]);
        home.ok(&["gc", "--grace", "0"]);
        let outside = home.path().join("outside");
        ends(&home, &["export", "/deep", outside.to_str().unwrap()]);
        ends(&home, &["import", outside.to_str().unwrap(), "/again"]);
        let archive = home.path().join("archive.tar");
        ends(
            &home,
            &["export", "/deep", "--tar", archive.to_str().unwrap()],
        );
        ends(&home, &["import", archive.to_str().unwrap(), "/unpacked"]);
        // The view of it, and its commit.
        ends(
            &home,
            &["proxy", "exec", "--", "sh", "-c", "echo new > /deep/new"],
        );
        ends(&home, &["proxy", "exec", "--", "rm", "-rf", "/deep/d"]);
        ends(&home, &["rm", "-r", "/deep"]);
        ends(&home, &["gc", "--grace", "0"]);
        assert_eq!(home.shell("echo on")["result"]["stdout"], "on\n");
        assert_eq!(home.daemon_pid(), daemon, "it is the same daemon");
        // Path by path, a tree this deep cannot be removed.
        let _ = fs::remove_dir_all(&outside);
    }
}

#[test]
fn a_deep_command_is_judged_or_refused() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let daemon = home.daemon_pid();
        for (open, close) in [
            ("{ ", "; }"),
            ("( ", " )"),
            ("$( ", " )"),
            ("eval ", ""),
            // These words only look like the ends of compounds.
            ("{ echo }; ", "; }"),
            ("if true; then echo fi; ", "; fi"),
            ("( case x in a) echo esac; ", ";; esac )"),
            ("[[ a == ]] && ", " ]]"),
        ] {
            for depth in [15, 800, 2_500] {
                let text = format!("{}true{}", open.repeat(depth), close.repeat(depth));
                let request = serde_json::json!({ "shell": text }).to_string();
                let address = ("POST", "/v1/vaults/v/policy/explain");
                let answer = ask(&home.socket(), &[], address, request.as_bytes());
                assert_eq!(status_and_body(&answer).0, 200, "{answer}");
                ends(&home, &["proxy", "exec", "--shell", &text]);
            }
        }
        assert_eq!(home.shell("echo on")["result"]["stdout"], "on\n");
        assert_eq!(home.daemon_pid(), daemon, "it is the same daemon");
    }
}

#[test]
fn a_deep_document_is_refused() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let daemon = home.daemon_pid();
        for open in ["[", "{\"a\":", "{\"path\":[", "[{\"a\":"] {
            for depth in [200, 100_000] {
                let body = open.repeat(depth);
                let address = ("POST", "/v1/vaults/v/files/ls");
                let answer = ask(&home.socket(), &[], address, body.as_bytes());
                let (status, _) = status_and_body(&answer);
                assert!(
                    matches!(status, 400 | 413 | 422),
                    "{open:?} x {depth}: {answer}"
                );
            }
        }
        assert_eq!(home.daemon_pid(), daemon, "it is the same daemon");
    }
}
