//! Servers on loopback that note what they are asked.

use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// One server. `/echo` answers with the request, `/to?URL` sends the client elsewhere, and other paths are files.
pub struct Server {
    pub address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn plain(address: &str) -> Server {
        Server::start(address, None, PathBuf::from("/nowhere"))
    }

    /// By TLS, with a certificate for `localhost`, which is given as PEM; its files are in a directory.
    pub fn secure(address: &str, files: PathBuf) -> (Server, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key))
            .unwrap();
        let server = Server::start(address, Some(Arc::new(config)), files);
        (server, made.cert.pem())
    }

    /// Its threads end with the test's process.
    fn start(address: &str, tls: Option<Arc<ServerConfig>>, files: PathBuf) -> Server {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (noted, tls, files) = (Arc::clone(&noted), tls.clone(), files.clone());
                std::thread::spawn(move || match tls {
                    None => answer(stream, &noted, &files),
                    Some(config) => {
                        let session = ServerConnection::new(config).unwrap();
                        answer(StreamOwned::new(session, stream), &noted, &files);
                    }
                });
            }
        });
        Server { address, heads }
    }

    /// The heads of all requests until now.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub fn received(&self, text: &str) -> bool {
        self.heads().iter().any(|head| head.contains(text))
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// One request and its answer. A client that goes away is no failure of the test.
fn answer(mut stream: impl Read + Write, noted: &Mutex<Vec<String>>, files: &std::path::Path) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    noted.lock().unwrap().push(head.clone());
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (status, more, body) = match path {
        "/echo" => ("200 OK", String::new(), head.clone().into_bytes()),
        "/to" => ("302 Found", format!("Location: {query}\r\n"), Vec::new()),
        path => match fs::read(files.join(path.trim_start_matches('/'))) {
            Ok(bytes) => ("200 OK", String::new(), bytes),
            Err(_) => ("404 Not Found", String::new(), Vec::new()),
        },
    };
    let length = body.len();
    let first =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n");
    let _ = stream.write_all(first.as_bytes());
    let _ = stream.write_all(&body);
    let _ = stream.flush();
}
