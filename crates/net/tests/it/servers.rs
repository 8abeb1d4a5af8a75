//! Servers on the host's side: plain HTTP, TLS, and bytes as they come.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use crate::space::listen_on;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The raw heads of the requests that a server has received.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, head: &str) {
        self.0.lock().unwrap().push(head.to_owned());
    }
}

fn accept(address: &str, serve: impl Fn(TcpStream) + Clone + Send + 'static) {
    let listener =
        listen_on(address.parse().unwrap()).unwrap_or_else(|error| panic!("{address}: {error}"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
}

/// Answers every request with the head that it got.
pub fn http(address: &str) -> Seen {
    let seen = Seen::default();
    let noted = seen.clone();
    accept(address, move |stream| {
        let writer = stream.try_clone().unwrap();
        requests(BufReader::new(stream), writer, &noted);
    });
    seen
}

/// Echoes whatever comes.
pub fn echo(address: &str) {
    accept(address, |mut stream| {
        let mut writer = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut stream, &mut writer);
    });
}

/// Sends this many zero bytes, and closes.
pub fn zeros(address: &str, bytes: u64) {
    accept(address, move |mut stream| {
        let _ = std::io::copy(&mut std::io::repeat(0).take(bytes), &mut stream);
    });
}

fn requests(mut reader: impl BufRead, mut writer: impl Write, seen: &Seen) {
    loop {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => head.push_str(&line),
            }
            if line == "\r\n" {
                break;
            }
        }
        seen.note(&head);
        let lower = head.to_ascii_lowercase();
        if lower.contains("upgrade: websocket") {
            let _ = writer.write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
            );
            let _ = std::io::copy(&mut reader, &mut writer);
            return;
        }
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        if lower.contains("transfer-encoding: chunked") {
            body = chunks(&mut reader);
        }
        let text = format!("{head}{}", String::from_utf8_lossy(&body));
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-Hop: 1\r\nConnection: x-hop\r\n\r\n{text}",
            text.len()
        );
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn chunks(reader: &mut impl BufRead) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let size = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).unwrap();
        if size == 0 {
            return body;
        }
        body.extend(&chunk[..size]);
    }
}

/// A certificate authority for tests.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Authority {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority(CertifiedIssuer::self_signed(parameters, key).unwrap())
    }

    fn config(&self, names: &[&str]) -> Arc<rustls::ServerConfig> {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &self.0)
            .unwrap();
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        Arc::new(config)
    }

    /// A TLS server for these names, which answers requests as [`http`] does.
    pub fn tls(&self, address: &str, names: &[&str]) -> Seen {
        let config = self.config(names);
        let seen = Seen::default();
        let noted = seen.clone();
        accept(address, move |stream| {
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            let session = Shared(Arc::new(Mutex::new(rustls::StreamOwned::new(
                session, stream,
            ))));
            requests(BufReader::new(session.clone()), session, &noted);
        });
        seen
    }

    /// A TLS server that sends this many zero bytes for whatever comes first.
    pub fn zeros(&self, address: &str, name: &str, bytes: u64) {
        let config = self.config(&[name]);
        accept(address, move |stream| {
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(session, stream);
            let _ = stream.read(&mut [0; 64]);
            let mut left = bytes;
            let zeros = vec![0; 256 * 1024];
            while left > 0 {
                let part = left.min(zeros.len() as u64);
                if stream.write_all(&zeros[..part as usize]).is_err() {
                    return;
                }
                left -= part;
            }
        });
    }

    pub fn certificate(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub fn client(&self) -> Arc<rustls::ClientConfig> {
        trusting(self.certificate())
    }
}

/// A client that trusts this authority alone.
pub fn trusting(certificate: CertificateDer<'static>) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// One TLS stream as reader and as writer. They take turns.
#[derive(Clone)]
struct Shared(Arc<Mutex<rustls::StreamOwned<rustls::ServerConnection, TcpStream>>>);

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().read(buffer)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().unwrap().flush()
    }
}
