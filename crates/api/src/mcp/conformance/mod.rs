//! The protocol's own conformance suite, for both of its eras, against a server that is set up as ours is.
//!
//! The suite needs tools, resources and prompts of certain names (`fixture.rs`). Transport, settings, the check of `Host`
//! and `Origin`, and the shape of failures are those of the daemon. Clients of the handshake era have sessions here,
//! because the suite has the server ask the client something. No failure is expected: there is no list of exceptions.

mod fixture;

use super::http_config;
use crate::http::Hosts;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use fixture::Fixture;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The last revision of the handshake era.
const HANDSHAKE: &str = "2025-11-25";

/// What `scripts/test` fetches. Whoever set `AVFS_TEST_TOOLS` has promised it.
fn suite() -> Option<PathBuf> {
    let told = std::env::var_os("AVFS_TEST_TOOLS").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let found = told.clone().unwrap_or(beside).join("mcp-js-1");
    let found = found.canonicalize().ok();
    assert!(
        told.is_none() || found.is_some(),
        "scripts/test promised the suite"
    );
    found
}

/// As the guard of the daemon does for connections from the network.
async fn own_hosts(request: Request, next: Next) -> Response {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    match Hosts::default().check(request.headers(), request.uri(), here) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

fn router(subscribes: bool) -> Router {
    let fixture = Fixture {
        key: Arc::new([7; 32]),
        subscribes,
    };
    let fresh = move || Ok(fixture.clone());
    let config = http_config().with_legacy_session_mode(true);
    let sessions = Arc::<LocalSessionManager>::default();
    let service = StreamableHttpService::new(fresh, sessions, config);
    Router::new()
        .route_service("/mcp", service)
        .layer(from_fn(own_hosts))
}

fn passes(revision: &'static str) {
    let Some(tools) = suite() else {
        crate::mcp::tests::skip("the conformance suite is not there; scripts/test fetches it");
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = router(revision == HANDSHAKE);
    runtime.spawn(async { axum::serve(listener, router).await });
    let place = tempfile::tempdir().expect("a directory");
    let output = Command::new(tools.join("node"))
        .arg(tools.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args([
            "server",
            "--requirements",
            revision,
            "--output-dir",
            "out",
            "--url",
        ])
        .arg(format!("http://{address}/mcp"))
        .current_dir(&place)
        .output()
        .expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    let (_, summary) = said.split_once("=== SUMMARY ===").unwrap_or(("", &said));
    let failed = failures(&place.path().join("out"));
    assert!(
        output.status.success(),
        "{revision}: {summary}\n{told}\n{failed:#?}"
    );
    assert!(summary.contains("✓ tools-call-simple-text"), "{said}");
}

/// What the suite wrote down of checks that failed.
fn failures(results: &Path) -> Vec<String> {
    let mut failed = Vec::new();
    for scenario in std::fs::read_dir(results).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(scenario.path().join("checks.json"));
        let checks: Vec<Value> = text
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let bad = checks.iter().filter(|it| it["status"] == "FAILURE");
        let name = scenario.file_name();
        failed.extend(bad.map(|it| {
            let (id, why) = (&it["id"], &it["errorMessage"]);
            format!("{}: {id}: {why}", name.to_string_lossy())
        }));
    }
    failed
}

#[test]
fn the_conformance_suite_passes_for_the_current_revision() {
    passes("2026-07-28");
}

#[test]
fn the_conformance_suite_passes_for_the_handshake_era() {
    passes(HANDSHAKE);
}
