//! Completions: every verb, and what a running daemon knows. Names of files are an agent's.

use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use std::process::{Command, Stdio};

/// What a shell is offered for the last word.
fn offered(home: &Home, shell: &str, words: &[&str]) -> Vec<String> {
    let mut command = home.command(&["--", "avfs"]);
    command.args(words).env("AVFS_COMPLETE", shell);
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_IFS", "\n");
    let said = command.output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let text = String::from_utf8(said.stdout).unwrap();
    // zsh and fish get a description behind the word.
    let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    text.lines().map(word).collect()
}

#[test]
fn every_verb_is_offered_and_no_daemon_is_started() {
    let home = Home::new(AVFS);
    let listed = home.ok(&["__docs", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    for verb in listed["verbs"].as_array().unwrap() {
        let words: Vec<&str> = verb.as_str().unwrap().split(' ').collect();
        let found = offered(&home, "bash", &words);
        assert!(
            found.iter().any(|it| it == words[words.len() - 1]),
            "{words:?}: {found:?}"
        );
    }
    assert!(
        !offered(&home, "bash", &["__"])
            .iter()
            .any(|it| it.starts_with("__"))
    );
    for words in [
        &["--vault", ""][..],
        &["cat", "/"],
        &["job", "wait", ""],
        &["vault", "use", ""],
    ] {
        offered(&home, "bash", words);
    }
    assert_eq!(home.daemon_pid(), None, "a completion starts no daemon");
}

#[test]
fn what_the_home_holds_is_offered() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "create", "other"]);
        home.ok(&["write", "/src/main.rs", "x", "-p"]);
        home.ok(&["write", "/src/more.rs", "x"]);
        home.ok(&["--vault", "other", "write", "/elsewhere", "x"]);
        home.ok(&["checkpoint", "save", "before-it"]);
        let job = home.json(&["job", "start", "--", "true"])["job_id"].to_string();
        home.ok(&["job", "wait", &job]);
        let is = |words: &[&str], expected: &[&str]| {
            // A busy machine may answer too late; then a shell offers nothing.
            let all = || offered(home, "bash", words) == expected;
            assert!(
                avfs_testkit::wait_for(avfs_testkit::SOON, all),
                "{words:?}: {:?}",
                offered(home, "bash", words)
            );
        };
        is(&["vault", "use", "o"], &["other"]);
        is(&["--vault", "o"], &["other"]);
        is(&["checkpoint", "restore", "be"], &["before-it"]);
        is(
            &["vault", "fork", "v", "w", "--checkpoint", "be"],
            &["before-it"],
        );
        is(&["job", "logs", &job], &[&job]);
        is(&["cat", "/s"], &["/src/"]);
        is(&["cat", "s"], &["src/"]);
        is(&["cat", "/src/m"], &["/src/main.rs", "/src/more.rs"]);
        is(&["cat", "src/ma"], &["src/main.rs"]);
        is(&["--vault", "other", "cat", "/e"], &["/elsewhere"]);
        is(&["checkout", "/src/main.rs", "--version", "v2"], &["v2"]);
        is(&["diff", "HE"], &["HEAD"]);
        is(&["cat", "/nowhere/x"], &[]);
    });
}

/// Whoever accepts an offered word must not run what a file is called.
#[test]
fn a_hostile_name_is_escaped_or_left_out() {
    with_vault(AVFS, |home| {
        for name in [
            "a b",
            "$(touch pwned)",
            "`id`",
            "x;y",
            "quo'te",
            "st*r",
            "esc\u{1b}[2J",
            "new\nline",
            "bi\u{202e}di",
        ] {
            home.ok(&["write", &format!("/d/{name}"), "x", "-p"]);
        }
        let mut found = Vec::new();
        let all = || {
            found = offered(home, "bash", &["cat", "/d/"]);
            !found.is_empty()
        };
        assert!(avfs_testkit::wait_for(avfs_testkit::SOON, all));
        found.sort();
        assert_eq!(
            found,
            [
                "/d/\\$\\(touch\\ pwned\\)",
                "/d/\\`id\\`",
                "/d/a\\ b",
                "/d/quo\\'te",
                "/d/st\\*r",
                "/d/x\\;y",
            ]
        );
        // bash reads each of them back as one word, and runs nothing.
        let script = format!("printf '%s\\n' {}", found.join(" "));
        let said = home
            .host_command("bash")
            .args(["-c", &script])
            .output()
            .unwrap();
        let words = String::from_utf8(said.stdout).unwrap();
        assert_eq!(words.lines().count(), 6, "{words}");
        assert!(words.contains("/d/$(touch pwned)\n"), "{words}");
        assert!(!home.path().join("pwned").exists());
        let all = || offered(home, "bash", &["cat", "/d/a\\ "]) == ["/d/a\\ b"];
        assert!(avfs_testkit::wait_for(avfs_testkit::SOON, all));
    });
}

#[test]
fn a_daemon_that_does_not_answer_is_not_waited_for() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let daemon = home.daemon_pid().unwrap();
    avfs_testkit::signal(daemon, rustix::process::Signal::STOP);
    // It returns at all: whoever waited for the daemon would wait for ever.
    let found = std::panic::catch_unwind(|| offered(&home, "bash", &["vault", "use", "v"]));
    avfs_testkit::signal(daemon, rustix::process::Signal::CONT);
    let found = found.unwrap();
    assert!(!found.iter().any(|it| it == "v"), "{found:?}");
}

#[test]
fn every_shell_can_read_its_script() {
    let home = Home::new(AVFS);
    for shell in ["bash", "zsh", "fish"] {
        let script = home.ok(&["completions", shell]);
        assert!(script.contains("AVFS_COMPLETE"), "{script}");
        let json = home.json(&["completions", shell]);
        assert_eq!(json["script"].as_str(), Some(&script[..]));
        let path = home.path().join(shell);
        std::fs::write(&path, &script).unwrap();
        // Where the shell is there, it must be able to read it.
        let mut check = Command::new(shell);
        check.arg("-n").arg(&path).stdin(Stdio::null());
        if let Ok(status) = check.status() {
            assert!(status.success(), "{shell} cannot read its completions");
        }
    }
    assert_eq!(home.avfs(&["completions", "tcsh"]).status.code(), Some(2));
}
