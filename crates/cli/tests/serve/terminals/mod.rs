//! Terminals over WebSocket.

mod doors;
mod harm;
mod work;

use super::{Server, bearer, home, key};
use avfs_api::table::ATTACH;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::HandshakeError;
use tungstenite::http::{HeaderName, HeaderValue};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message, WebSocket};

/// A terminal for a new command in the vault `v`.
const OPEN_V: &str = "/v1/vaults/v/exec/terminal";

/// A client at a terminal.
struct Client<S> {
    socket: WebSocket<S>,
    /// All bytes that the terminal showed.
    seen: Vec<u8>,
}

/// What came.
#[derive(Debug)]
enum Came {
    Bytes,
    Text(Value),
    Closed(Option<CloseCode>),
}

impl<S: Read + Write> Client<S> {
    /// Opens a WebSocket over a connection, or gives the status of the refusal.
    fn over(
        stream: S,
        host: &str,
        address: &str,
        headers: &[(&str, &str)],
    ) -> Result<Client<S>, u16> {
        let url = format!("ws://{host}{address}");
        let mut request = url.into_client_request().expect("an address");
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a header");
            let value = HeaderValue::from_str(value).expect("a header");
            request.headers_mut().insert(name, value);
        }
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Client {
                socket,
                seen: Vec::new(),
            }),
            Err(HandshakeError::Failure(Error::Http(answer))) => Err(answer.status().as_u16()),
            Err(error) => panic!("no answer: {error}"),
        }
    }

    fn tell(&mut self, message: &Value) {
        let text = Message::text(message.to_string());
        self.socket.send(text).expect("it listens");
    }

    fn type_keys(&mut self, keys: &str) {
        let keys = Message::binary(keys.as_bytes().to_vec());
        self.socket.send(keys).expect("it listens");
    }

    fn next(&mut self) -> Came {
        loop {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => {
                    self.seen.extend_from_slice(&bytes);
                    return Came::Bytes;
                }
                Ok(Message::Text(text)) => {
                    return Came::Text(serde_json::from_str(&text).expect("JSON"));
                }
                Ok(Message::Close(frame)) => return Came::Closed(frame.map(|it| it.code)),
                Ok(_) => {}
                Err(_) => return Came::Closed(None),
            }
        }
    }

    /// The next text message, which must be of that type.
    fn told(&mut self, kind: &str) -> Value {
        loop {
            match self.next() {
                Came::Bytes => {}
                Came::Text(told) => {
                    assert_eq!(told["type"], kind, "{told:#}");
                    return told;
                }
                Came::Closed(code) => panic!("closed with {code:?} before {kind}"),
            }
        }
    }

    /// Reads until the terminal has shown this.
    fn wait_for(&mut self, text: &str) {
        while !self.text().contains(text) {
            match self.next() {
                Came::Bytes => {}
                other => panic!("{other:?} instead of {text:?} after {}", self.text()),
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// The last message, of that type, after which the connection is closed.
    fn last(&mut self, kind: &str, code: CloseCode) -> Value {
        let last = self.told(kind);
        match self.next() {
            Came::Closed(Some(closed)) => assert_eq!(closed, code, "{last:#}"),
            other => panic!("{other:?} after {last:#}"),
        }
        last
    }

    /// The last text message before the connection is closed, whatever it is.
    fn very_last(&mut self) -> Value {
        let mut last = Value::Null;
        loop {
            match self.next() {
                Came::Bytes => {}
                Came::Text(told) => last = told,
                Came::Closed(_) => return last,
            }
        }
    }
}

impl Server {
    fn terminal(&self, address: &str, headers: &[(&str, &str)]) -> Result<Client<TcpStream>, u16> {
        Client::over(self.connect(), &self.address.to_string(), address, headers)
    }

    /// A terminal in the vault `v`, for a client with this key.
    fn open(&self, key: &str) -> Client<TcpStream> {
        let opened = self.terminal(OPEN_V, &[("x-api-key", key)]);
        opened.expect("a terminal")
    }

    /// A terminal with a command at it, which was taken.
    fn run(&self, key: &str, command: &Value) -> Client<TcpStream> {
        let mut client = self.open(key);
        client.tell(command);
        client.told("started");
        client
    }

    fn attach(&self, key: &str, job: &Value, offset: usize) -> Client<TcpStream> {
        let address = format!("{}?job_id={job}&offset={offset}", ATTACH.route);
        let opened = self.terminal(&address, &[("x-api-key", key)]);
        opened.expect("a terminal")
    }

    /// Starts a job at a terminal.
    fn start_job(&self, key: &str, shell: &str) -> Value {
        let size = json!({ "rows": 24, "columns": 80 });
        let body = json!({ "exec": { "shell": shell, "tty": size } }).to_string();
        let made = self.ask(&bearer(key), "POST", "/v1/vaults/v/jobs", &body);
        let job = made.json()["job_id"].clone();
        assert!(job.is_number(), "{made:?}");
        job
    }
}

fn served(scopes: &str) -> (Server, String) {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let good = key(&home, "good", &["--scope", scopes]);
    (Server::start(home, &[]), good)
}
