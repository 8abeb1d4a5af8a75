//! The description of the API: `/openapi.json`, and a page at `/docs` that shows it and loads nothing from other hosts.

use crate::ops::app::App;
use crate::table::openapi;
use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::{Arc, LazyLock};

/// The parts of the page. They say nothing about this daemon, so they need no credential; the document has its version
/// and needs one.
pub(super) const PAGE: [(&str, &str, &str); 3] = [
    (
        "/docs",
        "text/html; charset=utf-8",
        include_str!("page/page.html"),
    ),
    (
        "/docs/page.css",
        "text/css; charset=utf-8",
        include_str!("page/page.css"),
    ),
    (
        "/docs/page.js",
        "text/javascript; charset=utf-8",
        include_str!("page/page.js"),
    ),
];

/// The page asks this daemon alone, and is shown in no other page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi().to_string());

/// Adds the addresses.
pub(super) fn add(mut router: Router<Arc<App>>) -> Router<Arc<App>> {
    for (address, kind, text) in PAGE {
        router = router.route(address, get(move || async move { part(kind, text) }));
    }
    router.route("/openapi.json", get(document))
}

async fn document() -> Response {
    part("application/json", DOCUMENT.as_str())
}

fn part(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}
