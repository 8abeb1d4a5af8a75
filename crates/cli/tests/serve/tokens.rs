//! Tokens of an identity provider, over the network.

use super::{Server, bearer, home};
use base64ct::{Base64UrlUnpadded, Encoding};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::fs;

/// An identity provider with a new key.
pub(super) struct Provider(Ed25519KeyPair);

impl Provider {
    pub fn new() -> Provider {
        let secret = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Provider(Ed25519KeyPair::from_pkcs8(secret.as_ref()).expect("a key"))
    }

    /// Its key set.
    pub fn keys(&self) -> String {
        let x = Base64UrlUnpadded::encode_string(self.0.public_key().as_ref());
        let key = json!({
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "one", "x": x,
        });
        json!({ "keys": [key] }).to_string()
    }

    /// A token of Ann, who may read and write in the vaults of her team.
    pub fn token(&self) -> String {
        let part = |value: Value| Base64UrlUnpadded::encode_string(value.to_string().as_bytes());
        let header = part(json!({ "alg": "EdDSA", "kid": "one", "typ": "JWT" }));
        let claims = part(json!({
            "iss": "https://id.example", "aud": ["avfs"], "sub": "ann@example",
            "exp": 9_999_999_999_u64, "scope": "openid read write", "avfs_vaults": ["team-*"],
        }));
        let text = format!("{header}.{claims}");
        let signature = self.0.sign(text.as_bytes());
        let signature = Base64UrlUnpadded::encode_string(signature.as_ref());
        format!("{text}.{signature}")
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
