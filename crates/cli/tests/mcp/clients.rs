//! The official Python SDK, of both eras, against `avfs mcp`.

use crate::AVFS;
use avfs_testkit::Home;
use std::path::PathBuf;

/// The SDK of that major version, which `scripts/test` fetches.
fn sdk(version: u32) -> Option<PathBuf> {
    let tools = avfs_testkit::tools(env!("CARGO_MANIFEST_DIR"))?;
    let found = tools.join(format!("mcp{version}"));
    if found.is_dir() {
        return Some(found);
    }
    avfs_testkit::skip(&format!(
        "{} is not there; scripts/test makes it",
        found.display()
    ));
    None
}

/// How a client reaches the server.
#[derive(Copy, Clone, Debug)]
enum By {
    Stdio,
    Http,
}

/// Runs `client.py` with a scenario, which must end well.
fn run(version: u32, mode: &str, scenario: &str) {
    run_by(By::Stdio, version, mode, scenario);
}

fn run_by(by: By, version: u32, mode: &str, scenario: &str) {
    let Some(sdk) = sdk(version) else { return };
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let server = match by {
        By::Stdio => home.command(&[""; 0]).get_program().into(),
        By::Http => std::fs::read_link(home.avfs_home().join("daemon.sock")).unwrap(),
    };
    let script = home.path().join("client.py");
    std::fs::write(&script, include_str!("client.py")).unwrap();
    let output = home
        .host_command("/usr/bin/python3")
        .arg(&script)
        .args([mode, scenario])
        .arg(server)
        .env("PYTHONPATH", sdk)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "SDK {version}, {by:?}, {mode}, {scenario}: {}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains("all is well"));
}

#[test]
fn the_current_sdk_finds_the_current_era() {
    run(2, "auto", "core");
}

#[test]
fn the_current_sdk_can_speak_the_handshake() {
    run(2, "legacy", "core");
}

#[test]
fn the_sdk_before_speaks_the_handshake() {
    run(1, "legacy", "core");
}

#[test]
fn the_guides_patterns_run_by_its_own_names() {
    run(2, "auto", "guide");
}

#[test]
fn the_names_of_agentkernel_do_what_they_say() {
    run(1, "legacy", "sandbox");
}

#[test]
fn both_sdks_reach_it_by_streamable_http() {
    run_by(By::Http, 2, "auto", "core");
    run_by(By::Http, 2, "legacy", "core");
    run_by(By::Http, 1, "legacy", "core");
}
