//! What commands do in a sandbox: ask for names, connect, and talk to proxies.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use avfs_net::{DNS, HTTP_PROXY, SOCKS_PROXY};

use crate::world::Sandbox;

/// For what must not happen, so that a failed test ends.
const LATE: Duration = Duration::from_secs(30);
pub const A: u16 = 1;
pub const TXT: u16 = 16;
pub const AAAA: u16 = 28;
pub const HTTPS: u16 = 65;
pub const NULL: u16 = 10;

/// An answer from the DNS door: its code, and the address of its only record.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Address(Ipv4Addr),
    AddressV6(Ipv6Addr),
    /// The name exists, and has no such record.
    Empty,
    NoSuchName,
    Other(u8),
}

pub fn question(labels: &[&[u8]], kind: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in labels {
        bytes.push(label.len() as u8);
        bytes.extend(*label);
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes
}

fn answer(bytes: &[u8]) -> Answer {
    assert_eq!(bytes[..2], [0x12, 0x34]);
    match (bytes[3] & 15, bytes[7]) {
        (0, 0) => Answer::Empty,
        (0, 1) if bytes[bytes.len() - 18..][..2] == [0, 16] => {
            let last: [u8; 16] = bytes[bytes.len() - 16..].try_into().unwrap();
            Answer::AddressV6(last.into())
        }
        (0, 1) => {
            let last: [u8; 4] = bytes[bytes.len() - 4..].try_into().unwrap();
            Answer::Address(last.into())
        }
        (3, 0) => Answer::NoSuchName,
        (code, _) => Answer::Other(code),
    }
}

impl Sandbox {
    pub fn connect(&self, address: impl Into<SocketAddr>) -> io::Result<TcpStream> {
        let address = address.into();
        let stream = self.space.run(move || TcpStream::connect(address))?;
        stream.set_read_timeout(Some(LATE))?;
        Ok(stream)
    }

    pub fn ask(&self, labels: &[&[u8]], kind: u16) -> Answer {
        let bytes = question(labels, kind);
        // Only made in the namespace: its thread also makes the sockets of names that are asked for.
        let socket = self.space.run(|| UdpSocket::bind("127.0.0.1:0").unwrap());
        socket.set_read_timeout(Some(LATE)).unwrap();
        socket.send_to(&bytes, DNS).unwrap();
        let mut buffer = [0; 2048];
        let length = socket.recv(&mut buffer).unwrap();
        answer(&buffer[..length])
    }

    pub fn ask_over_tcp(&self, labels: &[&[u8]], kind: u16) -> Answer {
        let bytes = question(labels, kind);
        let mut stream = self.connect(DNS).unwrap();
        stream
            .write_all(&(bytes.len() as u16).to_be_bytes())
            .unwrap();
        stream.write_all(&bytes).unwrap();
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut buffer = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut buffer).unwrap();
        answer(&buffer)
    }

    pub fn look_up(&self, name: &str) -> Answer {
        let labels: Vec<&[u8]> = name.split('.').map(str::as_bytes).collect();
        self.ask(&labels, A)
    }

    /// The address of a name that must have one.
    pub fn address(&self, name: &str) -> IpAddr {
        match self.look_up(name) {
            Answer::Address(address) => IpAddr::V4(address),
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Connects to a name as a program does that knows no proxy.
    pub fn dial(&self, name: &str, port: u16) -> io::Result<TcpStream> {
        self.connect((self.address(name), port))
    }

    /// Sends bytes to the HTTP proxy, and reads all that comes back.
    pub fn proxied(&self, request: &[u8]) -> String {
        talk(self.connect(HTTP_PROXY).unwrap(), request)
    }

    /// A tunnel by CONNECT; without one, the whole answer.
    pub fn tunnel(&self, target: &str) -> Result<TcpStream, String> {
        let mut stream = self.connect(HTTP_PROXY).unwrap();
        write!(
            stream,
            "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
        )
        .unwrap();
        let head = head(&mut stream);
        match head.starts_with("HTTP/1.1 200") {
            true => Ok(stream),
            false => {
                let mut rest = String::new();
                let _ = stream.read_to_string(&mut rest);
                Err(head + &rest)
            }
        }
    }

    /// A tunnel by SOCKS 5 to a name; without one, the code of the answer.
    pub fn socks(&self, name: &[u8], port: u16) -> Result<TcpStream, u8> {
        let mut address = vec![3, name.len() as u8];
        address.extend(name);
        self.socks_raw(1, &address, port)
    }

    pub fn socks_raw(&self, command: u8, address: &[u8], port: u16) -> Result<TcpStream, u8> {
        let mut stream = self.connect(SOCKS_PROXY).unwrap();
        stream.write_all(&[5, 1, 0]).unwrap();
        let mut method = [0; 2];
        stream.read_exact(&mut method).unwrap();
        assert_eq!(method, [5, 0]);
        stream.write_all(&[5, command, 0]).unwrap();
        stream.write_all(address).unwrap();
        stream.write_all(&port.to_be_bytes()).unwrap();
        let mut answer = [0; 10];
        stream.read_exact(&mut answer).unwrap();
        match answer[1] {
            0 => Ok(stream),
            code => Err(code),
        }
    }

    pub fn socks4(&self, name: &str, port: u16) -> Result<TcpStream, u8> {
        let mut stream = self.connect(SOCKS_PROXY).unwrap();
        let mut request = vec![4, 1];
        request.extend(port.to_be_bytes());
        request.extend([0, 0, 0, 1]);
        request.extend(b"me\0");
        request.extend(name.as_bytes());
        request.push(0);
        stream.write_all(&request).unwrap();
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).unwrap();
        match answer[1] {
            90 => Ok(stream),
            code => Err(code),
        }
    }
}

/// Reads the head of an answer, and nothing after it.
pub fn head(stream: &mut impl Read) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => text.push(byte[0]),
            _ => break,
        }
    }
    String::from_utf8(text).unwrap()
}

/// Sends bytes, and reads until the other side closes.
pub fn talk(mut stream: TcpStream, request: &[u8]) -> String {
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length) = stream.read(&mut buffer) {
        if length == 0 {
            break;
        }
        answer.extend(&buffer[..length]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// One request by TLS, with this server name.
pub fn secure(
    stream: TcpStream,
    config: Arc<rustls::ClientConfig>,
    name: &str,
) -> io::Result<String> {
    let name = name.to_owned().try_into().map_err(io::Error::other)?;
    let session = rustls::ClientConnection::new(config, name).map_err(io::Error::other)?;
    let mut stream = rustls::StreamOwned::new(session, stream);
    stream.write_all(b"GET /secure HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let head = head(&mut stream);
    match head.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(head),
    }
}

/// Sends bytes to an echo server and expects them back.
pub fn echoes(stream: &mut TcpStream) -> bool {
    let mut back = [0; 4];
    stream.write_all(b"ping").is_ok() && stream.read_exact(&mut back).is_ok() && &back == b"ping"
}

/// Whether the other side ends the connection, by a reset or otherwise.
pub fn ends(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(length) => length == 0,
        Err(error) => !matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
        ),
    }
}

/// Whether the other side resets the connection.
pub fn is_reset(stream: &mut TcpStream) -> bool {
    let read = stream.read(&mut [0; 64]);
    read.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
}

/// The body of a refusal, which must have the one shape.
pub fn problem(answer: &str) -> serde_json::Value {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{answer:?}"));
    assert!(
        head.contains("content-type: application/problem+json"),
        "{answer}"
    );
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    let status = problem["status"].as_u64().unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    for key in ["type", "title", "detail", "rule"] {
        assert!(problem[key].is_string(), "{answer}");
    }
    problem
}
