//! Many clients at once, and MCP beside the socket.

use std::io::{BufRead, BufReader, Write as _};
use std::ops::ControlFlow;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use avfs_api::client::Client;
use avfs_api::wire::{Cat, Exec, Grep, Ls, Write};
use serde_json::{Value, json};

use crate::bed::{Bed, median_ms, timed};

const CLIENTS: usize = 64;
/// Each has so many clients.
const VAULTS: usize = 8;
const ROUNDS: usize = 101;

/// Mixed traffic of files and commands, for so long: errors, and how long answers took.
pub fn traffic(bed: &Bed, length: Duration) {
    for vault in 0..VAULTS {
        let name = format!("traffic-{vault}");
        bed.avfs(&["vault", "create", &name]);
        bed.avfs(&["--vault", &name, "proxy", "exec", "--", "true"]);
    }
    let begun = Instant::now();
    let until = begun + length;
    let all: Vec<Load> = std::thread::scope(|scope| {
        let clients = (0..CLIENTS).map(|number| scope.spawn(move || load(bed, number, until)));
        let clients: Vec<_> = clients.collect();
        let done = clients.into_iter().map(|it| it.join().expect("a client"));
        done.collect()
    });
    let took = begun.elapsed().as_secs_f64();
    println!(
        "\n{CLIENTS} clients of {VAULTS} vaults for {took:.0} s, four file verbs to one command:\n"
    );
    println!(
        "| | answers | a second | errors | p50 ms | p95 ms | p99 ms |\n|---|---|---|---|---|---|---|"
    );
    let files = all.iter().flat_map(|it| it.files.iter().copied()).collect();
    let commands = all
        .iter()
        .flat_map(|it| it.commands.iter().copied())
        .collect();
    let errors: Vec<&String> = all.iter().flat_map(|it| &it.errors).collect();
    report("file verbs", files, took, &errors);
    report("commands", commands, took, &errors);
    let some: Vec<_> = errors.iter().take(5).collect();
    assert!(some.is_empty(), "errors under load, such as {some:#?}");
}

/// What one client saw.
#[derive(Default)]
struct Load {
    files: Vec<Duration>,
    commands: Vec<Duration>,
    /// Each begins with what it was about.
    errors: Vec<String>,
}

fn report(what: &str, mut times: Vec<Duration>, took: f64, errors: &[&String]) {
    times.sort();
    let at = |part: f64| match times.len() {
        0 => f64::NAN,
        count => times[((count as f64 * part) as usize).min(count - 1)].as_secs_f64() * 1e3,
    };
    let (count, failed) = (times.len(), errors.iter().filter(|it| it.starts_with(what)));
    println!(
        "| {what} | {count} | {:.0} | {} | {:.2} | {:.2} | {:.2} |",
        count as f64 / took,
        failed.count(),
        at(0.5),
        at(0.95),
        at(0.99)
    );
}

fn load(bed: &Bed, number: usize, until: Instant) -> Load {
    let mut client = bed.client();
    let vault = format!("traffic-{}", number % VAULTS);
    let path = format!("/c{number}");
    let mut seen = Load::default();
    let mut round = 0;
    while Instant::now() < until {
        let begun = Instant::now();
        let (is_file, done) = step(&mut client, &vault, &path, round);
        match (done, is_file) {
            (Ok(()), true) => seen.files.push(begun.elapsed()),
            (Ok(()), false) => seen.commands.push(begun.elapsed()),
            (Err(error), true) => seen.errors.push(format!("file verbs: {error}")),
            (Err(error), false) => seen.errors.push(format!("commands: {error}")),
        }
        round += 1;
    }
    seen
}

/// One step of a client, and whether it is about a file.
fn step(client: &mut Client, vault: &str, path: &str, round: usize) -> (bool, Result<(), String>) {
    let text = |error: avfs_api::Error| error.to_string();
    let content = format!("{round} {}\n", "words ".repeat(100));
    let path = path.to_owned();
    let done = match round % 5 {
        0 => {
            let request = write(path, content);
            client.call(vault, &request).map(drop).map_err(text)
        }
        1 => {
            let request = cat(path);
            let body = client.call(vault, &request).map_err(text);
            body.and_then(|it| match it.content.ends_with("words \n") {
                true => Ok(()),
                false => Err(format!("it read {:?}", it.content)),
            })
        }
        2 => client.call(vault, &ls()).map(drop).map_err(text),
        3 => client.call(vault, &grep(&path)).map(drop).map_err(text),
        _ => return (false, command(client, vault)),
    };
    (true, done)
}

fn command(client: &mut Client, vault: &str) -> Result<(), String> {
    let request = Exec {
        argv: vec!["true".into()],
        ..Exec::default()
    };
    let envelope = client.exec(vault, &request, &mut |_| ControlFlow::Continue(()));
    match envelope {
        Ok(envelope) if envelope.success => Ok(()),
        Ok(envelope) => Err(format!("{:?}", envelope.result.status)),
        Err(error) => Err(error.to_string()),
    }
}

fn write(path: String, content: String) -> Write {
    Write {
        path,
        path_b64: None,
        content,
        content_b64: None,
        append: false,
        parents: false,
        mode: None,
    }
}

fn cat(path: String) -> Cat {
    Cat {
        path,
        path_b64: None,
        version: None,
        offset: 0,
        limit: None,
    }
}

fn ls() -> Ls {
    serde_json::from_value(json!({ "path": "/" })).expect("a request")
}

fn grep(path: &str) -> Grep {
    serde_json::from_value(json!({ "pattern": "no such word", "path": path })).expect("a request")
}

/// A client of `avfs mcp`, line by line.
struct Mcp {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Mcp {
    fn start(bed: &Bed, words: &[&str]) -> Mcp {
        let mut command = bed.command();
        command.arg("mcp").args(words);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("avfs runs");
        let mut client = Mcp {
            input: child.stdin.take().expect("a pipe"),
            output: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        };
        let about = json!({ "name": "bench", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
        client.ask("initialize", &hello);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("it listens");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command by MCP beside one over the socket, and what lists of tools cost a client.
pub fn mcp(bed: &Bed) {
    bed.avfs(&["vault", "create", "mcp"]);
    bed.avfs(&["--vault", "mcp", "proxy", "exec", "--", "true"]);
    let mut client = bed.client();
    let socket = median_ms(ROUNDS, |_| {
        timed(|| command(&mut client, "mcp").expect("it runs"))
    });
    let mut agent = Mcp::start(bed, &["--vault", "mcp"]);
    let call = json!({ "name": "exec", "arguments": { "command": "true" } });
    let by_mcp = median_ms(ROUNDS, |_| {
        timed(|| {
            let said = agent.ask("tools/call", &call);
            let code = &said["result"]["structuredContent"]["exit_code"];
            assert_eq!(code, &json!(0), "{said}");
        })
    });
    println!("\n| exec of `true`, warm, ms | median |\n|---|---|");
    println!("| over the socket, as words | {socket:.2} |");
    println!("| by MCP, as shell text | {by_mcp:.2} |");
    println!("| more | {:.2} |", by_mcp - socket);
    println!(
        "\n| toolset | tools | bytes of `tools/list` | tokens, at 4 bytes each |\n|---|---|---|---|"
    );
    for set in ["core", "guide", "sandbox"] {
        let mut client = Mcp::start(bed, &["--toolset", set]);
        let listed = client.ask("tools/list", &json!({}));
        let count = listed["result"]["tools"].as_array().map_or(0, Vec::len);
        let bytes = listed["result"].to_string().len();
        println!("| {set} | {count} | {bytes} | {} |", bytes.div_ceil(4));
    }
}
