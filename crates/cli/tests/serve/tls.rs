//! TLS: nobody reads along, and a new certificate is shown without a restart.

use super::{PATIENCE, Server, bearer, home, key};
use avfs_testkit::wait_for;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// A new certificate for `localhost` and its key, as PEM.
fn pair() -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
    [made.cert.pem(), made.signing_key.serialize_pem()]
}

/// Puts a file in the place of another at once.
fn replace(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).expect("own file");
    fs::rename(draft, path).expect("own file");
}

/// Asks with TLS, trusting this certificate alone; none when it is not the one that is shown.
fn ask(server: &Server, trusted: &str, key: &str) -> Option<String> {
    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from_pem_slice(trusted.as_bytes()).expect("a certificate");
    roots.add(trusted).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("known versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = StreamOwned::new(client, server.connect());
    let head = format!(
        "GET /v1/vaults HTTP/1.1\r\nhost: localhost\r\n{}\r\nconnection: close\r\n\r\n",
        bearer(key)
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // The other end may close without saying so in TLS.
    let _ = stream.read_to_end(&mut answer);
    Some(String::from_utf8_lossy(&answer).into_owned()).filter(|text| !text.is_empty())
}

#[test]
fn certificates_are_shown_and_replaced_while_it_runs() {
    let (first, second) = (pair(), pair());
    let home = home();
    let good = key(&home, "good", &["--scope", "read"]);
    let (cert, secret) = (home.path().join("cert.pem"), home.path().join("key.pem"));
    replace(&cert, &first[0]);
    replace(&secret, &first[1]);
    let words = [
        "--tls-cert",
        cert.to_str().expect("a path"),
        "--tls-key",
        secret.to_str().expect("a path"),
    ];
    let server = Server::start(home, &words);
    let answer = ask(&server, &first[0], &good).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        ask(&server, &second[0], &good).is_none(),
        "another certificate"
    );
    // Without TLS there is no answer at all.
    assert_eq!(server.get(&good, "/v1/vaults").status, 0);
    // Half of a new pair changes nothing.
    replace(&cert, &second[0]);
    assert!(ask(&server, &first[0], &good).is_some());
    replace(&secret, &second[1]);
    assert!(wait_for(PATIENCE, || ask(&server, &second[0], &good).is_some()));
    assert!(ask(&server, &first[0], &good).is_none());
}

#[test]
fn a_pair_that_cannot_be_used_is_refused_at_the_start() {
    let (first, second) = (pair(), pair());
    let home = home();
    key(&home, "good", &["--scope", "read"]);
    let (cert, secret) = (home.path().join("cert.pem"), home.path().join("key.pem"));
    replace(&cert, &first[0]);
    let serve = || {
        let words = [
            "--json",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            cert.to_str().expect("a path"),
            "--tls-key",
            secret.to_str().expect("a path"),
        ];
        let output = home.avfs(&words);
        assert!(!output.status.success());
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")["error"].clone()
    };
    assert_eq!(serve(), "Invalid", "there is no key");
    replace(&secret, "nonsense");
    assert_eq!(serve(), "Invalid", "it is no key");
    replace(&secret, &second[1]);
    assert_eq!(serve(), "Invalid", "it is another's key");
}
