//! The daemon on the network: who is let in, and what an attacker can do with a connection.
//!
//! What an attacker may try, each with its test:
//! - no credential, a guessed, altered, expired, revoked or rotated one, two at once: `credentials.rs`, on every row;
//! - a good key for more than its scopes, class or vaults: `credentials.rs`, on every row;
//! - the name of another principal, a class or scopes that were not given, a key that gives more away: `credentials.rs`;
//! - a page of the web: another `Host` (DNS rebinding) or `Origin`, a CORS preflight: `guards.rs`;
//! - keys in the clear on a network, a listener without any key: `guards.rs`;
//! - a token with another algorithm, issuer, audience, key or claim: `api/src/auth/jwt.rs`, and `tokens.rs` over the network;
//! - a certificate that is replaced by half: `tls.rs`;
//! - all of that at the addresses of MCP, a session that outlives its key, or asks more often than its key may: `mcp.rs`;
//! - an approval that no user of a named client gave: `elicited.rs`;
//! - all of that where a connection becomes a terminal, one that floods, does not read or sends what is no message: `terminals/`;
//! - slow heads and bodies, large bodies and heads, many headers, many idle connections, too many requests: `floods.rs`.

mod credentials;
mod description;
mod elicited;
mod floods;
mod fuzz;
mod guards;
mod kernel;
mod logs;
mod mcp;
mod shape;
mod streams;
mod terminals;
mod tls;
mod tokens;
mod traces;

use avfs_testkit::Home;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

const BIN: &str = env!("CARGO_BIN_EXE_avfs");

/// How long a test waits for an answer that comes at once.
const PATIENCE: Duration = Duration::from_secs(120);

/// A home whose daemon listens on the network. It ends with this.
struct Server {
    home: Home,
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts it for a home that has a key.
    fn start(home: Home, words: &[&str]) -> Server {
        Server::start_with(home, words, Stdio::inherit())
    }

    /// Starts it with this standard error.
    fn start_with(home: Home, words: &[&str], stderr: Stdio) -> Server {
        let all = [&["--json", "serve", "--listen", "127.0.0.1:0"], words].concat();
        let mut child = home
            .command(&all)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        // The answer is several lines of JSON, and the pipe stays open.
        while !line.trim_end().ends_with('}') {
            assert_ne!(
                out.read_line(&mut line).expect("text"),
                0,
                "it ended: {line}"
            );
        }
        let said: Value = serde_json::from_str(&line).expect("JSON");
        let address = said["address"].as_str().expect("an address");
        Server {
            home,
            child,
            address: address.parse().expect("an address"),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Sends a request with these headers more; gives the answer.
    fn ask(&self, headers: &str, method: &str, address: &str, body: &str) -> Answer {
        let host = match headers.contains("host:") {
            true => String::new(),
            false => format!("host: {}\r\n", self.address),
        };
        let headers = match headers {
            "" => String::new(),
            headers => format!("{headers}\r\n"),
        };
        let length = body.len();
        let request = format!(
            "{method} {address} HTTP/1.1\r\n{host}{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let mut stream = self.connect();
        // Whoever is refused early may find the connection closed.
        let _ = stream.write_all(request.as_bytes());
        Answer::read(stream)
    }

    fn get(&self, key: &str, address: &str) -> Answer {
        self.ask(&bearer(key), "GET", address, "")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer as it came.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// Reads until the connection closes. A connection that broke has answered nothing more.
    fn read(mut stream: TcpStream) -> Answer {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Answer {
            status: status.unwrap_or(0),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line.starts_with(header))
    }
}

fn bearer(key: &str) -> String {
    format!("authorization: Bearer {key}")
}

/// Makes a key; gives its text.
fn key(home: &Home, name: &str, words: &[&str]) -> String {
    let made = home.json(&[&["key", "create", name], words].concat());
    made["key"].as_str().expect("a key").to_owned()
}

fn home() -> Home {
    Home::new(BIN)
}
