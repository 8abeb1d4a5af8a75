//! The description of the API, and the page that shows it.

use super::{Server, home, key};

const PAGE: [(&str, &str); 3] = [
    ("/docs", "text/html"),
    ("/docs/page.css", "text/css"),
    ("/docs/page.js", "text/javascript"),
];

#[test]
fn the_document_is_the_one_that_is_published() {
    let home = home();
    let good = key(&home, "good", &["--scope", "read"]);
    let server = Server::start(home, &[]);
    assert_eq!(server.ask("", "GET", "/openapi.json", "").status, 401);
    let answer = server.get(&good, "/openapi.json");
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert!(answer.has("content-type: application/json"));
    let published = include_str!("../../../../docs/openapi.json");
    let published: serde_json::Value = serde_json::from_str(published).expect("JSON");
    assert_eq!(answer.json(), published);
}

/// A browser that opens the page talks to this daemon alone, and gets nothing of it without a key.
#[test]
fn the_page_needs_no_other_host_and_no_key() {
    let home = home();
    home.ok(&["vault", "create", "secret-name"]);
    let _ = key(&home, "good", &["--scope", "read"]);
    let server = Server::start(home, &[]);
    for (address, kind) in PAGE {
        let answer = server.ask("", "GET", address, "");
        assert_eq!(answer.status, 200, "{address}: {answer:?}");
        assert!(answer.has(&format!("content-type: {kind}")), "{answer:?}");
        assert!(
            answer.has("content-security-policy: default-src 'none'; script-src 'self'"),
            "{answer:?}"
        );
        for elsewhere in ["http:", "https:", "\"//", "'//", "@import", "secret-name"] {
            assert!(!answer.body.contains(elsewhere), "{address}: {elsewhere}");
        }
        for markup in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
        ] {
            assert!(!answer.body.contains(markup), "{address}: {markup}");
        }
        assert_eq!(server.ask("", "POST", address, "").status, 405, "{address}");
        let foreign = server.ask("host: evil.example", "GET", address, "");
        assert_eq!(foreign.status, 403, "{address}");
    }
    for address in ["/docs/", "/docs/x", "/docs/../v1/vaults", "/openapi.json"] {
        let answer = server.ask("", "GET", address, "");
        assert_eq!(answer.status, 401, "{address}: {answer:?}");
    }
}
