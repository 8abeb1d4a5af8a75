//! Real servers on loopback: a site over HTTP and TLS, a proxy that the host needs, and lines that are echoed.

use base64ct::{Base64, Encoding};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a server waits for a client that says nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// The first byte of a TLS greeting.
const HANDSHAKE: u8 = 22;
/// Every name that a site's certificate is for.
const NAMES: [&str; 2] = ["*.example.test", "example.test"];

/// What servers were asked, in order.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub fn note(&self, what: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(what);
    }

    pub fn all(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn has(&self, part: &str) -> bool {
        self.all().iter().any(|what| what.contains(part))
    }
}

/// Serves files at a port of loopback, with and without TLS. It ends with the test program.
pub struct Site {
    pub port: u16,
    /// The certificate to trust, as PEM.
    pub trusted: String,
    pub seen: Seen,
    /// The heads of all requests, in small letters.
    pub heads: Seen,
    files: Files,
    stopped: Arc<AtomicBool>,
}

/// What is served at each path: further headers, and the body.
type Files = Arc<Mutex<BTreeMap<String, (String, Vec<u8>)>>>;

impl Site {
    pub fn start() -> Site {
        let (trusted, tls) = certificate();
        let (listener, port) = listen();
        let site = Site {
            port,
            trusted,
            seen: Seen::default(),
            heads: Seen::default(),
            files: Arc::default(),
            stopped: Arc::default(),
        };
        site.put("/", "hello");
        let seen = (site.seen.clone(), site.heads.clone());
        let files = Arc::clone(&site.files);
        let stopped = Arc::clone(&site.stopped);
        each_connection(listener, move |stream| {
            if stopped.load(Ordering::SeqCst) {
                return Ok(());
            }
            let mut first = [0];
            if stream.peek(&mut first)? == 0 {
                return Ok(());
            }
            if first[0] != HANDSHAKE {
                return answer(stream, &seen, &files);
            }
            let server = ServerConnection::new(Arc::clone(&tls)).map_err(io::Error::other)?;
            answer(StreamOwned::new(server, stream), &seen, &files)
        });
        site
    }

    /// Serves these bytes at a path.
    pub fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        self.put_with(path, "", bytes);
    }

    /// Serves these bytes at a path, with headers, each of which ends a line.
    pub fn put_with(&self, path: &str, headers: &str, bytes: impl AsRef<[u8]>) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(
            path.to_owned(),
            (headers.to_owned(), bytes.as_ref().to_vec()),
        );
    }

    /// Closes every connection from now on.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Sends who asks for a path elsewhere.
    pub fn redirect(&self, path: &str, to: &str) {
        self.put_with(path, &format!("Location: {to}\r\n"), "");
    }

    /// Serves everything with these headers from now on.
    pub fn put_on_all(&self, headers: &str) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files
            .values_mut()
            .for_each(|file| file.0 = headers.to_owned());
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        let end = format!(" {path}");
        let all = self.seen.all();
        all.iter().filter(|line| line.ends_with(&end)).count()
    }

    /// Serves every file beneath a directory, below a path.
    pub fn put_all(&self, path: &str, dir: &std::path::Path) {
        for entry in std::fs::read_dir(dir).expect("own directory") {
            let entry = entry.expect("own directory");
            let name = entry.file_name().into_string().expect("text");
            let at = format!("{path}/{name}");
            match entry.path().is_dir() {
                true => self.put_all(&at, &entry.path()),
                false => self.put(&at, std::fs::read(entry.path()).expect("own file")),
            }
        }
    }
}

/// Answers one request.
fn answer(
    mut stream: impl Read + Write,
    (seen, heads): &(Seen, Seen),
    files: &Files,
) -> io::Result<()> {
    let head = read_head(&mut stream)?;
    let mut words = head.split_whitespace();
    let (method, uri) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let lower = head.to_ascii_lowercase();
    heads.note(lower.clone());
    let host = lower
        .lines()
        .find_map(|line| line.strip_prefix("host:"))
        .unwrap_or_default();
    // What is not read would make closing a reset.
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|length| length.trim().parse().ok())
        .unwrap_or(0);
    io::copy(&mut (&mut stream).take(length), &mut io::sink())?;
    // A proxy's client says the whole address.
    let path = match uri.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => uri,
    };
    seen.note(format!("{method} {} {path}", host.trim()));
    let path = path.split('?').next().unwrap_or_default();
    let found = files
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(path)
        .cloned();
    let (status, (more, body)) = match found {
        // Says what it got.
        _ if path == "/echo" => ("200 OK", (String::new(), head.clone().into_bytes())),
        Some(file) if file.0.starts_with("Location") => ("302 Found", file),
        Some(file) => ("200 OK", file),
        None => ("404 Not Found", (String::new(), b"no such file".to_vec())),
    };
    let kind = match () {
        () if path.starts_with("/simple") => "text/html",
        () if body.starts_with(b"{") => "application/json",
        () => "application/octet-stream",
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n{more}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)?;
    stream.flush()
}

pub fn read_head(stream: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 64 << 10 {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// A certificate for all names, and what to trust for it.
pub fn certificate() -> (String, Arc<ServerConfig>) {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Two certificates of one name would be taken for one that signed itself.
    let name = &mut parameters.distinguished_name;
    name.push(DnType::CommonName, "authority of tests");
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().expect("a key");
    let issuer = CertifiedIssuer::self_signed(parameters, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let mut leaf = CertificateParams::new(NAMES.map(str::to_owned)).expect("names");
    // OpenSSL 3 insists on it.
    leaf.use_authority_key_identifier_extension = true;
    let leaf = leaf.signed_by(&key, &issuer).expect("a certificate");
    let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("known versions")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private)
        .expect("a pair");
    (issuer.pem(), Arc::new(config))
}

/// The proxy without which the host reaches nobody. It wants a password. Ports 80 and 443 of every host are the site's; every
/// other port is that of loopback.
pub struct HostProxy {
    pub url: String,
    pub seen: Seen,
}

impl HostProxy {
    pub const PASSWORD: &str = "canary-5f2a";

    pub fn start(site: u16) -> HostProxy {
        let (listener, port) = listen();
        let seen = Seen::default();
        let noted = seen.clone();
        let word = Base64::encode_string(format!("me:{}", HostProxy::PASSWORD).as_bytes());
        each_connection(listener, move |mut stream| {
            let head = read_head(&mut stream)?;
            let lines: Vec<&str> = head.lines().collect();
            noted.note(lines[0].to_owned());
            if !head.contains(&word) {
                return stream.write_all(b"HTTP/1.1 407 Who Are You\r\nContent-Length: 0\r\n\r\n");
            }
            let target = lines[0].split(' ').nth(1).unwrap_or_default();
            if lines[0].starts_with("CONNECT ") {
                let port = match target.rsplit(':').next() {
                    Some("80" | "443") | None => site,
                    Some(other) => other.parse().map_err(io::Error::other)?,
                };
                let outside = TcpStream::connect(("127.0.0.1", port))?;
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                return join(stream, outside);
            }
            let mut outside = TcpStream::connect(("127.0.0.1", site))?;
            outside.write_all(head.as_bytes())?;
            join(stream, outside)
        });
        HostProxy {
            url: format!("http://me:{}@127.0.0.1:{port}", HostProxy::PASSWORD),
            seen,
        }
    }
}

/// Copies both ways until either end closes.
fn join(inside: TcpStream, outside: TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (inside.try_clone()?, outside.try_clone()?);
    let there = std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (outside, inside);
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = there.join();
    Ok(())
}

/// Sends every line back, and notes it.
pub struct Echo {
    pub port: u16,
    pub seen: Seen,
}

impl Echo {
    pub fn start() -> Echo {
        let (listener, port) = listen();
        let seen = Seen::default();
        let noted = seen.clone();
        each_connection(listener, move |mut stream| {
            noted.note("connected".into());
            let lines = BufReader::new(stream.try_clone()?).lines();
            for line in lines {
                let line = line?;
                stream.write_all(format!("{line}\n").as_bytes())?;
                noted.note(line);
            }
            noted.note("closed".into());
            Ok(())
        });
        Echo { port, seen }
    }
}

pub fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// Serves each connection on a thread of its own. A connection that breaks has ended.
pub fn each_connection(
    listener: TcpListener,
    serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static,
) {
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || {
                let _ = stream.set_read_timeout(Some(PATIENCE));
                let _ = serve(stream);
            });
        }
    });
}
