//! MCP: tools, resources and prompts over the rows of the table. The daemon has the only server; `avfs mcp` pumps lines
//! to it, and `/mcp` speaks streamable HTTP. Whoever speaks MCP has the agent's class, whatever it says of itself.

mod answer;
mod approving;
#[cfg(test)]
mod conformance;
mod core;
#[cfg(test)]
mod exempt;
mod guide;
mod hands;
mod lines;
mod live;
mod prompts;
pub mod relay;
mod resources;
mod sandbox;
mod schema;
mod server;
#[cfg(test)]
mod tests;
mod tools;

pub(crate) use guide::lifecycle::{fresh_name, no_image};
pub(crate) use guide::workspace::{STATE as SANDBOX_STATE, STOPPED as SANDBOX_STOPPED};
pub use tools::Toolset;

use crate::bounds::MCP_LINE_MAX;
use crate::http::{agent_of, arrive};
use crate::ops::app::App;
use crate::ops::caller::Caller;
use crate::ops::failure::Failure;
use crate::serving::Open;
use crate::wire::{CURRENT, VaultInfo};
use avfs_runtime::ErrorKind;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hands::Hands;
use hyper_util::rt::TokioIo;
use lines::Lines;
use live::Telling;
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService, Transport};
use rmcp::{RoleServer, ServiceExt};
use serde::Deserialize;
use server::{Client, Connected, Server, Wanted};
use std::pin::pin;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What a connection that carries lines is called in HTTP.
pub(crate) const PROTOCOL: &str = "avfs-mcp";
pub(crate) const LINES_ROUTE: &str = "/mcp/lines";

/// The settings of streamable HTTP.
fn http_config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        // Who may connect at all, under which name and from which page, is seen to before.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(false)
        .with_max_request_body_bytes(MCP_LINE_MAX)
}

/// The routes of MCP.
pub(crate) fn service(app: &Arc<App>) -> Router<Arc<App>> {
    let made = Arc::clone(app);
    let fresh = move || Ok(Server::new(Arc::clone(&made), Client::Requests));
    let http =
        StreamableHttpService::new(fresh, Arc::<NeverSessionManager>::default(), http_config());
    Router::new()
        .route_service("/mcp", http)
        .route_layer(from_fn_with_state(Arc::clone(app), whole))
        .route(LINES_ROUTE, post(lines_of))
}

/// Waits for a message as for every request in JSON: so long, so large, and with memory reserved.
async fn whole(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let at_work = app.enter();
    let (parts, body) = request.into_parts();
    let bytes = arrive("mcp", MCP_LINE_MAX, &at_work, &parts.headers, body).await?;
    Ok(next.run(Request::from_parts(parts, bytes.into())).await)
}

/// What a client says in its address that it wants.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    toolset: Option<String>,
    vault: Option<String>,
}

/// The sets, if it names some, and the vault that an address asks for.
type Named = (Option<Vec<Toolset>>, String);

fn named(uri: &Uri) -> Result<Named, Failure> {
    let query: Query =
        serde_html_form::from_str(uri.query().unwrap_or_default()).map_err(|error| {
            Failure::invalid(format!("the query is not what was expected: {error}"))
        })?;
    let sets = match &query.toolset {
        None => None,
        Some(names) => {
            let sets = names.split(',').map(|name| {
                let unknown = || Failure::invalid(format!("there is no toolset {name:?}"));
                Toolset::parse(name.trim()).ok_or_else(unknown)
            });
            Some(sets.collect::<Result<Vec<_>, _>>()?)
        }
    };
    let vault = query.vault.unwrap_or_else(|| CURRENT.into());
    crate::ops::parse_vault(&vault)?;
    Ok((sets, vault))
}

/// What a client is given: the sets that it names, or those of its vault's mode.
async fn settle(app: &Arc<App>, caller: &Caller, (sets, vault): Named) -> Wanted {
    let sets = match sets {
        Some(sets) => sets,
        None => {
            let hands = Hands {
                app: Arc::clone(app),
                caller: caller.clone(),
                vault: vault.clone(),
                rows: &["vault_info"],
                telling: Telling::nobody(),
            };
            // Without a vault that it may look at, a client has the usual tools.
            let info = hands.ask(&vault, &VaultInfo {}).await.ok();
            let of_mode = info.and_then(|info| Toolset::parse(&info.mode?.toolset));
            of_mode.map_or(Wanted::default().sets, |set| vec![set])
        }
    };
    Wanted { sets, vault }
}

/// Who sent a request of streamable HTTP, and what it names.
fn of_request(extensions: &Extensions) -> Result<(Caller, Named), Failure> {
    let Some(parts) = extensions.get::<Parts>() else {
        return Err(Failure::invalid("it came by no request"));
    };
    Ok((agent_of(parts)?, named(&parts.uri)?))
}

/// Turns a connection into lines, and serves its client until it goes, its credential ends or the daemon ends.
async fn lines_of(State(app): State<Arc<App>>, mut request: Request) -> Result<Response, Failure> {
    let asked = request.headers().get(UPGRADE);
    if asked.is_none_or(|protocol| protocol.as_bytes() != PROTOCOL.as_bytes()) {
        let what = format!("this address is for connections that become {PROTOCOL}");
        return Err(Failure::invalid(what).hint("run `avfs mcp`"));
    }
    let upgrading = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let (caller, named) = (agent_of(&parts)?, named(&parts.uri)?);
    let wanted = settle(&app, &caller, named).await;
    let Some(open) = parts.extensions.get::<Open>().cloned() else {
        return Err(Failure::new(
            ErrorKind::Bug,
            "a request without a connection",
        ));
    };
    // It stays counted, and makes no room for others.
    let busy = open.busy();
    tokio::spawn(async move {
        let _held = (app.open_session(), busy);
        let Ok(stream) = upgrading.await else { return };
        let (read, write) = tokio::io::split(TokioIo::new(stream));
        let client = Connected {
            caller,
            wanted,
            open: open.clone(),
        };
        let server = Server::new(Arc::clone(&app), Client::Connected(Box::new(client)));
        let cut = CancellationToken::new();
        let lines = Lines::new(read, write, cut.clone());
        let end = async {
            tokio::select! {
                () = app.sessions_end() => {}
                // Nothing more is sent.
                () = open.lost(&app) => cut.cancel(),
            }
        };
        converse(server, lines, end).await;
    });
    let headers = [(CONNECTION, "upgrade"), (UPGRADE, PROTOCOL)];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

/// Serves one client. When the daemon ends, answers that are ready are still sent.
async fn converse<T>(server: Server, transport: T, end: impl Future<Output = ()>)
where
    T: Transport<RoleServer, Error = std::io::Error> + 'static,
{
    let mut end = pin!(end);
    let begun = tokio::select! {
        begun = server.serve(transport) => begun,
        () = &mut end => return,
    };
    let Ok(running) = begun else { return };
    let leave = running.cancellation_token();
    let mut waiting = pin!(running.waiting());
    // How it ended is known at the other end.
    tokio::select! {
        _ = &mut waiting => {}
        () = &mut end => {
            leave.cancel();
            let _ = waiting.await;
        }
    }
}
