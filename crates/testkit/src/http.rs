//! Requests to a daemon's socket that no command line can carry, or that the binary would never send.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A daemon that takes or says nothing for so long has a fault.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to the daemon that listens there.
pub fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).expect("a daemon listens");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Sends bytes as they are, and a body; gives all that comes back until the daemon hangs up.
pub fn converse(socket: &Path, head: &str, body: &[u8]) -> String {
    let mut stream = connect(socket);
    let sent = stream.write_all(head.as_bytes());
    sent.expect("a fresh connection takes it");
    // A daemon that has refused the request reads no more of it.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends one whole request with header lines of the caller's; gives all that comes back.
pub fn ask(socket: &Path, headers: &[&str], request: (&str, &str), body: &[u8]) -> String {
    let (method, address) = request;
    let mut head = format!("{method} {address} HTTP/1.1\r\nhost: avfs\r\nconnection: close\r\n");
    for line in headers {
        head += &format!("{line}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    converse(socket, &head, body)
}

/// The status and the body of an answer; 0 where there is none.
pub fn status_and_body(answer: &str) -> (u16, String) {
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let body = match head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        true => joined(body),
        false => body.to_owned(),
    };
    (status.unwrap_or(0), body)
}

/// A body that was sent in chunks.
fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        match rest.get(..size) {
            Some(chunk) if size > 0 => body.push_str(chunk),
            _ => break,
        }
        chunks = rest[size..].trim_start_matches("\r\n");
    }
    body
}
