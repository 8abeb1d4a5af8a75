//! Rules, classes and approvals, through the real binary.

mod always;
mod approvals;
mod class;
mod dry_runs;
mod files;
mod guesses;
mod jobs;
mod limited;
mod made;
mod names;
mod speculation;
mod state;
mod surfaces;

use avfs_testkit::{Home, Person};
use serde_json::Value;

use crate::AVFS;

fn homes() -> Vec<Home> {
    Home::of_every_user(AVFS)
}

fn home() -> Home {
    Home::new(AVFS)
}

/// Runs the binary, which must end with this code; gives what it printed.
fn ends_with(home: &Home, code: i32, words: &[&str]) -> String {
    let output = home.avfs(words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "avfs {words:?}\n{text}");
    text
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} in {value:#}"))
}

const PASSPHRASE: &str = "correct horse battery";

/// A home with a vault in which `sh` needs approval, and an owner who can give it.
fn guarded(home: &Home) {
    home.ok(&["vault", "create", "v"]);
    let rules = home.path().join("rules.toml");
    std::fs::write(
        &rules,
        "[[rule]]\ncommand = \"sh\"\naction = \"require_approval\"\n",
    )
    .expect("own file");
    home.ok(&[
        "policy",
        "edit",
        "--from",
        rules.to_str().expect("a plain path"),
    ]);
    home.ok(&["mkdir", "-p", "/workspace"]);
    home.ok(&[
        "write",
        "/workspace/deploy.sh",
        "echo deployed > out; echo done",
    ]);
    set_up(home);
}

fn set_up(home: &Home) {
    let mut owner = Person::start(home.command(&["approval", "setup"]));
    owner.answer("New passphrase: ", PASSPHRASE);
    owner.answer("Once more: ", PASSPHRASE);
    let (status, said) = owner.end();
    assert!(status.success(), "{said}");
    assert!(!said.contains(PASSPHRASE), "it was shown: {said}");
}

/// Asks for a command that needs approval; gives the request's id.
fn asks(home: &Home, words: &[&str]) -> String {
    let mut all = vec!["proxy", "exec"];
    all.extend(words);
    let envelope = home.json(&all);
    let result = &envelope["result"];
    assert_eq!(result["status"], "needs_approval", "{envelope:#}");
    text(result, "approval_id").to_owned()
}

/// The owner approves, at a terminal.
fn approves(home: &Home, id: &str, more: &[&str]) {
    let mut words = vec!["approval", "approve", id];
    words.extend(more);
    let mut owner = Person::start(home.command(&words));
    owner.answer("Passphrase to let it run once: ", PASSPHRASE);
    let (status, said) = owner.end();
    assert!(status.success(), "{said}");
}

/// Asks for the deployment, and has it approved.
fn approved(home: &Home) -> String {
    let id = asks(home, &DEPLOY);
    approves(home, &id, &[]);
    id
}

const DEPLOY: [&str; 3] = ["--", "sh", "deploy.sh"];

/// Runs a command with an approval, whatever comes of it.
fn with_approval(home: &Home, id: &str, words: &[&str]) -> Value {
    let mut all = vec!["proxy", "exec", "--approval", id];
    all.extend(words);
    home.json(&all)
}

/// Runs a command with an approval that is not for it, or not any more: it is reported with this status and these words,
/// and exits with 126.
#[track_caller]
fn unfit(home: &Home, id: &str, words: &[&str], status: &str, why: &str) {
    let answer = with_approval(home, id, words);
    let result = &answer["result"];
    assert_eq!(result["status"], status, "{answer:#}");
    assert!(text(result, "reason").contains(why), "{answer:#}");
    assert_eq!(answer["success"], false, "{answer:#}");
    let ended = home.avfs(&[&["exec", "--approval", id], words].concat());
    assert_eq!(ended.status.code(), Some(126), "{ended:?}");
}

/// Runs a command with an approval; it must be refused with this kind of error and these words.
fn refused(home: &Home, id: &str, words: &[&str], kind: &str, why: &str) {
    let answer = with_approval(home, id, words);
    assert_eq!(answer["error"], kind, "{answer:#}");
    assert!(text(&answer, "message").contains(why), "{answer:#}");
}
