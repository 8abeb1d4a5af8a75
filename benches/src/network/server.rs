//! A server on loopback: zeros by HTTP, with and without TLS, and bytes that are sent back.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The first byte of a TLS greeting.
const HANDSHAKE: u8 = 22;

/// Serves this many zeros on a port of loopback, until the program ends.
pub fn start(bytes: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let tls = certificate();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tls = Arc::clone(&tls);
            // A client that goes away has ended.
            std::thread::spawn(move || drop(serve(stream, tls, bytes)));
        }
    });
    port
}

fn serve(stream: TcpStream, tls: Arc<ServerConfig>, bytes: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut first = [0];
    stream.peek(&mut first)?;
    match first[0] {
        HANDSHAKE => {
            let server = ServerConnection::new(tls).map_err(io::Error::other)?;
            zeros(StreamOwned::new(server, stream), bytes)
        }
        b'G' => zeros(stream, bytes),
        _ => {
            let mut from = stream.try_clone()?;
            let mut to = stream;
            io::copy(&mut from, &mut to).map(drop)
        }
    }
}

fn zeros(mut stream: impl Read + Write, bytes: u64) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n"
    )?;
    let block = vec![0; 64 * 1024];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(block.len() as u64);
        stream.write_all(&block[..now as usize])?;
        left -= now;
    }
    stream.flush()
}

fn certificate() -> Arc<ServerConfig> {
    let key = KeyPair::generate().expect("a key");
    let names = vec!["bench.example.test".to_owned()];
    let parameters = CertificateParams::new(names).expect("a name");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("known versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .expect("a pair");
    Arc::new(config)
}
