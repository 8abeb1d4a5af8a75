//! Every verb: help with examples, errors in JSON; colours, manual pages, and the reference.

use crate::AVFS;
use avfs_testkit::{Home, Terminal, with_vault};
use serde_json::Value;
use std::process::Stdio;

/// Every verb there is, as typed.
fn verbs(home: &Home) -> Vec<Vec<String>> {
    let listed = home.ok(&["__docs", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let verbs = listed["verbs"].as_array().unwrap();
    assert!(verbs.len() > 30, "{listed}");
    let words = |verb: &Value| {
        verb.as_str()
            .unwrap()
            .split(' ')
            .map(str::to_owned)
            .collect()
    };
    verbs.iter().map(words).collect()
}

#[test]
fn every_verb_has_help_with_an_example() {
    let home = Home::new(AVFS);
    for verb in verbs(&home) {
        let mut words = verb.clone();
        words.push("--help".into());
        let help = home.ok(&words);
        let example = help.contains("Example");
        let named = help.contains(&format!("avfs {}", verb.join(" ")))
            || help.contains(&format!("avfs {} ", verb[0]));
        assert!(
            example && named,
            "avfs {} --help has no example:\n{help}",
            verb.join(" ")
        );
        let summary = help.lines().next().unwrap_or_default();
        assert!(
            !summary.is_empty() && summary.len() <= 100,
            "{verb:?}: {summary}"
        );
    }
}

#[test]
fn every_verb_errs_in_json_when_asked() {
    let home = Home::new(AVFS);
    for verb in verbs(&home) {
        let mut words = verb.clone();
        words.extend(["--json".into(), "--json=nonsense".into()]);
        let said = home.avfs(&words);
        assert_eq!(said.status.code(), Some(2), "{verb:?}");
        assert!(said.stderr.is_empty(), "{verb:?}: {said:?}");
        let json: Value = serde_json::from_slice(&said.stdout).unwrap();
        let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
        let expected = ["error", "hint", "message", "schema_version"];
        assert_eq!(keys, expected, "{verb:?}: {json}");
        assert_eq!(json["error"], "Invalid", "{verb:?}");
        let message = json["message"].as_str().unwrap();
        assert!(message.contains("nonsense"), "{verb:?}: {message}");
        let hint = json["hint"].as_str().unwrap();
        let named = format!("see `avfs {} --help`", verb.join(" "));
        assert_eq!(hint, named, "{verb:?}");
    }
    // And an error of the daemon's has the same shape.
    let json = home.json(&["ls"]);
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["error", "hint", "message", "path"], "{json}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let home = Home::new(AVFS);
    let coloured = |variables: &[(&str, &str)]| {
        let terminal = Terminal::open();
        let mut command = home.command(&["--vault", "nope", "ls"]);
        command
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied());
        command.stdout(terminal.stdio()).stderr(terminal.stdio());
        command.status().unwrap();
        drop(command);
        let text = terminal.text();
        assert!(text.contains("nope"), "{text}");
        text.contains('\u{1b}')
    };
    assert!(coloured(&[]));
    assert!(!coloured(&[("NO_COLOR", "1")]));
    let piped = home.avfs(&["--vault", "nope", "ls"]);
    assert!(!piped.stderr.contains(&0x1b));
}

#[test]
fn every_verb_has_a_manual_page() {
    let home = Home::new(AVFS);
    let dir = home.path().join("man/man1");
    let written = home.json(&["man", dir.to_str().unwrap()]);
    for verb in verbs(&home) {
        let name = format!("avfs-{}.1", verb.join("-"));
        let page = std::fs::read_to_string(dir.join(&name)).unwrap_or_default();
        assert!(page.contains(".TH"), "{name}: {page}");
        assert!(page.contains("Example"), "{name} has no example");
        let names = written["pages"].as_array().unwrap();
        assert!(names.iter().any(|it| it == name.as_str()), "{written}");
    }
    let top = std::fs::read_to_string(dir.join("avfs.1")).unwrap();
    assert!(top.contains("avfs") && !top.contains("__docs"), "{top}");
    assert_eq!(home.daemon_pid(), None, "it starts no daemon");
}

#[test]
fn aliases_are_names_that_a_shell_can_use() {
    let home = Home::new(AVFS);
    let json = home.json(&["aliases", "--shell", "zsh", "--prefix", "av"]);
    assert_eq!(
        (&json["shell"], &json["prefix"]),
        (&"zsh".into(), &"av".into())
    );
    let cat = serde_json::json!({ "name": "avcat", "command": "avfs cat" });
    assert!(
        json["aliases"].as_array().unwrap().contains(&cat),
        "{json:#}"
    );

    home.ok(&["vault", "create", "v"]);
    home.ok(&["write", "/hello", "there"]);
    let aliases = home.ok(&["aliases"]);
    let avfs = home.command::<&str>(&[]).get_program().to_owned();
    let script =
        format!("shopt -s expand_aliases\navfs() {{ \"$0\" \"$@\"; }}\n{aliases}\nvcat /hello");
    let mut bash = home.host_command("bash");
    let said = bash.arg("-c").arg(script).arg(avfs).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "there", "{said:?}");

    for bad in ["", "$(id)", "a b", "9", "x;y"] {
        let refused = home.avfs(&["aliases", "--prefix", bad]);
        assert_eq!(refused.status.code(), Some(2), "{bad:?}");
    }
}

#[test]
fn the_daemon_can_be_looked_after() {
    with_vault(AVFS, |home| {
        let logs = home.json(&["daemon", "logs"]);
        assert!(
            logs["path"].is_string() && logs["lines"].is_array(),
            "{logs}"
        );
        let path = std::path::PathBuf::from(logs["path"].as_str().unwrap());
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(home.ok(&["daemon", "logs", "-n", "2"]), "two\nthree\n");
        home.ok(&["daemon", "stop"]);
        assert_eq!(home.avfs(&["daemon", "status"]).status.code(), Some(1));
        let mut serve = home.command(&["serve", "--foreground", "--json", "--idle-timeout", "600"]);
        let mut serve = serve
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let up = || home.json(&["daemon", "status"])["running"] == true;
        assert!(avfs_testkit::wait_for(
            std::time::Duration::from_secs(20),
            up
        ));
        let stopped = home.json(&["daemon", "stop"]);
        assert_eq!(stopped["stopped"], true, "{stopped}");
        assert!(serve.wait().unwrap().success());
        let mut said = String::new();
        std::io::Read::read_to_string(&mut serve.stdout.take().unwrap(), &mut said).unwrap();
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!(said["socket"].is_string(), "{said}");
    });
}

#[test]
fn the_references_are_current() {
    let home = Home::new(AVFS);
    for (name, words) in [
        ("cli.md", &["__docs"][..]),
        ("http.md", &["__docs", "http"]),
        ("openapi.json", &["__docs", "openapi"]),
    ] {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        let written = std::fs::read_to_string(path).unwrap_or_default();
        let current = home.ok(words);
        let differs = written.lines().zip(current.lines()).find(|(a, b)| a != b);
        let make = words.join(" ");
        assert!(
            written == current,
            "docs/{name} is out of date ({differs:?}): run `cargo run -p agentvfs-cli -- {make} > docs/{name}`"
        );
    }
}
