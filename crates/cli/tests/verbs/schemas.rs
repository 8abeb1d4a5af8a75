//! `docs/schemas/`: what the program makes, and what its answers are like.

use crate::AVFS;
use avfs_testkit::{Home, skip, with_vault};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

#[test]
fn the_schemas_are_current() {
    let home = Home::new(AVFS);
    let made: Map<String, Value> = serde_json::from_str(&home.ok(&["__docs", "schemas"])).unwrap();
    let make = "run `cargo run -p agentvfs-cli -- __docs schemas docs/schemas`";
    for (name, schema) in &made {
        let path = documents().join(format!("{name}.json"));
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == format!("{schema:#}\n"),
            "docs/schemas/{name}.json is out of date: {make}"
        );
    }
    let there = std::fs::read_dir(documents()).unwrap();
    for file in there.map(|entry| entry.unwrap().path()) {
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(made.contains_key(name), "there is no answer {name}");
    }
}

/// Checks pairs of a schema's name and an answer.
const CHECK: &str = "
import json, sys
from jsonschema import Draft202012Validator as Validator
for name, answer in json.load(sys.stdin):
    schema = json.load(open(sys.argv[1] + '/' + name + '.json'))
    Validator.check_schema(schema)
    for error in Validator(schema).iter_errors(answer):
        print(name, error.json_path, error.message[:300])
";

/// Complaints about answers, by a validator that knows nothing of this project.
fn complaints(tools: &Path, answers: &[(&str, Value)]) -> String {
    use std::io::Write;
    let mut validator = Command::new("/usr/bin/python3")
        .args(["-c", CHECK])
        .arg(documents())
        .env("PYTHONPATH", tools)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let text = serde_json::to_vec(answers).unwrap();
    validator.stdin.take().unwrap().write_all(&text).unwrap();
    let output = validator.wait_with_output().unwrap();
    assert!(output.status.success(), "the validator failed");
    String::from_utf8(output.stdout).unwrap()
}

/// A list that is an array on the command line, as the object that HTTP has.
fn listed(key: &str, list: Value) -> Value {
    assert!(list.is_array(), "{list}");
    json!({ "schema_version": 1, key: list })
}

fn answers(home: &Home) -> Vec<(&'static str, Value)> {
    let ask = |words: &[&str]| home.whole_json(words);
    let mut answers = vec![
        ("vault_create", ask(&["vault", "create", "w"])),
        ("vault_fork", ask(&["vault", "fork", "v", "f"])),
        ("mkdir", ask(&["mkdir", "-p", "/d/e"])),
        ("write", ask(&["write", "/d/a", "text"])),
        ("cat", ask(&["cat", "/d/a"])),
        ("stat", ask(&["stat", "/d/a"])),
        ("cp", ask(&["cp", "/d/a", "/d/b"])),
        ("mv", ask(&["mv", "/d/b", "/d/c"])),
        (
            "edit",
            ask(&["edit", "/d/a", "--old", "text", "--new", "words"]),
        ),
        ("chmod", ask(&["chmod", "600", "/d/a"])),
        ("grep", ask(&["grep", "words", "/"])),
        ("find", ask(&["find", "/", "--name", "a"])),
        ("search", ask(&["search", "words"])),
        ("tag", ask(&["tag", "/d/a", "good"])),
        ("rm", ask(&["rm", "/d/c"])),
        ("checkpoint_save", ask(&["checkpoint", "save", "here"])),
        ("checkpoint_list", ask(&["checkpoint", "list"])),
        ("diff", ask(&["diff", "--patch", "--stat"])),
        ("vault_info", ask(&["vault", "info"])),
        ("policy_list", ask(&["policy", "list"])),
        (
            "policy_explain",
            ask(&["policy", "explain", "--", "git", "push"]),
        ),
        ("approval_list", ask(&["approval", "list"])),
        ("journal", ask(&["audit"])),
        ("journal_verify", ask(&["audit", "verify"])),
        ("stats", ask(&["stats"])),
        ("quota", ask(&["quota"])),
        ("gc", ask(&["gc", "--dry-run"])),
        ("fsck", ask(&["fsck"])),
        ("mounts", ask(&["mounts"])),
        ("network_show", ask(&["network", "show"])),
        ("port_list", ask(&["port", "list"])),
        ("error", ask(&["cat", "/none"])),
        ("error", ask(&["cat", "--none"])),
        ("vault_list", listed("vaults", ask(&["vault", "list"]))),
        ("vault_log", listed("versions", ask(&["vault", "log"]))),
        ("log", listed("versions", ask(&["log", "/d/a"]))),
    ];
    let mut entries = listed("entries", ask(&["ls", "-l", "/d"]));
    entries["more"] = false.into();
    answers.push(("ls", entries));
    let make = "echo '*.o' > /.gitignore; echo > /x.o; printf 'a\\377' > /y; echo > \"$(printf '/n\\377')\"; sleep 600 & exit 3";
    for words in [
        &["--patch", "--home-changes", "--shell", make][..],
        &["--shell", "kill -9 $$"],
        &["--", "no-such-program"],
        &["--shell", "curl http://example.test; rm -rf /d"],
        &["--speculate", "--", "git", "push", "--force"],
    ] {
        answers.push(("exec", ask(&[&["exec"], words].concat())));
    }
    let id = answers[answers.len() - 5].1["result"]["exec"].clone();
    let id = id.as_str().expect("an id");
    answers.push(("changes", ask(&["changes", id, "--all", "--patch"])));
    answers.push(("job_start", ask(&["job", "start", "--", "true"])));
    answers.push(("job_wait", ask(&["job", "wait", "1"])));
    answers.push(("job_poll", ask(&["job", "poll", "1"])));
    answers.push(("job_list", ask(&["job", "list"])));
    answers.push((
        "checkpoint_restore",
        ask(&["checkpoint", "restore", "here"]),
    ));
    answers.push(("vault_delete", ask(&["vault", "delete", "f", "-y"])));
    answers
}

#[test]
fn answers_are_as_their_schemas_say() {
    let Some(tools) = avfs_testkit::tools(env!("CARGO_MANIFEST_DIR")) else {
        return;
    };
    let tools = tools.join("schemathesis");
    if !tools.is_dir() {
        return skip("no validator; scripts/test fetches one");
    }
    with_vault(AVFS, |home| {
        let mut answers = answers(home);
        assert_eq!(complaints(&tools, &answers), "");
        // It does complain.
        answers.truncate(1);
        answers[0]
            .1
            .as_object_mut()
            .unwrap()
            .remove("schema_version");
        assert!(complaints(&tools, &answers).contains("schema_version"));
    });
}
