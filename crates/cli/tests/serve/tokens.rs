//! Tokens of an identity provider, over the network.

use super::{PATIENCE, Server, bearer, home};
use avfs_testkit::wait_for;
use base64ct::{Base64UrlUnpadded, Encoding};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// An identity provider with a new key.
struct Provider {
    key: Ed25519KeyPair,
    /// The name of the key.
    kid: &'static str,
}

impl Provider {
    fn new() -> Provider {
        Provider::named("one")
    }

    fn named(kid: &'static str) -> Provider {
        let secret = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let key = Ed25519KeyPair::from_pkcs8(secret.as_ref()).expect("a key");
        Provider { key, kid }
    }

    /// Its key set.
    fn keys(&self) -> String {
        let x = Base64UrlUnpadded::encode_string(self.key.public_key().as_ref());
        let key = json!({
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": self.kid, "x": x,
        });
        json!({ "keys": [key] }).to_string()
    }

    /// A token of Ann, who may read and write in the vaults of her team.
    fn token(&self) -> String {
        let part = |value: Value| Base64UrlUnpadded::encode_string(value.to_string().as_bytes());
        let header = part(json!({ "alg": "EdDSA", "kid": self.kid, "typ": "JWT" }));
        let claims = part(json!({
            "iss": "https://id.example", "aud": ["avfs"], "sub": "ann@example",
            "exp": 9_999_999_999_u64, "scope": "openid read write", "avfs_vaults": ["team-*"],
        }));
        let text = format!("{header}.{claims}");
        let signature = self.key.sign(text.as_bytes());
        let signature = Base64UrlUnpadded::encode_string(signature.as_ref());
        format!("{text}.{signature}")
    }
}

/// A service on this machine that answers every request with the same text, which can be changed.
struct Published {
    address: SocketAddr,
    text: Arc<Mutex<String>>,
}

impl Published {
    fn new(text: String) -> Published {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let text = Arc::new(Mutex::new(text));
        let shown = Arc::clone(&text);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut head = [0; 4096];
                let _ = stream.read(&mut head);
                let text = shown.lock().expect("no panic").clone();
                let length = text.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Published { address, text }
    }

    fn publish(&self, text: &str) {
        text.clone_into(&mut self.text.lock().expect("no panic"));
    }
}

#[test]
fn keys_are_fetched_from_a_url_and_fetched_again() {
    let (provider, next) = (Provider::new(), Provider::named("two"));
    let published = Published::new(provider.keys());
    let home = home();
    home.ok(&["vault", "create", "team-a"]);
    let url = format!("http://{}/jwks.json", published.address);
    let words = [
        "--jwt-issuer",
        "https://id.example",
        "--jwt-audience",
        "avfs",
        "--jwt-keys",
    ];
    let server = Server::start(home, &[&words[..], &[&url]].concat());
    let status = |token: &str| server.get(token, "/v1/vaults").status;
    assert_eq!(status(&provider.token()), 200);
    // What is no key set changes nothing.
    published.publish("{");
    assert_eq!(status(&next.token()), 401);
    assert_eq!(status(&provider.token()), 200);
    published.publish(&next.keys());
    assert!(wait_for(PATIENCE, || status(&next.token()) == 200));
    assert_eq!(status(&provider.token()), 401, "a key that is withdrawn");
}

#[test]
fn keys_from_where_others_could_change_them_are_refused() {
    let home = home();
    for url in [
        "http://id.example/jwks.json",
        "http://127.0.0.1:1/none",
        "ftp://127.0.0.1/x",
    ] {
        let words = [
            "--json",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--jwt-issuer",
            "https://id.example",
            "--jwt-audience",
            "avfs",
            "--jwt-keys",
            url,
        ];
        let output = home.avfs(&words);
        assert!(!output.status.success(), "{url}");
    }
}

fn server(provider: &Provider, issuer: &str, audience: &str) -> Server {
    let home = home();
    for vault in ["team-a", "other"] {
        home.ok(&["vault", "create", vault]);
    }
    let keys = home.path().join("jwks.json");
    fs::write(&keys, provider.keys()).expect("own file");
    let keys = keys.to_str().expect("a path").to_owned();
    let words = [
        "--jwt-issuer",
        issuer,
        "--jwt-audience",
        audience,
        "--jwt-keys",
        &keys,
    ];
    Server::start(home, &words)
}

#[test]
fn a_token_is_a_principal_with_scopes_and_vaults() {
    let provider = Provider::new();
    let server = server(&provider, "https://id.example", "avfs");
    let token = provider.token();
    let bearer = bearer(&token);
    let listed = server.ask(&bearer, "GET", "/v1/vaults", "");
    assert_eq!(listed.status, 200, "{listed:?}");
    assert!(!listed.body.contains("other"), "{listed:?}");
    let write = json!({ "path": "/x", "content": "y" }).to_string();
    let write = |vault: &str| {
        let address = format!("/v1/vaults/{vault}/files/write");
        server.ask(&bearer, "POST", &address, &write)
    };
    assert_eq!(write("team-a").status, 200);
    assert_eq!(write("other").status, 403);
    let exec = server.ask(
        &bearer,
        "POST",
        "/v1/vaults/team-a/exec",
        r#"{"argv":["true"]}"#,
    );
    assert_eq!(exec.status, 403, "the token has no such scope: {exec:?}");
    let entry = &server.home.json(&["audit", "-n", "1"])["entries"][0];
    assert_eq!(entry["by"], "agent:jwt/ann@example", "{entry:#}");
    // A token whose text was changed anywhere is nobody's.
    for at in [0, token.len() / 2, token.len() - 2] {
        let mut bytes = token.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("text");
        let answer = server.get(&changed, "/v1/vaults");
        assert_eq!(answer.status, 401, "{at}: {answer:?}");
    }
}

#[test]
fn tokens_for_others_are_refused() {
    let provider = Provider::new();
    for (issuer, audience) in [
        ("https://other.example", "avfs"),
        ("https://id.example", "other"),
    ] {
        let server = server(&provider, issuer, audience);
        assert_eq!(
            server.get(&provider.token(), "/v1/vaults").status,
            401,
            "{issuer} {audience}"
        );
    }
    let stranger = Provider::new();
    let server = server(&provider, "https://id.example", "avfs");
    assert_eq!(server.get(&stranger.token(), "/v1/vaults").status, 401);
    assert_eq!(server.get(&provider.token(), "/v1/vaults").status, 200);
}
