//! The dialect of agentkernel, for its clients: `/run`, `/sandboxes…`, `/snapshots…`, answers of the form
//! `{"success", "data"}`. A sandbox is a vault. Whoever speaks it has the agent's class, as over MCP.
//!
//! What cannot be had here is refused by name; no field is read and ignored. Unlike there, every run has a place of its own,
//! output is sent as it is written, and an exit code is the kernel's.

mod answer;
mod asker;
mod detached;
mod files;
mod run;
mod sandboxes;
mod snapshots;

pub(super) use answer::translate;

use crate::ops::app::App;
use axum::Router;
use axum::routing::{get, post};
use std::sync::Arc;

/// What needs no credential.
pub(super) const PUBLIC: &str = "/health";

/// Adds the addresses.
pub(super) fn add(router: Router<Arc<App>>) -> Router<Arc<App>> {
    router
        .route(PUBLIC, get(answer::health))
        .route("/run", post(run::run))
        .route("/run/stream", post(run::stream))
        .route("/batch/run", post(run::batch))
        .route("/sandboxes", get(sandboxes::list).post(sandboxes::create))
        .route(
            "/sandboxes/{name}",
            get(sandboxes::info).delete(sandboxes::remove),
        )
        .route("/sandboxes/{name}/start", post(sandboxes::start))
        .route("/sandboxes/{name}/stop", post(sandboxes::stop))
        .route("/sandboxes/{name}/fork", post(sandboxes::fork))
        .route("/sandboxes/{name}/logs", get(sandboxes::logs))
        .route("/sandboxes/{name}/exec", post(run::exec))
        .route("/sandboxes/{name}/exec/detach", post(detached::start))
        .route("/sandboxes/{name}/exec/detached", get(detached::list))
        .route(
            "/sandboxes/{name}/exec/detached/{id}",
            get(detached::info).delete(detached::kill),
        )
        .route(
            "/sandboxes/{name}/exec/detached/{id}/logs",
            get(detached::logs),
        )
        .route("/sandboxes/{name}/files", post(files::write_all))
        .route(
            "/sandboxes/{name}/files/{*path}",
            get(files::read).put(files::write).delete(files::remove),
        )
        .route("/snapshots", get(snapshots::list).post(snapshots::take))
        .route(
            "/snapshots/{name}",
            get(snapshots::info).delete(snapshots::remove),
        )
        .route("/snapshots/{name}/restore", post(snapshots::restore))
}

/// Whether an address is one of the dialect's.
fn is_ours(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    ["health", "run", "batch", "sandboxes", "snapshots"].contains(&first)
}
