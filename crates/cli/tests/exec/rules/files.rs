//! Rules in files: read again when they change, never taken from a workspace, edited safely.

use super::{ends_with, home, homes, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const PUSH: &str = "\
# ours
[[rule]]
name = \"our fork\"
command = [\"git\", \"push\", \"origin\"]
action = \"allow_with_checkpoint\"
match = [\"git push origin main\"]
no-match = [\"git push other\"]
";

/// A file of this home's user.
fn user_file(home: &avfs_testkit::Home, name: &str, content: &str) -> PathBuf {
    let path = home.path().join("user").join(name);
    fs::create_dir_all(path.parent().expect("it is in a home")).expect("own directory");
    fs::write(&path, content).expect("own file");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("own file");
    let meta = fs::metadata(home.path()).expect("own directory");
    let (uid, gid) = {
        use std::os::unix::fs::MetadataExt;
        (meta.uid(), meta.gid())
    };
    // What the test's own user wrote may be root's, which is trusted as well.
    let _ = std::os::unix::fs::chown(&path, Some(uid), Some(gid));
    path
}

#[test]
fn a_users_rules_hold_at_once_and_a_broken_file_stops_everything() {
    for home in homes() {
        home.ok(&["vault", "create", "v"]);
        let push = || home.exec(&["git", "push", "origin", "main"])["result"].clone();
        assert_eq!(push()["status"], "needs_approval");
        assert_eq!(push()["decision"]["rule"], "default:publishing");

        let path = user_file(&home, ".config/agentvfs/policy.toml", PUSH);
        let allowed = push();
        assert_eq!(allowed["status"], "exited", "{allowed:#}");
        let rule = format!("{}:2", path.display());
        assert_eq!(allowed["decision"]["rule"], rule.as_str());

        fs::write(&path, "[[rule]]\nactoin = \"deny\"\n").unwrap();
        let denied = home.exec(&["true"])["result"].clone();
        assert_eq!(denied["status"], "denied");
        let reason = text(&denied["decision"], "reason");
        assert!(
            reason.contains("policy.toml:2") && reason.contains("actoin"),
            "{reason}"
        );
        ends_with(&home, 1, &["policy", "list"]);

        fs::remove_file(&path).unwrap();
        assert_eq!(home.exec(&["true"])["result"]["status"], "exited");
    }
}

#[test]
fn a_workspace_is_never_read_for_rules() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    for path in [
        "/policy.toml",
        "/workspace/policy.toml",
        "/home/agent/.config/agentvfs/policy.toml",
    ] {
        let source = user_file(&home, "rules.toml", PUSH);
        home.ok(&["write", "-p", path, "--from-file", source.to_str().unwrap()]);
    }
    assert_eq!(
        home.exec(&["git", "push", "origin"])["result"]["status"],
        "needs_approval"
    );
    let listed = home.json(&["policy", "list"]);
    let written = listed["sources"].as_array().unwrap();
    assert!(
        written.iter().all(|source| source["text"].is_null()),
        "{listed:#}"
    );
}

#[test]
fn a_vaults_rules_are_edited_checked_and_inherited() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let good = user_file(&home, "good.toml", PUSH);
    let bad = user_file(
        &home,
        "bad.toml",
        "[[rule]]\ncommand = \"ls\"\naction = \"allow\"\nmatch = [\"cat\"]\n",
    );
    let refused = ends_with(
        &home,
        1,
        &["policy", "edit", "--from", bad.to_str().unwrap()],
    );
    assert!(
        refused.contains("vault:1") && refused.contains("\"cat\""),
        "{refused}"
    );
    home.ok(&["policy", "edit", "--from", good.to_str().unwrap()]);
    let pushed = home.exec(&["git", "push", "origin"])["result"]["decision"].clone();
    assert_eq!(pushed["rule"], "vault v:2");

    home.ok(&["vault", "fork", "v", "w", "--use"]);
    assert_eq!(
        home.exec(&["git", "push", "origin"])["result"]["decision"]["rule"],
        "vault w:2"
    );

    // The editor gets a copy; what it leaves broken replaces nothing.
    let edit = |script: &str| {
        let mut command = home.command(&["policy", "edit"]);
        command
            .env("EDITOR", format!("sh -c '{script}'"))
            .output()
            .unwrap()
    };
    assert!(!edit("echo x >> \"$0\"").status.success());
    assert!(!edit("exit 3").status.success());
    assert_eq!(home.json(&["policy", "list"])["sources"][2]["text"], PUSH);
    assert!(edit("sed -i s/origin/mirror/ \"$0\"").status.success());
    assert_eq!(
        home.exec(&["git", "push", "origin"])["result"]["status"],
        "needs_approval"
    );
    assert_eq!(
        home.exec(&["git", "push", "mirror"])["result"]["status"],
        "exited"
    );
    let journal = home.json(&["audit", "--operation", "policy"]);
    assert_eq!(
        journal["entries"].as_array().unwrap().len(),
        2,
        "{journal:#}"
    );
}

#[test]
fn explain_shows_the_parse_the_rule_and_the_way_out() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let words = [
        "policy",
        "explain",
        "--shell",
        "ls && bash -c 'git push origin main'",
    ];
    let said = ends_with(&home, 126, &words);
    for wanted in [
        "read_only",
        "publishing",
        "default:publishing",
        "git push origin main",
        "command = [\"git\", \"push\", \"origin\", \"main\"]",
    ] {
        assert!(said.contains(wanted), "{wanted}\n{said}");
    }
    let explained = home.json(&words);
    assert_eq!(explained["decision"]["parts"].as_array().unwrap().len(), 3);
    ends_with(&home, 0, &["policy", "check", "--", "cargo", "test"]);
    ends_with(&home, 126, &["policy", "check", "--", "git", "push"]);
    let host = ["policy", "check", "--network", "host", "--", "curl", "x"];
    ends_with(&home, 126, &host);
    ends_with(
        &home,
        126,
        &["policy", "check", "--env", "PAGER=git push", "--", "ls"],
    );
    let tested = home.json(&["policy", "test"]);
    assert_eq!(tested["failed"], 0);
    // Asking runs nothing.
    assert_eq!(
        home.json(&["audit", "--operation", "exec"])["total_count"],
        0
    );
}

/// Each is refused with what and where, and replaces nothing.
#[test]
fn bad_rules_are_refused_with_the_place_and_the_reason() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let good = user_file(&home, "good.toml", PUSH);
    home.ok(&["policy", "edit", "--from", good.to_str().unwrap()]);
    let refused = |path: &str| ends_with(&home, 1, &["policy", "edit", "--from", path]);
    for (content, wanted) in [
        (
            "[[rule]]\ncomand = \"ls\"\naction = \"deny\"\n",
            ["vault:2", "`comand`"],
        ),
        ("[[rule]\naction = \"deny\"\n", ["vault:1", "expected `]`"]),
        (
            "\n[[rule]]\ncommand = \"ls\"\naction = \"denny\"\n",
            ["vault:2", "\"denny\" is not a known action"],
        ),
        (
            "[[rule]]\ncommand = \"ls\"\n",
            ["vault:1", "missing field `action`"],
        ),
        (
            "[[rule]]\naction = \"allow\"\n",
            ["vault:1", "must say what"],
        ),
        (
            "[[rule]]\npath = \"x\"\naction = \"deny\"\n",
            ["vault:1", "not an absolute path"],
        ),
    ] {
        let path = user_file(&home, "bad.toml", content);
        let said = refused(path.to_str().unwrap());
        assert!(
            wanted.iter().all(|part| said.contains(part)),
            "{content}\n{said}"
        );
        assert!(said.contains("hint: mend the rules"), "{said}");
    }
    let binary = user_file(&home, "binary.toml", "x");
    fs::write(&binary, [0xff, 0xfe]).unwrap();
    let missing = home.path().join("nowhere.toml");
    for path in [binary, missing, home.path().to_owned()] {
        let said = refused(path.to_str().unwrap());
        assert!(
            said.contains(&format!("cannot read {}", path.display())),
            "{said}"
        );
    }
    assert_eq!(home.json(&["policy", "list"])["sources"][2]["text"], PUSH);
}

/// Asking with something wrong, and asking when the rules themselves are wrong.
#[test]
fn questions_that_cannot_be_answered_say_why() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    for (words, wanted) in [
        (
            &["policy", "explain", "--env", "X", "--", "ls"][..],
            "\"X\" is not NAME=VALUE",
        ),
        (
            &["policy", "explain", "--cwd", "sub", "--", "ls"],
            "it must begin with '/'",
        ),
    ] {
        let said = ends_with(&home, 1, words);
        assert!(said.contains(wanted), "{said}");
    }
    ends_with(&home, 2, &["policy", "explain"]);
    let said = ends_with(&home, 126, &["policy", "explain", "--shell", "echo 'open"]);
    assert!(said.contains("default:unparseable"), "{said}");

    let path = user_file(
        &home,
        ".config/agentvfs/policy.toml",
        "[[rule]]\ncomand = 1\n",
    );
    let wrong = |code: i32, words: &[&str]| {
        let said = ends_with(&home, code, words);
        assert!(
            said.contains("policy.toml:2") && said.contains("`comand`"),
            "{said}"
        );
    };
    wrong(1, &["policy", "test"]);
    wrong(126, &["policy", "explain", "--", "ls"]);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    for (code, words) in [
        (1, &["policy", "test"][..]),
        (126, &["policy", "explain", "--", "ls"]),
    ] {
        let said = ends_with(&home, code, words);
        assert!(said.contains("it is no regular file"), "{said}");
    }
}
