//! Tokens of an identity provider, over the network.

use super::{Server, bearer, home};
use serde_json::json;
use std::fs;

/// Made once with an Ed25519 key whose public half is in `fixtures/jwks.json`. It expires in the year 2286.
const TOKEN: &str = include_str!("fixtures/token.txt");
const KEYS: &str = include_str!("fixtures/jwks.json");

fn server(issuer: &str, audience: &str) -> Server {
    let home = home();
    for vault in ["team-a", "other"] {
        home.ok(&["vault", "create", vault]);
    }
    let keys = home.path().join("jwks.json");
    fs::write(&keys, KEYS).expect("own file");
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
    let server = server("https://id.example", "avfs");
    let bearer = bearer(TOKEN.trim());
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
    for at in [0, TOKEN.len() / 2, TOKEN.trim().len() - 2] {
        let mut bytes = TOKEN.trim().as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("text");
        let answer = server.get(&changed, "/v1/vaults");
        assert_eq!(answer.status, 401, "{at}: {answer:?}");
    }
}

#[test]
fn tokens_for_others_are_refused() {
    for (issuer, audience) in [
        ("https://other.example", "avfs"),
        ("https://id.example", "other"),
    ] {
        let server = server(issuer, audience);
        assert_eq!(
            server.get(TOKEN.trim(), "/v1/vaults").status,
            401,
            "{issuer} {audience}"
        );
    }
}
