//! How the command line answers: exit codes, errors, hints, help.

use crate::AVFS;
use avfs_testkit::{Home, Terminal, wait_for, with_vault};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_unknown_vault_is_an_error_with_a_kind() {
    let home = Home::new(AVFS);
    let said = home.avfs(&["--vault", "nope", "ls"]);
    assert_eq!(said.status.code(), Some(1));
    assert!(said.stdout.is_empty());
    let stderr = text(&said.stderr);
    assert!(
        stderr.starts_with("error: ") && stderr.contains("nope"),
        "{stderr}"
    );
    let json = home.json(&["--vault", "nope", "ls"]);
    assert_eq!(json["error"], "NotFound");
    assert!(json["message"].as_str().unwrap().contains("nope"), "{json}");
}

#[test]
fn without_a_vault_the_hint_says_how_to_make_one() {
    let home = Home::new(AVFS);
    let said = home.avfs(&["ls"]);
    assert_eq!(said.status.code(), Some(1));
    assert!(
        text(&said.stderr).contains("hint: "),
        "{}",
        text(&said.stderr)
    );
    assert!(
        text(&said.stderr).contains("avfs vault"),
        "{}",
        text(&said.stderr)
    );
}

#[test]
fn names_and_paths_are_checked() {
    with_vault(AVFS, |home| {
        for words in [
            vec!["vault", "create", "-- bad"],
            vec!["vault", "create", "a/b"],
            vec!["vault", "fork", "v", "../x"],
            vec!["checkpoint", "save", "a b"],
            vec!["cat", "/a/../b"],
            vec!["diff", "no such point!"],
        ] {
            let said = home.avfs(&words);
            assert!(!said.status.success(), "{words:?} was accepted");
            assert!(
                !text(&said.stderr).contains("panicked"),
                "{}",
                text(&said.stderr)
            );
        }
        let json = home.json(&["cat", "/a/../b"]);
        assert_eq!(json["error"], "Invalid", "{json}");
        assert_eq!(json["path"], "/a/../b", "{json}");
        let json = home.json(&["cat", "/missing"]);
        assert_eq!(json["error"], "NotFound", "{json}");
        assert_eq!(json["path"], "/missing", "{json}");
        let json = home.json(&["vault", "create", "v"]);
        assert_eq!(json["error"], "AlreadyExists", "{json}");
    });
}

#[test]
fn wrong_usage_is_code_two_and_json_when_asked() {
    let home = Home::new(AVFS);
    let said = home.avfs(&["frobnicate"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(said.stdout.is_empty());
    let said = home.avfs(&["--json", "frobnicate"]);
    assert_eq!(said.status.code(), Some(2));
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(json["error"], "Invalid");
    assert!(json["message"].as_str().unwrap().contains("frobnicate"));
    // What follows `--` belongs to the command.
    let said = home.avfs(&["frobnicate", "--", "--json"]);
    assert!(said.stdout.is_empty());
}

#[test]
fn exec_keeps_its_own_failures_apart_from_the_commands() {
    with_vault(AVFS, |home| {
        let code = |words: &[&str]| home.avfs(words).status.code();
        assert_eq!(code(&["exec", "--", "true"]), Some(0));
        assert_eq!(code(&["exec", "--shell", "exit 7"]), Some(7));
        assert_eq!(code(&["exec", "--shell", "kill -9 $$"]), Some(137));
        assert_eq!(
            code(&["exec", "--timeout", "200", "--", "sleep", "60"]),
            Some(124)
        );
        assert_eq!(code(&["--vault", "nope", "exec", "--", "true"]), Some(125));
        assert_eq!(code(&["exec", "--", "cat", "/etc/shadow"]), Some(126));
        assert_eq!(code(&["exec", "--", "no-such-program"]), Some(127));
        assert_eq!(code(&["exec"]), Some(2));
        assert_eq!(code(&["exec", "--env", "novalue", "--", "true"]), Some(125));
    });
}

#[test]
fn output_is_the_commands_and_the_report_goes_beside_it() {
    with_vault(AVFS, |home| {
        let said = home.avfs(&["exec", "--shell", "echo out; echo err >&2; echo x > /made"]);
        assert_eq!(text(&said.stdout), "out\n");
        let stderr = text(&said.stderr);
        assert!(stderr.starts_with("err\n"), "{stderr}");
        assert!(stderr.contains("A /made"), "{stderr}");
        assert!(
            !stderr.contains('\u{1b}'),
            "no colours without a terminal: {stderr}"
        );
        let said = home.avfs(&["--json", "exec", "--shell", "echo out; echo err >&2"]);
        assert!(said.stderr.is_empty(), "{}", text(&said.stderr));
        let envelope: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(envelope["result"]["stdout"], "out\n");
        assert_eq!(envelope["result"]["stderr"], "err\n");
    });
}

#[test]
fn a_reader_that_leaves_ends_the_command() {
    with_vault(AVFS, |home| {
        let mut child = home.command(&["exec", "--", "yes", "reader-that-leaves"]);
        let mut child = child
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = [0u8; 10];
        let mut stdout = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
        drop(stdout);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(141));
        let gone = avfs_testkit::wait_for(std::time::Duration::from_secs(10), || {
            avfs_testkit::leftover_processes("reader-that-leaves").is_empty()
        });
        assert!(gone, "the command goes on");
    });
}

#[test]
fn write_reads_standard_input_when_there_is_no_content() {
    with_vault(AVFS, |home| {
        let bytes: Vec<u8> = (0..=255u8).cycle().take(3_000_000).collect();
        let mut child = home.command(&["write", "big"]);
        let mut child = child
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(home.avfs(&["cat", "/big"]).stdout, bytes);
        home.ok(&["write", "-a", "/text", "one "]);
        home.ok(&["write", "--append", "/text", "--two"]);
        assert_eq!(home.ok(&["cat", "text"]), "one --two");
    });
}

#[test]
fn every_verb_explains_itself() {
    let home = Home::new(AVFS);
    let help = home.ok(&["--help"]);
    assert!(help.contains("Examples:"));
    assert!(!help.contains("__keeper"), "inner roles are no verbs");
    for verb in [
        "vault",
        "ls",
        "write",
        "import",
        "checkpoint",
        "diff",
        "proxy",
        "exec",
        "audit",
    ] {
        assert!(home.ok(&[verb, "--help"]).contains("Usage: avfs"), "{verb}");
    }
    assert!(home.ok(&["--version"]).starts_with("avfs "));
    assert_eq!(home.daemon_pid(), None, "help starts no daemon");
}

#[test]
fn help_has_groups_and_avfs_alone_five_lines() {
    let home = Home::new(AVFS);
    let help = home.ok(&["help"]);
    assert_eq!(help, home.ok(&["--help"]));
    let places = [
        "Vaults:", "Files:", "History:", "Running:", "Sharing:", "Care:", "Options:",
    ];
    let places: Vec<usize> = places
        .iter()
        .map(|group| help.find(group).unwrap())
        .collect();
    assert!(places.is_sorted(), "{help}");
    let of = |verb: &str| help.find(&format!("\n  {verb} ")).unwrap();
    assert!(
        of("checkpoint") > places[2] && of("checkpoint") < places[3],
        "{help}"
    );
    assert!(!help.contains('\u{1b}'), "no colours without a terminal");

    let alone = home.avfs::<&str>(&[]);
    assert_eq!(alone.status.code(), Some(2));
    let said = text(&alone.stderr);
    assert_eq!(said.lines().count(), 5, "{said}");
    assert!(said.lines().all(|line| line.starts_with("avfs ")), "{said}");
    assert!(alone.stdout.is_empty());
    assert_eq!(home.daemon_pid(), None, "help starts no daemon");
}

#[test]
fn exec_is_explained_as_fully_as_proxy_exec() {
    let home = Home::new(AVFS);
    let long = home.ok(&["proxy", "exec", "--help"]);
    let short = home.ok(&["exec", "--help"]);
    let same = |help: &str| help.lines().skip(1).collect::<Vec<_>>().join("\n");
    let long = long.replace("proxy exec", "exec");
    assert_eq!(same(&short), same(&long));
    assert!(
        short.contains("avfs exec --fork --keep-on-success"),
        "{short}"
    );
}

#[test]
fn the_vault_may_be_named_by_flag_or_environment() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "create", "w"]);
        home.ok(&["--vault", "w", "write", "/f", "in w"]);
        assert!(
            !home.avfs(&["cat", "/f"]).status.success(),
            "the current vault is still v"
        );
        let output = home
            .command(&["cat", "/f"])
            .env("AVFS_VAULT", "w")
            .output()
            .unwrap();
        assert_eq!(text(&output.stdout), "in w");
        let output = home
            .command(&["--vault", "v", "cat", "/f"])
            .env("AVFS_VAULT", "w")
            .output()
            .unwrap();
        assert!(!output.status.success(), "the flag wins");
    });
}

#[test]
fn an_answer_that_takes_long_is_waited_for_with_a_sign() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let pid = home.daemon_pid().unwrap().to_string();
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(status.success());
    };
    let terminal = Terminal::open();
    signal("-STOP");
    let mut command = home.command(&["vault", "list"]);
    command.env("TERM", "xterm");
    command.stdout(terminal.stdio()).stderr(terminal.stdio());
    let mut child = command.spawn().unwrap();
    drop(command);
    let shown = wait_for(Duration::from_secs(10), || {
        terminal.so_far().contains("working")
    });
    signal("-CONT");
    assert!(child.wait().unwrap().success());
    assert!(shown, "{}", terminal.text());
}
