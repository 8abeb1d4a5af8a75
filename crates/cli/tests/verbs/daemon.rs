//! The daemon's life: started by need, one per home, replaced when it dies.

use crate::AVFS;
use avfs_testkit::{Home, SOON, converse, leftover_processes, process_ends, wait_for};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .expect("there is a kill");
    assert!(status.success());
}

#[test]
fn it_starts_when_needed_and_stops_when_told() {
    for home in Home::of_every_user(AVFS) {
        let status = home.avfs(&["daemon", "status"]);
        assert_eq!(status.status.code(), Some(1), "asking does not start it");
        assert_eq!(home.json(&["daemon", "status"])["running"], false);
        assert_eq!(home.json(&["daemon", "stop"])["stopped"], false);
        home.ok(&["vault", "create", "v"]);
        let pid = home.daemon_pid().expect("it runs now");
        home.ok(&["vault", "list"]);
        assert_eq!(home.daemon_pid(), Some(pid), "and goes on");
        let socket = home.socket();
        assert_eq!(home.json(&["daemon", "stop"])["pid"], pid);
        assert!(
            process_ends(pid, Duration::ZERO),
            "it has ended before `stop` answers"
        );
        assert!(!socket.exists());
        let list = home.json(&["vault", "list"]);
        assert_eq!(list[0]["name"], "v", "the next one finds what was kept");
    }
}

#[test]
fn many_at_once_share_one() {
    let home = Home::new(AVFS);
    let children: Vec<_> = (0..8)
        .map(|i| {
            let mut command = home.command(&["--json", "vault", "create", &format!("v{i}")]);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(home.json(&["vault", "list"]).as_array().unwrap().len(), 8);
    let marker = home.avfs_home().to_string_lossy().into_owned();
    assert!(
        leftover_processes(&marker).is_empty(),
        "the daemon's words do not name the home"
    );
}

#[test]
fn killed_it_is_replaced_and_nothing_kept_is_lost() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    home.ok(&["write", "/f", "kept"]);
    for _ in 0..3 {
        let pid = home.daemon_pid().unwrap();
        kill(pid, "-9");
        assert!(process_ends(pid, SOON));
        assert_eq!(home.ok(&["cat", "/f"]), "kept");
        assert_ne!(home.daemon_pid(), Some(pid));
    }
}

#[test]
fn a_socket_nobody_listens_on_is_replaced() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let socket = home.socket();
    home.ok(&["daemon", "stop"]);
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    assert_eq!(home.avfs(&["daemon", "status"]).status.code(), Some(1));
    home.ok(&["vault", "list"]);
}

#[test]
fn a_swept_socket_comes_back() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let (pid, socket) = (home.daemon_pid(), home.socket());
    std::fs::remove_dir_all(socket.parent().unwrap()).unwrap();
    home.ok(&["vault", "info", "v"]);
    assert_eq!(home.daemon_pid(), pid, "it is the same daemon");
}

#[test]
fn it_is_found_whatever_the_runtime_directory() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let pid = home.daemon_pid().unwrap();
    let mut command = home.command(&["--json", "daemon", "status"]);
    let output = command.env_remove("XDG_RUNTIME_DIR").output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["pid"], pid, "{status}");
}

/// How far a daemon that dies has come with a request.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Heard {
    Nothing,
    All,
}

/// Asks a daemon that is about to die; gives the exit code.
fn ask_the_dying(home: &Home, words: &[&str], heard: Heard) -> Option<i32> {
    let socket = home.socket();
    home.ok(&["daemon", "stop"]);
    let dying = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let child = home
        .command(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stream, _) = dying.accept().unwrap();
    let mut request = [0; 4096];
    match heard {
        // Waits until something is there, without taking it.
        Heard::Nothing => {
            let mut polled = [rustix::event::PollFd::new(
                &stream,
                rustix::event::PollFlags::IN,
            )];
            rustix::event::poll(&mut polled, None).unwrap();
        }
        Heard::All => assert!(stream.read(&mut request).unwrap() > 0),
    }
    drop(dying);
    std::fs::remove_file(&socket).unwrap();
    drop(stream);
    child.wait_with_output().unwrap().status.code()
}

#[test]
fn who_asks_a_dying_daemon_is_answered_by_the_next_where_that_is_safe() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    assert_eq!(
        ask_the_dying(&home, &["vault", "list"], Heard::All),
        Some(0)
    );
    for (name, heard, code) in [("a", Heard::Nothing, Some(0)), ("b", Heard::All, Some(1))] {
        let words = ["vault", "create", name];
        assert_eq!(ask_the_dying(&home, &words, heard), code, "{heard:?}");
    }
    let all = home.json(&["vault", "list"]);
    let names: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(
        names,
        ["a", "v"],
        "what may have been done is not done again"
    );
}

/// Answers as a daemon of another version would; ends when told to stop.
const OTHER_VERSION: &str = r#"
import http.server, os, socketserver, sys
class Server(socketserver.UnixStreamServer): pass
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def address_string(self): return "-"
    def log_message(self, *a): pass
    def answer(self, status, body):
        self.send_response(status); self.send_header("content-length", str(len(body)))
        self.end_headers(); self.wfile.write(body.encode())
    def do_GET(self):
        if self.path != "/v1/daemon": return self.answer(426, "{}")
        self.answer(200, '{"pid":%d,"version":"0.0.1","home":"","socket":"","uptime_ms":1,'
            '"idle_timeout_s":null,"running_execs":%s,"live_views":0,"keeper_pid":null}'
            % (os.getpid(), sys.argv[2]))
    def do_POST(self):
        self.answer(200, '{"stopping":true,"pid":%d}' % os.getpid())
        os.unlink(sys.argv[1]); os._exit(0)
Server(sys.argv[1], Handler).serve_forever()
"#;

#[test]
fn an_idle_daemon_of_another_version_is_replaced_and_a_busy_one_is_not() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let socket = home.socket();
    home.ok(&["daemon", "stop"]);
    for running in ["1", "0"] {
        let mut other = Command::new("python3");
        other.args(["-c", OTHER_VERSION, socket.to_str().unwrap(), running]);
        let mut other = other.spawn().unwrap();
        assert!(wait_for(SOON, || UnixStream::connect(&socket).is_ok()));
        let output = home.avfs(&["vault", "list"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("0.0.1"), "{stderr}");
        if running == "1" {
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            other.kill().unwrap();
            std::fs::remove_file(&socket).unwrap();
        } else {
            assert!(output.status.success(), "{stderr}");
            assert_ne!(home.daemon_pid(), Some(other.id()));
        }
        other.wait().unwrap();
    }
}

#[test]
fn terminated_it_cleans_up() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let (pid, socket) = (home.daemon_pid().unwrap(), home.socket());
    kill(pid, "-TERM");
    assert!(process_ends(pid, SOON));
    assert!(!socket.exists());
    home.ok(&["vault", "list"]);
}

#[test]
fn stopped_while_a_command_runs_it_tells_the_caller_and_keeps_the_work() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let script = "echo work > /work; echo begun; exec sleep 88.24680";
        let mut child = home.command(&["exec", "--shell", script]);
        let mut child = child
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut begun = [0u8; 6];
        child.stdout.take().unwrap().read_exact(&mut begun).unwrap();
        home.ok(&["daemon", "stop"]);
        assert!(
            wait_for(SOON, || matches!(child.try_wait(), Ok(Some(_)))),
            "the caller hangs"
        );
        assert!(!child.wait().unwrap().success());
        assert!(wait_for(SOON, || leftover_processes("88.24680").is_empty()));
        assert_eq!(home.ok(&["cat", "/work"]), "work\n", "as {}", home.user());
    }
}

#[test]
fn left_alone_it_ends() {
    let home = Home::new(AVFS);
    let mut server = home.command(&["serve", "--idle-timeout", "3"]);
    let mut server = server.stderr(Stdio::null()).spawn().unwrap();
    assert!(wait_for(SOON, || home.daemon_pid().is_some()));
    home.ok(&["vault", "create", "v"]);
    let begun = std::time::Instant::now();
    home.ok(&["exec", "--", "sleep", "5"]);
    assert!(
        begun.elapsed() >= Duration::from_secs(5),
        "a running command is no idleness"
    );
    assert!(wait_for(SOON, || matches!(server.try_wait(), Ok(Some(_)))));
    assert!(server.wait().unwrap().success());
}

#[test]
fn two_homes_are_two_daemons() {
    let (one, two) = (Home::new(AVFS), Home::new(AVFS));
    one.ok(&["vault", "create", "v"]);
    assert_eq!(two.json(&["vault", "list"]).as_array().unwrap().len(), 0);
    assert_ne!(one.daemon_pid(), two.daemon_pid());
}

#[test]
fn it_knows_nothing_of_its_starters_environment() {
    let home = Home::new(AVFS);
    let output = home
        .command(&["vault", "create", "v"])
        .env("SECRET_TOKEN", "sesame")
        .env("SSH_AUTH_SOCK", "/nowhere")
        .output()
        .unwrap();
    assert!(output.status.success());
    let pid = home.daemon_pid().unwrap();
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8_lossy(&environ);
    assert!(
        !environ.contains("sesame") && !environ.contains("SSH_AUTH_SOCK"),
        "{environ}"
    );
    assert!(environ.contains("AVFS_HOME="));
}

#[test]
fn it_keeps_nothing_its_starter_had_open() {
    let home = Home::new(AVFS);
    let binary = home.command::<&str>(&[]);
    let script = format!(
        "exec 9<>{0}/held; {1:?} vault create v",
        home.path().display(),
        binary.get_program()
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .env_clear()
        .envs(binary.get_envs().filter_map(|(k, v)| Some((k, v?))));
    assert!(shell.stdout(Stdio::null()).status().unwrap().success());
    let pid = home.daemon_pid().unwrap();
    let held = home.path().join("held");
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten();
    let targets: Vec<_> = open
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .collect();
    assert!(!targets.contains(&held), "{targets:?}");
}

#[test]
fn its_socket_is_the_users_alone() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let socket = home.socket();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    assert_eq!(mode(&home.avfs_home()), 0o700);
}

#[test]
fn another_user_is_not_served() {
    if !is_root() {
        return;
    }
    let home = Home::of_ordinary_user(AVFS).expect("root can become an ordinary user");
    home.ok(&["vault", "create", "v"]);
    let socket = home.socket();
    // Even if the file system lets a stranger through, the daemon looks who it is.
    for dir in [
        home.path(),
        &home.runtime_base(),
        socket.parent().unwrap().parent().unwrap(),
    ] {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(
        socket.parent().unwrap(),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    let ask = |uid: u32| {
        let script = "import socket,sys\n\
            s=socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1])\n\
            r=b'GET /v1/daemon HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n'\n\
            try: s.sendall(r); print(len(s.recv(100)))\n\
            except ConnectionError: print(0)";
        let output = Command::new("setpriv")
            .args([
                &format!("--reuid={uid}"),
                "--clear-groups",
                "--",
                "python3",
                "-c",
                script,
            ])
            .arg(&socket)
            .env("PATH", "/usr/bin:/bin")
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_ne!(ask(0), "0", "root is served");
    assert_eq!(ask(54_399), "0", "a stranger is not");
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn ask(home: &Home, request: &str) -> String {
    converse(&home.socket(), request, b"")
}

#[test]
fn errors_are_problems_and_other_versions_are_refused() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let get = |path: &str, header: &str| {
        ask(
            &home,
            &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{header}\r\n"),
        )
    };
    let lost = get("/v1/vaults/none", "");
    assert!(lost.starts_with("HTTP/1.1 404"), "{lost}");
    assert!(
        lost.contains("application/problem+json") && lost.contains("\"NotFound\""),
        "{lost}"
    );
    assert!(get("/v1/nowhere", "").starts_with("HTTP/1.1 404"));
    assert!(get("/v1/vaults", "").starts_with("HTTP/1.1 200"));
    assert!(get("/v1/vaults/v/log?limit=x", "").starts_with("HTTP/1.1 400"));
    let other = "avfs-version: 99.0.0\r\n";
    assert!(get("/v1/vaults", other).starts_with("HTTP/1.1 426"));
    assert!(
        get("/v1/daemon", other).starts_with("HTTP/1.1 200"),
        "any version may ask that"
    );
}

#[test]
fn output_is_told_while_the_command_runs() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let body = r#"{"shell":"echo first; sleep 30"}"#;
    let request = format!(
        "POST /v1/vaults/@current/exec HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut heard = Vec::new();
    let mut piece = [0u8; 4096];
    while !String::from_utf8_lossy(&heard).contains("first") {
        let count = stream.read(&mut piece).expect("events come while it runs");
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&piece[..count]);
    }
    let heard = String::from_utf8_lossy(&heard);
    assert!(
        heard.contains("event: started") && heard.contains("event: stdout"),
        "{heard}"
    );
    assert_eq!(home.json(&["daemon", "status"])["running_execs"], 1);
    drop(stream);
    let ended = wait_for(SOON, || {
        home.json(&["daemon", "status"])["running_execs"] == 0
    });
    assert!(ended, "a caller that goes away ends its command");
}
