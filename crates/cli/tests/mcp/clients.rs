//! Official clients, of both eras, against `avfs mcp` and `/mcp`: the SDKs of Python and TypeScript, and the inspector.

use crate::AVFS;
use avfs_testkit::Home;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// The calls that every SDK makes: each tool at least once.
const CALLS: &str = include_str!("calls.json");

/// Something that `scripts/test` fetches. Whoever set `AVFS_TEST_TOOLS` has promised it.
fn fetched(name: &str) -> Option<PathBuf> {
    let tools = avfs_testkit::tools(env!("CARGO_MANIFEST_DIR"))?;
    let found = tools.join(name);
    if found.exists() {
        return Some(found);
    }
    let missing = format!("{} is not there; scripts/test makes it", found.display());
    assert!(std::env::var_os("AVFS_TEST_TOOLS").is_none(), "{missing}");
    avfs_testkit::skip(&missing);
    None
}

/// The clients of JavaScript.
fn javascript() -> Option<PathBuf> {
    fetched("mcp-js-1")
}

/// How a client reaches the server.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum By {
    Stdio,
    /// Streamable HTTP on the daemon's socket.
    Socket,
    /// Streamable HTTP on the network, with a key.
    Network,
}

/// A daemon that listens on the network, until this goes.
struct Listening {
    child: Child,
    address: String,
}

impl Listening {
    fn start(home: &Home) -> Listening {
        home.ok(&["daemon", "stop"]);
        let mut child = home
            .command(&["--json", "serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while !text.trim_end().ends_with('}') {
            assert_ne!(out.read_line(&mut text).unwrap(), 0, "it ended: {text}");
        }
        let said: Value = serde_json::from_str(&text).unwrap();
        let address = format!("http://{}", said["address"].as_str().unwrap());
        Listening { child, address }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A home with a vault, a transfer directory and, in its own directory, the files of a client.
fn home_for(files: &[(&str, &str)]) -> Home {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let exchange = home.path().join("exchange");
    std::fs::create_dir_all(exchange.join("data")).unwrap();
    std::fs::write(exchange.join("data/one"), "1").unwrap();
    home.give(&exchange);
    home.ok(&["transfer", "set", exchange.to_str().unwrap()]);
    for (name, text) in files {
        std::fs::write(home.path().join(name), text).unwrap();
    }
    home
}

/// The program under test, as a client starts it.
fn program(home: &Home) -> PathBuf {
    home.command(&[""; 0]).get_program().into()
}

/// A client that must end well.
fn ends_well(command: &mut Command, what: &str) -> Output {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{what}: {}\n{out}\n{err}",
        output.status
    );
    output
}

fn is_well(command: &mut Command, what: &str) {
    let output = ends_well(command, what);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("all is well"), "{what}: {text}");
}

/// Runs `client.py` with a scenario.
fn python(by: By, version: u32, mode: &str, scenario: &str) {
    let Some(sdk) = fetched(&format!("mcp{version}")) else {
        return;
    };
    let home = home_for(&[
        ("client.py", include_str!("client.py")),
        ("calls.json", CALLS),
    ]);
    let server = match by {
        By::Stdio => program(&home),
        _ => std::fs::read_link(home.avfs_home().join("daemon.sock")).unwrap(),
    };
    let mut client = home.host_command("/usr/bin/python3");
    client
        .args(["client.py", mode, scenario])
        .arg(server)
        .current_dir(home.path())
        .env("PYTHONPATH", sdk);
    let what = format!("Python SDK {version}, {by:?}, {mode}, {scenario}");
    is_well(&mut client, &what);
}

/// Runs `client.mjs` with the calls of a toolset.
fn typescript(by: By, version: u32, mode: &str, toolset: &str) {
    let Some(tools) = javascript() else { return };
    let home = home_for(&[
        ("client.mjs", include_str!("client.mjs")),
        ("calls.json", CALLS),
    ]);
    // Packages are looked for beside the program.
    std::os::unix::fs::symlink(tools.join("node_modules"), home.path().join("node_modules"))
        .unwrap();
    let mut client = home.host_command(tools.join("node"));
    client
        .args(["client.mjs", &version.to_string(), mode, toolset])
        .current_dir(home.path());
    let _listening = match by {
        By::Stdio => {
            client.arg(program(&home));
            None
        }
        _ => {
            let words = ["key", "create", "sdk", "--scope", "read,write,exec"];
            let key = home.json(&words)["key"].as_str().unwrap().to_owned();
            let listening = Listening::start(&home);
            client.args([&listening.address, &key]);
            Some(listening)
        }
    };
    let what = format!("TypeScript SDK {version}, {by:?}, {mode}, {toolset}");
    is_well(&mut client, &what);
}

#[test]
fn the_current_sdk_finds_the_current_era() {
    python(By::Stdio, 2, "auto", "core");
}

#[test]
fn the_current_sdk_can_speak_the_handshake() {
    python(By::Stdio, 2, "legacy", "core");
}

#[test]
fn the_sdk_before_speaks_the_handshake() {
    python(By::Stdio, 1, "legacy", "core");
}

#[test]
fn the_guides_patterns_run_by_its_own_names() {
    python(By::Stdio, 2, "auto", "guide");
}

#[test]
fn the_names_of_agentkernel_do_what_they_say() {
    python(By::Stdio, 1, "legacy", "sandbox");
}

#[test]
fn both_sdks_reach_it_by_streamable_http() {
    python(By::Socket, 2, "auto", "core");
    python(By::Socket, 2, "legacy", "core");
    python(By::Socket, 1, "legacy", "core");
}

#[test]
fn python_calls_every_tool() {
    for (by, version, mode) in [
        (By::Stdio, 2, "auto"),
        (By::Stdio, 1, "legacy"),
        (By::Socket, 2, "auto"),
        (By::Socket, 1, "legacy"),
    ] {
        for toolset in ["core", "guide", "sandbox"] {
            python(by, version, mode, &format!("every:{toolset}"));
        }
    }
}

#[test]
fn typescript_calls_every_tool_on_standard_input_and_output() {
    for toolset in ["core", "guide", "sandbox"] {
        typescript(By::Stdio, 2, "auto", toolset);
        typescript(By::Stdio, 1, "legacy", toolset);
    }
    typescript(By::Stdio, 2, "legacy", "core");
}

#[test]
fn typescript_calls_every_tool_on_the_network() {
    for toolset in ["core", "guide", "sandbox"] {
        typescript(By::Network, 2, "auto", toolset);
        typescript(By::Network, 1, "legacy", toolset);
    }
    typescript(By::Network, 2, "legacy", "core");
}

#[test]
fn the_inspector_lists_and_calls() {
    let Some(tools) = javascript() else { return };
    let home = home_for(&[]);
    let launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    for era in ["legacy", "modern"] {
        let inspect = |words: &[&str]| -> Value {
            let mut inspector = home.host_command(tools.join("node"));
            inspector.arg(tools.join(launcher)).args(["--cli", "-q"]);
            // It hands on only a few variables by itself.
            for (name, value) in home.command(&[""; 0]).get_envs() {
                if let (Some(name), Some(value)) = (name.to_str(), value.and_then(|it| it.to_str()))
                {
                    inspector.args(["-e", &format!("{name}={value}")]);
                }
            }
            inspector
                .args(["--protocol-era", era, "--format", "json"])
                .args(words)
                .args(["--transport", "stdio", "--"])
                .arg(program(&home))
                .arg("mcp");
            let output = ends_well(&mut inspector, &format!("{era} {words:?}"));
            serde_json::from_slice(&output.stdout).unwrap()
        };
        let listed = inspect(&["--method", "tools/list", "--strict"]).to_string();
        for name in ["exec", "job", "read", "write", "edit", "search", "vault"] {
            assert!(listed.contains(&format!("\"name\":\"{name}\"")), "{listed}");
        }
        let arguments = r#"{"command":"echo $((6*7))"}"#;
        let said = inspect(&[
            "--method",
            "tools/call",
            "--tool-name",
            "exec",
            "--tool-args-json",
            arguments,
        ]);
        assert!(said.to_string().contains("42\\n"), "{said}");
    }
}
