//! Whether the daemon lives, and whether it can serve: for whoever watches over it, without a credential.

use crate::ops::app::App;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::sync::Arc;

/// Adds the two addresses.
pub(super) fn add(router: Router<Arc<App>>) -> Router<Arc<App>> {
    router
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
}

/// Ready while the home is there.
async fn ready(State(app): State<Arc<App>>) -> (StatusCode, &'static str) {
    match app.place.is_lost() {
        false => (StatusCode::OK, "ready\n"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "the home is gone\n"),
    }
}
