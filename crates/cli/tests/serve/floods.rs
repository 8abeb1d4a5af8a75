//! Clients that are slow, large or many.

use super::{Answer, PATIENCE, Server, bearer, home, key};
use avfs_api::bounds::{BODY_MAX, HEAD_MAX, HEADERS_MAX};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn server() -> (Server, String) {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let good = key(&home, "good", &["--scope", "read,write"]);
    (Server::start(home, &[]), good)
}

#[test]
fn a_thousand_idle_connections_leave_others_served() {
    let (server, good) = server();
    let silent: Vec<TcpStream> = (0..500).map(|_| server.connect()).collect();
    let half: Vec<TcpStream> = (0..500)
        .map(|_| {
            let mut stream = server.connect();
            // Half a head, as somebody sends who means to hold the connection.
            let _ = stream.write_all(b"GET /v1/vaults HTTP/1.1\r\nx: ");
            stream
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(server.get(&good, "/v1/vaults").status, 200);
    }
    assert!(
        server.home.avfs(&["vault", "list"]).status.success(),
        "the socket is another door"
    );
    drop((silent, half));
}

#[test]
fn large_bodies_and_heads_are_refused() {
    let (server, good) = server();
    let head = |more: &str| {
        let (host, bearer) = (server.address, bearer(&good));
        format!("POST /v1/vaults/v/files/ls HTTP/1.1\r\nhost: {host}\r\n{bearer}\r\n{more}\r\n\r\n")
    };
    let ask = |text: &str| {
        let mut stream = server.connect();
        let _ = stream.write_all(text.as_bytes());
        Answer::read(stream).status
    };
    let length = format!("connection: close\r\ncontent-length: {}", BODY_MAX + 1);
    assert_eq!(ask(&head(&length)), 413, "it says so itself");
    let chunk = format!("{:x}\r\n{}\r\n", BODY_MAX + 1, " ".repeat(BODY_MAX + 1));
    let chunked = head("connection: close\r\ntransfer-encoding: chunked");
    assert_eq!(
        ask(&format!("{chunked}{chunk}0\r\n\r\n")),
        413,
        "it does not say"
    );
    let large = format!("x: {}", "x".repeat(2 * HEAD_MAX));
    assert_eq!(ask(&head(&large)), 431);
    let many = "x: y\r\n".repeat(HEADERS_MAX + 1);
    assert_eq!(ask(&head(many.trim_end())), 431);
    assert_eq!(server.get(&good, "/v1/vaults").status, 200);
}

/// Whether the daemon has closed a connection to which somebody sends a byte now and then, and what it said before.
fn dripped(mut stream: TcpStream, byte: &[u8]) -> String {
    let patience = Some(Duration::from_millis(200));
    stream.set_read_timeout(patience).expect("a socket");
    let (mut said, mut piece) = (Vec::new(), [0; 4096]);
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        // After the daemon has closed it, this fails, now or the next time.
        let _ = stream.write_all(byte);
        match stream.read(&mut piece) {
            Ok(0) => return String::from_utf8_lossy(&said).into_owned(),
            Ok(read) => said.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return String::from_utf8_lossy(&said).into_owned(),
        }
    }
    panic!("it is still open after {PATIENCE:?}");
}

/// A client that sends its request byte by byte is not waited for, however alive it is.
#[test]
fn slow_heads_and_bodies_are_dropped() {
    let (server, good) = server();
    let begin = |text: &str| {
        let mut stream = server.connect();
        stream.write_all(text.as_bytes()).expect("it listens");
        stream
    };
    let line = format!(
        "POST /v1/vaults/v/files/ls HTTP/1.1\r\nhost: {}\r\n",
        server.address
    );
    let head = begin(&format!("{line}x: "));
    let body = format!("{line}{}\r\ncontent-length: 1000000\r\n\r\n", bearer(&good));
    let body = begin(&body);
    let chunked = format!(
        "{line}{}\r\ntransfer-encoding: chunked\r\n\r\n",
        bearer(&good)
    );
    let chunked = begin(&chunked);
    let silent = server.connect();
    std::thread::scope(|scope| {
        let head = scope.spawn(|| dripped(head, b"x"));
        let body = scope.spawn(|| dripped(body, b" "));
        let chunked = scope.spawn(|| dripped(chunked, b"1\r\n \r\n"));
        let silent = scope.spawn(|| dripped(silent, b""));
        assert_eq!(head.join().expect("closed"), "");
        assert_eq!(silent.join().expect("closed"), "");
        for answer in [body, chunked] {
            let answer = answer.join().expect("closed");
            assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
        }
        assert_eq!(server.get(&good, "/v1/vaults").status, 200);
    });
}

/// Whoever has no key cannot make the daemon wait for a body.
#[test]
fn a_body_is_not_waited_for_before_the_credential_is_known() {
    let (server, _) = server();
    let mut stream = server.connect();
    let head = format!(
        "PUT /v1/vaults/v/files/content?path=/x HTTP/1.1\r\nhost: {}\r\ncontent-length: 1000000\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 401");
}

#[test]
fn too_many_requests_of_a_key_are_told_to_wait() {
    let home = home();
    let slow = key(&home, "slow", &["--scope", "read", "--rate", "1"]);
    let other = key(&home, "other", &["--scope", "read"]);
    let server = Server::start(home, &[]);
    let mut stream = server.connect();
    let (host, bearer) = (server.address, bearer(&slow));
    let one = format!("GET /v1/daemon HTTP/1.1\r\nhost: {host}\r\n{bearer}\r\n\r\n");
    let last = one.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let all = format!("{}{last}", one.repeat(100));
    stream.write_all(all.as_bytes()).expect("it listens");
    let mut seen = String::new();
    let _ = stream.read_to_string(&mut seen);
    assert!(seen.contains("HTTP/1.1 200 OK"), "{seen}");
    assert!(seen.contains("HTTP/1.1 429 Too Many Requests"), "{seen}");
    assert!(seen.contains("retry-after: 1"), "{seen}");
    assert_eq!(
        server.get(&other, "/v1/vaults").status,
        200,
        "it has a rate of its own"
    );
}
