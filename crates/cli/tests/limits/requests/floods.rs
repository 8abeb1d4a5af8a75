//! Somebody who sends, asks and waits as much as it can, in the agent's class: the daemon stays small, and others are
//! served.

use super::{as_agent, ask, head, most_memory};
use crate::AVFS;
use avfs_api::bounds::{COMMAND_BODY_MAX, CONNECTIONS_OF_ONE_MAX, OUTPUT_LIMIT_MAX, WAIT};
use avfs_testkit::{Home, SOON, connect, wait_for};
use serde_json::json;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What the daemon may have in all, in MiB.
const MEMORY_MAX: u64 = 150;

/// Sends requests from a process of its own, waits until so many of them were refused, says how many were, and stays.
const MANY: &str = "
import select, socket, sys
path, count, request, enough = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode(), int(sys.argv[4])
all, poll = {}, select.poll()
for _ in range(count):
    one = socket.socket(socket.AF_UNIX)
    one.connect(path)
    one.sendall(request)
    all[one.fileno()] = one
    poll.register(one, select.POLLIN)
refused = 0
while refused < enough:
    answered = poll.poll(30000)
    if not answered:
        break
    for number, _ in answered:
        poll.unregister(number)
        if b' 503 ' in all[number].recv(65536).split(b'\\r\\n')[0]:
            refused += 1
print(refused, flush=True)
sys.stdin.read()
";

/// A process with many requests under way; it ends when it is dropped.
struct Many {
    child: Child,
    refused: usize,
}

impl Many {
    fn start(socket: &Path, (count, enough): (usize, usize), request: &str) -> Many {
        let mut command = Command::new("python3");
        command.args([
            "-c",
            MANY,
            socket.to_str().expect("a path that is text"),
            &count.to_string(),
            request,
            &enough.to_string(),
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        let mut out = std::io::BufReader::new(out);
        std::io::BufRead::read_line(&mut out, &mut line).expect("it tells");
        let refused = line.trim().parse().expect("a number");
        Many { child, refused }
    }
}

impl Drop for Many {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What honest people do meanwhile: each of it has to succeed.
fn honest_work(home: &Home, round: usize) {
    let text = format!("round {round}");
    for _ in 0..2 {
        home.ok(&["write", "/honest", &text]);
        let read = as_agent(home, &["cat", "/honest"]);
        assert_eq!(String::from_utf8_lossy(&read.stdout), text, "{read:?}");
        let words = ["proxy", "exec", "--", "cat", "/honest"];
        let ran = as_agent(home, &words);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), text, "{ran:?}");
        assert!(as_agent(home, &["vault", "list"]).status.success());
    }
}

#[test]
fn whoever_waits_keeps_nobody_from_being_served() {
    for home in Home::of_every_user_with_vault(AVFS) {
        // The crowd is of the agent's class, and nobody waits for another's job.
        let started = as_agent(&home, &["--json", "job", "start", "--", "sleep", "600"]);
        let started: serde_json::Value = serde_json::from_slice(&started.stdout).expect("JSON");
        let job = started["job_id"].clone();
        let socket = home.socket();
        let body = json!({ "job_id": job }).to_string();
        let length = format!("content-length: {}", body.len());
        let wait = head("POST", "/v1/jobs/wait", &length) + &body;
        let follow = head(
            "GET",
            &format!("/v1/jobs/logs?job_id={job}"),
            "accept: text/event-stream",
        );
        let silent = "POST /v1/jobs/wait HTTP/1.1\r\nhost: av";
        // Each process has so many places to wait in, and these three take all that agents have.
        assert_eq!(3 * WAIT.one, WAIT.agents);
        let refused = 120 - WAIT.one;
        let crowd = [
            (refused, &wait[..]),
            (refused, &wait),
            (refused, &follow),
            (0, silent),
        ];
        let crowd = crowd.map(|(enough, request)| {
            let many = Many::start(&socket, (120, enough), request);
            assert!(many.refused >= enough, "{} refused", many.refused);
            many
        });
        for round in 0..3 {
            honest_work(&home, round);
        }
        // The owner can still wait, and end what others wait for.
        let owner = home.avfs(&["job", "wait", &job.to_string(), "--timeout", "1"]);
        assert!(
            !String::from_utf8_lossy(&owner.stderr).contains("too many"),
            "{owner:?}"
        );
        home.ok(&["job", "kill", &job.to_string()]);
        drop(crowd);
        let most = most_memory(&home);
        assert!(most < MEMORY_MAX, "{most} MiB as {}", home.user());
    }
}

#[test]
fn one_process_has_so_many_connections() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let socket = home.socket();
    let mut all: Vec<UnixStream> = (0..CONNECTIONS_OF_ONE_MAX)
        .map(|_| connect(&socket))
        .collect();
    let mut one_more = connect(&socket);
    let mut answer = String::new();
    one_more.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    home.ok(&["vault", "list"]);
    all.clear();
    // The daemon hears of the closed ones by and by.
    let is_served = || ask(&socket, "GET", "/v1/vaults", b"").starts_with("HTTP/1.1 200");
    assert!(wait_for(SOON, is_served));
}

/// One way to use a daemon up.
type Attack = fn(&Path);

/// A body without an end, of a declared length and without one.
fn endless_body(socket: &Path) {
    let piece = vec![b' '; 1 << 20];
    let declared = "content-length: 1200000000";
    for framing in [declared, "transfer-encoding: chunked"] {
        let mut stream = connect(socket);
        let head = head("POST", "/v1/vaults/v/files/write", framing);
        let _ = stream.write_all(head.as_bytes());
        for _ in 0..1200 {
            let chunk: &[&[u8]] = match framing == declared {
                true => &[&piece],
                false => &[b"100000\r\n", &piece, b"\r\n"],
            };
            if chunk.iter().any(|part| stream.write_all(part).is_err()) {
                break;
            }
        }
    }
}

/// Bodies that are announced and never come.
fn announced_bodies(socket: &Path) {
    let length = format!("content-length: {COMMAND_BODY_MAX}");
    let head = head("POST", "/v1/vaults/v/exec", &length);
    let mut all: Vec<UnixStream> = (0..8).map(|_| connect(socket)).collect();
    for stream in &mut all {
        stream.set_nonblocking(true).expect("a socket");
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&vec![b' '; COMMAND_BODY_MAX / 2]);
    }
}

/// Commands as large as they can be, and larger.
fn large_commands(socket: &Path) {
    let mut argv = vec!["true".to_owned()];
    argv.extend(vec!["x".repeat(100_000); 18]);
    let fits = json!({ "argv": argv });
    let empty = json!({ "argv": vec![""; 1_000_000] }).to_string();
    for body in [fits.to_string(), empty] {
        let length = format!("content-length: {}", body.len());
        let mut stream = connect(socket);
        let patience = Some(std::time::Duration::from_secs(5));
        stream.set_read_timeout(patience).expect("a socket");
        stream.set_write_timeout(patience).expect("a socket");
        let _ = stream.write_all((head("POST", "/v1/vaults/v/exec", &length) + &body).as_bytes());
        let _ = stream.read(&mut [0; 512]);
    }
}

/// Much output that is asked for and not read.
fn unread_output(socket: &Path) {
    let request =
        json!({ "shell": "head -c 30000000 /dev/zero", "output_limit": OUTPUT_LIMIT_MAX });
    let body = request.to_string();
    for accept in ["application/json", "text/event-stream"] {
        let more = format!("accept: {accept}\r\ncontent-length: {}", body.len());
        let mut stream = connect(socket);
        let _ = stream.write_all((head("POST", "/v1/vaults/v/exec", &more) + &body).as_bytes());
        let mut begin = [0; 4096];
        let _ = stream.read(&mut begin);
    }
}

/// Answers of some MiB, and streams, that are not read.
fn unread_answers(socket: &Path) {
    let cat = json!({ "path": "/zeros" }).to_string();
    let mut all = Vec::new();
    for _ in 0..6 {
        let length = format!("content-length: {}", cat.len());
        let mut stream = connect(socket);
        let _ =
            stream.write_all((head("POST", "/v1/vaults/v/files/cat", &length) + &cat).as_bytes());
        all.push(stream);
        let mut stream = connect(socket);
        let get = head("GET", "/v1/vaults/v/files/content?path=/zeros", "x: y");
        let _ = stream.write_all(get.as_bytes());
        all.push(stream);
    }
    for stream in &mut all {
        let mut begin = [0; 512];
        let _ = stream.read(&mut begin);
    }
}

#[test]
fn floods_leave_the_daemon_small_and_others_served() {
    let attacks: [Attack; 5] = [
        endless_body,
        announced_bodies,
        large_commands,
        unread_output,
        unread_answers,
    ];
    for home in Home::of_every_user_with_vault(AVFS) {
        home.ok(&["proxy", "exec", "--shell", "truncate -s 300M /zeros"]);
        let socket: PathBuf = home.socket();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for attack in attacks {
                for _ in 0..2 {
                    let (over, socket) = (&over, &socket);
                    scope.spawn(move || {
                        while !over.load(Ordering::Relaxed) {
                            attack(socket);
                        }
                    });
                }
            }
            for round in 0..2 {
                honest_work(&home, round);
            }
            over.store(true, Ordering::Relaxed);
        });
        let most = most_memory(&home);
        assert!(most < MEMORY_MAX, "{most} MiB as {}", home.user());
    }
}
