//! Terminals over WebSocket: a command that runs as long as its client is connected, and the terminal of a job, which
//! continues. The messages are in `wire/terminal.rs`.

mod attach;
mod open;
mod talk;

use super::routes::if_writable;
use crate::bounds::TERMINAL_MESSAGE_MAX;
use crate::ops::app::App;
use crate::ops::caller::Caller;
use crate::ops::erased::read_fields;
use crate::ops::failure::Failure;
use crate::serving::Open;
use crate::table::{ATTACH, OPEN, Terminal};
use avfs_runtime::{ErrorKind, Principal};
use axum::Router;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Instant;

/// The name of these messages, for clients that name protocols.
const PROTOCOL: &str = "avfs.terminal";
/// Bytes that are read at once.
const READ: usize = 16 << 10;

/// Adds both addresses.
pub(super) fn add(router: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
    let guard = from_fn_with_state(Arc::clone(app), if_writable);
    let open = |State(app): State<Arc<App>>, address: RawPathParams, request: Request| {
        let vault = address.iter().find(|(name, _)| *name == "vault");
        let vault = vault.map(|(_, vault)| vault.to_owned()).unwrap_or_default();
        let by = principal(&request);
        counted(OPEN, Arc::clone(&app), by, open::open(app, vault, request))
    };
    let attach = |State(app): State<Arc<App>>, request: Request| {
        let by = principal(&request);
        counted(ATTACH, Arc::clone(&app), by, attach::attach(app, request))
    };
    router
        .route(OPEN.route, get(open).layer(guard.clone()))
        .route(ATTACH.route, get(attach).layer(guard))
}

fn principal(request: &Request) -> Option<Principal> {
    let caller = request.extensions().get::<Caller>();
    caller.map(|caller| caller.principal)
}

/// Counts a request, up to the head of its answer.
async fn counted(
    terminal: Terminal,
    app: Arc<App>,
    by: Option<Principal>,
    work: impl Future<Output = Result<Response, Failure>>,
) -> Response {
    let begun = Instant::now();
    let answer = work.await.into_response();
    let status = answer.status().as_u16();
    app.served(terminal.name, status, begun.elapsed(), by);
    answer
}

/// The fields in the query of a request.
fn query<T: Serialize + DeserializeOwned>(parts: &Parts) -> Result<T, Failure> {
    read_fields(parts.uri.query().unwrap_or_default())
}

/// A client at a terminal.
#[derive(Clone)]
struct Client {
    app: Arc<App>,
    caller: Caller,
    open: Open,
}

impl Client {
    /// Makes the connection of a permitted request one of messages, and passes it to `talk`. It stays counted, makes no room
    /// for others, and ends with its credential or with the daemon.
    async fn upgrade<F>(
        app: Arc<App>,
        caller: Caller,
        mut parts: Parts,
        talk: impl FnOnce(Client, WebSocket) -> F + Send + 'static,
    ) -> Result<Response, Failure>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &())
            .await
            .map_err(|refused| Failure::not_upgraded(refused.body_text()))?;
        let Some(open) = parts.extensions.get::<Open>().cloned() else {
            return Err(Failure::new(
                ErrorKind::Bug,
                "a request without a connection",
            ));
        };
        let at_work = (app.enter(), app.open_session(), open.busy());
        let upgrade = upgrade
            .protocols([PROTOCOL])
            .read_buffer_size(READ)
            .max_frame_size(TERMINAL_MESSAGE_MAX)
            .max_message_size(TERMINAL_MESSAGE_MAX);
        Ok(upgrade.on_upgrade(move |socket| async move {
            let _at_work = at_work;
            let client = Client {
                app: Arc::clone(&app),
                caller,
                open: open.clone(),
            };
            // Dropping the talk closes the connection.
            tokio::select! {
                () = talk(client, socket) => {}
                () = app.sessions_end() => {}
                () = open.lost(&app) => {}
            }
        }))
    }
}
