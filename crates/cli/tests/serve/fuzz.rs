//! schemathesis: requests made from the description, right and wrong ones, of every operation. No answer may contradict the
//! description, and none may be a fault of the server.
//!
//! `AVFS_FUZZ_SEED=8 AVFS_FUZZ_EXAMPLES=50 … --test serve fuzz` is the long run.

use super::{Server, home, key};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The checks that are left out, and why: a name or a path can have the right type and still be none; a read may be sent by
/// `POST`, which creates nothing that would have to be found afterwards.
const LEFT_OUT: &str = "positive_data_acceptance,ensure_resource_availability";

/// Where `scripts/test` has put it.
fn schemathesis() -> Option<PathBuf> {
    let tools = avfs_testkit::tools(env!("CARGO_MANIFEST_DIR"))?;
    let found = tools.join("schemathesis");
    if found.is_dir() {
        return Some(found);
    }
    avfs_testkit::skip(&format!(
        "{} is not there; scripts/test makes it",
        found.display()
    ));
    None
}

fn from_environment(name: &str, usual: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| usual.to_owned())
}

/// A copy of the description with one way to show a credential: a request shows one.
fn description(server: &Server, key: &str, dir: &Path) -> PathBuf {
    let answer = server.get(key, "/openapi.json");
    assert_eq!(answer.status, 200, "{}", answer.head);
    let mut document = answer.json();
    document["security"] = serde_json::json!([{ "bearer": [] }]);
    let schemes = document["components"]["securitySchemes"].as_object_mut();
    schemes.expect("schemes").remove("key");
    let path = dir.join("openapi.json");
    fs::write(&path, document.to_string()).expect("own file");
    path
}

/// Runs it, while somebody else changes a vault all the time.
fn fuzz(server: &Server, tool: &Path, dir: &Path, words: &[&str]) {
    let over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                server.home.ok(&["--vault", "other", "write", "/f", "x"]);
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        let output = Command::new("/usr/bin/python3")
            .args(["-m", "schemathesis.cli", "--config-file"])
            .arg(dir.join("schemathesis.toml"))
            .args(["run", "openapi.json", "--url"])
            .arg(format!("http://{}", server.address))
            .args(["--seed", &from_environment("AVFS_FUZZ_SEED", "7")])
            .args(["--request-timeout", "60", "--no-color"])
            .args(["--suppress-health-check", "all", "--continue-on-failure"])
            .args(["--exclude-checks", LEFT_OUT])
            .args(words)
            .env("PYTHONPATH", tool)
            .current_dir(dir)
            .output();
        over.store(true, Ordering::Relaxed);
        output.expect("python runs")
    });
    let said = String::from_utf8_lossy(&output.stdout);
    let cut = said.find("FAILURES").or(said.find("ERRORS")).unwrap_or(0);
    let faults: String = said[cut..].chars().take(6000).collect();
    assert!(
        output.status.success(),
        "{faults}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// How it shows a key, and which vault it asks for: with made-up names nothing but 404 would be seen. A clone from elsewhere
/// is refused with 503, because vaults have no network.
fn settings(key: &str) -> String {
    format!(
        "[parameters]\n\"path.vault\" = \"v\"\n\n[auth.openapi.bearer]\nbearer = \"{key}\"\n\n\
         [[operations]]\ninclude-operation-id = \"git_clone\"\n\
         checks.not_a_server_error.expected-statuses = [\"2xx\", \"4xx\", \"503\"]\n"
    )
}

fn served(scopes: &str) -> (Server, String, PathBuf) {
    let home = home();
    for vault in ["v", "other"] {
        home.ok(&["vault", "create", vault]);
    }
    let words = ["--scope", scopes, "--rate", "100000"];
    let key = key(&home, "fuzz", &words);
    let dir = home.path().join("fuzz");
    fs::create_dir(&dir).expect("own directory");
    let server = Server::start(home, &[]);
    description(&server, &key, &dir);
    fs::write(dir.join("schemathesis.toml"), settings(&key)).expect("own file");
    (server, key, dir)
}

#[test]
fn nothing_that_an_agent_sends_is_answered_wrongly() {
    let Some(tool) = schemathesis() else { return };
    let (server, _, dir) = served("read,write,exec");
    let examples = from_environment("AVFS_FUZZ_EXAMPLES", "3");
    let words = [
        "--phases",
        "coverage,fuzzing,stateful",
        "--max-examples",
        &examples,
    ];
    fuzz(&server, &tool, &dir, &words);
}

/// What would change this machine, or end the daemon or its key.
const ELSEWHERE: [&str; 12] = [
    "import",
    "export",
    "export_archive",
    "export_changes",
    "mount",
    "unmount",
    "transfer_set",
    "policy_write",
    "key_revoke",
    "key_rotate",
    "daemon_stop",
    "approval_setup",
];

#[test]
fn nothing_that_the_owner_sends_is_answered_wrongly() {
    let Some(tool) = schemathesis() else { return };
    let (server, _, dir) = served("read,write,exec,admin");
    let examples = from_environment("AVFS_FUZZ_EXAMPLES", "1");
    let mut words = vec![
        "--phases",
        "coverage,fuzzing,stateful",
        "--max-examples",
        &examples,
    ];
    for name in ELSEWHERE {
        words.extend(["--exclude-operation-id", name]);
    }
    fuzz(&server, &tool, &dir, &words);
}

#[test]
fn nothing_without_a_credential_is_answered_but_with_401() {
    let Some(tool) = schemathesis() else { return };
    let (server, _, dir) = served("read");
    fs::write(dir.join("schemathesis.toml"), "").expect("own file");
    // Without a credential nothing else is looked at, so that nothing is rejected for its content or method.
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,ignored_auth";
    let examples = from_environment("AVFS_FUZZ_EXAMPLES", "1");
    let words = [
        "--phases",
        "fuzzing",
        "--max-examples",
        &examples,
        "--checks",
        checks,
    ];
    fuzz(&server, &tool, &dir, &words);
}
