//! A row of the table as a route: for every kind of handler, a request passes the guard and the gate, waits for its lane,
//! and runs on a thread that may block.

use super::retried::Noted;
use super::uncommitted::note_uncommitted;
use super::watch::{Gone, Here};
use super::{
    bodies, docs, events, files, guard, health, kernel, repeats, streams, terminals, watch,
};
use crate::bounds::LaneBound;
use crate::mcp;
use crate::ops::app::{App, AtWork};
use crate::ops::caller::{Ask, Caller, may_ask};
use crate::ops::erased::{self, Answer, Erased, Serve};
use crate::ops::failure::Failure;
use crate::ops::repeats::{Asked, Claim};
use crate::ops::traces::Ended;
use crate::ops::{lanes, parse_vault};
use crate::table::{Method, Operation};
use avfs_runtime::{ErrorKind, Select};
use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::HeaderName;
use axum::http::request::Parts;
use axum::http::{self, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use hyper::body::Body as _;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::spawn_blocking;

/// The media type of events.
const EVENTS: &str = "text/event-stream";
/// Another address of `exec`, whose answer is always events.
const EXEC_STREAM: &str = "/v1/vaults/{vault}/exec/stream";

/// Every row as a route.
pub(crate) fn router(app: Arc<App>) -> Router {
    let refused = || async { Failure::wrong_method() };
    let lost = || async { Failure::new(ErrorKind::NotFound, "no such address") };
    let mut router = Router::new();
    for operation in erased::all() {
        router = add(router, operation, &app);
    }
    router = terminals::add(router, &app);
    kernel::add(docs::add(health::add(router)))
        .merge(mcp::service(&app))
        .method_not_allowed_fallback(refused)
        .fallback(lost)
        .layer(from_fn_with_state(Arc::clone(&app), note_uncommitted))
        .layer(from_fn_with_state(Arc::clone(&app), at_home))
        .layer(from_fn_with_state(Arc::clone(&app), guard::identify))
        .layer(from_fn(kernel::translate))
        .with_state(app)
}

fn add(router: Router<Arc<App>>, operation: Erased, app: &Arc<App>) -> Router<Arc<App>> {
    let method = match operation.row.method {
        Method::Get if operation.has_post => MethodFilter::GET.or(MethodFilter::POST),
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Delete => MethodFilter::DELETE,
    };
    let (row, operation) = (operation.row, Arc::new(operation));
    let handler = {
        let operation = Arc::clone(&operation);
        move |State(app): State<Arc<App>>, address: RawPathParams, request: Request| {
            measured(Arc::clone(&operation), app, address, request)
        }
    };
    let as_events =
        move |State(app): State<Arc<App>>, address: RawPathParams, mut request: Request| {
            let events = header::HeaderValue::from_static(EVENTS);
            request.headers_mut().insert(header::ACCEPT, events);
            measured(Arc::clone(&operation), app, address, request)
        };
    let handler = match row.effect.changes_home() {
        false => on(method, handler),
        true => {
            let guard = from_fn_with_state(Arc::clone(app), if_writable);
            on(method, handler).layer(guard)
        }
    };
    match row.name {
        // Where Prometheus looks.
        "metrics" => router.route("/metrics", handler.clone()),
        // For clients that cannot set `Accept`.
        "exec" => {
            let guard = from_fn_with_state(Arc::clone(app), if_writable);
            router.route(EXEC_STREAM, on(method, as_events).layer(guard))
        }
        _ => router,
    }
    .route(row.route, handler)
}

/// Refuses changes of a read-only home.
pub(super) async fn if_writable(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let Err(error) = app.runtime.check_writable() else {
        return next.run(request).await;
    };
    let failure = Failure::from(error);
    if app.runtime.has_become_writable() && app.idle_for().is_some() {
        // The next daemon opens it for writing.
        app.stop.notify_one();
        let hint = "it has become writable; run the command again";
        return failure.hint(hint).into_response();
    }
    failure.into_response()
}

/// Refuses requests if the home is no longer the one that this daemon opened. Status and stop still work.
async fn at_home(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let is_about_home = !request.uri().path().starts_with("/v1/daemon");
    if is_about_home && app.place.is_lost() {
        app.home_lost.notify_one();
        return Failure::home_lost(app.place.home()).into_response();
    }
    next.run(request).await
}

/// Serves a request, and counts it.
async fn measured(
    operation: Arc<Erased>,
    app: Arc<App>,
    address: RawPathParams,
    request: Request,
) -> Response {
    let (name, begun) = (operation.row.name, Instant::now());
    let (route, method) = (operation.row.route, operation.row.method.as_str());
    let caller = request.extensions().get::<Caller>();
    let trace = caller.and_then(|caller| caller.trace);
    let by = caller.map(|caller| caller.principal);
    let answer = serve(operation, Arc::clone(&app), address, request).await;
    let answer = answer.into_response();
    let status = answer.status().as_u16();
    app.served(name, status, begun.elapsed(), by);
    if trace.is_some() {
        let ended = Ended {
            name,
            took: begun.elapsed(),
            failed: status >= 500,
            attributes: vec![
                ("http.request.method", method.into()),
                ("http.route", route.into()),
                ("http.response.status_code", status.into()),
            ],
        };
        app.traces.request(trace, &ended);
    }
    answer
}

/// Serves a request by the handler of its row.
async fn serve(
    operation: Arc<Erased>,
    app: Arc<App>,
    address: RawPathParams,
    request: Request,
) -> Result<Response, Failure> {
    let arrived = Arrived::new(Arc::clone(&operation), app, &address, request)?;
    repeats::check(&operation, &arrived.parts.headers, arrived.wants_events())?;
    match &operation.serve {
        Serve::Watched(serve) if arrived.wants_events() => Ok(watch::with_events(
            arrived.whole().await?,
            Arc::clone(serve),
        )),
        Serve::Answer(serve) | Serve::Watched(serve) => {
            let (it, serve) = (arrived.whole().await?, Arc::clone(serve));
            at_once(it, move |it, gone| {
                serve(&it.ask, it.vault, it.request, gone)
            })
            .await
        }
        Serve::Receives(serve) => streams::receive(arrived, Arc::clone(serve)).await,
        Serve::Sends(kind, serve) => streams::send(arrived, kind, Arc::clone(serve)).await,
        Serve::Opens(open) => files::send_file(arrived, Arc::clone(open)).await,
        Serve::Runs(serve) if arrived.wants_events() => {
            events::run(arrived.whole().await?, Arc::clone(serve)).await
        }
        Serve::Runs(serve) => {
            let (it, serve) = (arrived.whole().await?, Arc::clone(serve));
            at_once(it, move |it, gone| {
                serve(&it.ask, it.vault, it.request, gone)
            })
            .await
        }
        Serve::Follows { once, follow } => {
            events::follow(arrived, Arc::clone(once), Arc::clone(follow)).await
        }
        Serve::Tells { page, follow } => {
            events::tell(arrived, Arc::clone(page), Arc::clone(follow)).await
        }
        Serve::Feeds(open) => streams::feed(arrived, Arc::clone(open)).await,
    }
}

/// A received request of a permitted caller.
pub(crate) struct Arrived {
    pub app: Arc<App>,
    pub parts: Parts,
    operation: Arc<Erased>,
    at_work: AtWork,
    caller: Caller,
    vault: Select,
    body: Body,
}

/// An admitted request with its place in a lane.
pub(crate) struct Admitted {
    pub it: Work,
    /// Held until the work is done.
    pub under_way: (AtWork, Option<lanes::LaneGuard>),
    /// What a request with the same idempotency key is compared with.
    repeatable: Option<Asked>,
}

/// The input of a handler.
pub(crate) struct Work {
    pub ask: Ask,
    pub vault: Select,
    pub request: erased::Request,
}

impl Arrived {
    fn new(
        operation: Arc<Erased>,
        app: Arc<App>,
        address: &RawPathParams,
        request: Request,
    ) -> Result<Arrived, Failure> {
        let at_work = app.enter();
        let (parts, body) = request.into_parts();
        let caller = guard::known(&operation.row, &parts)?;
        may_ask(&operation.row, &caller)?;
        let vault = address.iter().find(|(name, _)| *name == "vault");
        let vault = match vault {
            Some((_, name)) => parse_vault(name)?,
            None => Select::Current,
        };
        Ok(Arrived {
            app,
            parts,
            operation,
            at_work,
            caller,
            vault,
            body,
        })
    }

    pub fn lane(&self) -> LaneBound {
        self.operation.row.lane
    }

    /// Whether the client accepts events.
    pub fn wants_events(&self) -> bool {
        let accept = self.parts.headers.get(header::ACCEPT);
        let accept = accept.and_then(|value| value.to_str().ok());
        accept.is_some_and(|accept| accept.contains(EVENTS))
    }

    /// The request in the query.
    pub fn query(&self) -> Result<erased::Request, Failure> {
        let query = self.parts.uri.query().unwrap_or_default();
        self.operation.read_query(query)
    }

    /// Whether it is for this operation.
    pub fn is<O: Operation>(&self) -> bool {
        self.operation.row.name == O::NAME
    }

    /// The request in the query, with these headers as fields.
    pub fn query_and(&self, headers: &[(HeaderName, &str)]) -> Result<erased::Request, Failure> {
        let query = self.parts.uri.query().unwrap_or_default();
        let mut query = query.to_owned();
        for (header, field) in headers {
            for value in self.parts.headers.get_all(header) {
                let value = String::from_utf8_lossy(value.as_bytes());
                let pair = serde_html_form::to_string([(field, value)]);
                let pair = pair.map_err(|error| Failure::invalid(error.to_string()))?;
                query = format!("{query}&{pair}");
            }
        }
        self.operation.read_query(query.trim_start_matches('&'))
    }

    /// A whole request without a stream, admitted in the lane of its row.
    pub async fn whole(mut self) -> Result<Admitted, Failure> {
        let mut repeatable = None;
        let request = match self.parts.method {
            http::Method::POST => {
                let body = std::mem::take(&mut self.body);
                let headers = &self.parts.headers;
                let received = bodies::receive(&self.operation, &self.at_work, headers, body);
                let (request, hash) = received.await?;
                repeatable = repeats::asked(&self.operation.row, &self.parts, &self.caller, hash);
                request
            }
            http::Method::DELETE if !self.body.is_end_stream() => {
                let problem = "DELETE has its fields in the query, and no body";
                return Err(Failure::invalid(problem));
            }
            _ => self.query()?,
        };
        let lane = self.lane();
        let (admitted, _) = self.admit(request, Some(lane)).await?;
        Ok(Admitted {
            repeatable,
            ..admitted
        })
    }

    /// Waits for the lane and passes the gate. The body is not read.
    pub async fn admit(
        self,
        request: erased::Request,
        lane: Option<LaneBound>,
    ) -> Result<(Admitted, Body), Failure> {
        let Arrived {
            app,
            operation,
            at_work,
            caller,
            vault,
            body,
            ..
        } = self;
        let place = match lane {
            Some(lane) => Some(app.lanes.enter(lane, &caller).await?),
            None => None,
        };
        let looks_up = caller.grant.is_limited();
        let log = app.place.log();
        let pass = move || {
            let (ask, vault) = operation.admit(app, caller, vault, &request)?;
            let it = Work {
                ask,
                vault,
                request,
            };
            let under_way = (at_work, place);
            Ok::<_, Failure>(Admitted {
                it,
                under_way,
                repeatable: None,
            })
        };
        // The gate reads from the runtime only for callers that are limited to some vaults.
        let admitted = match looks_up {
            true => spawn_blocking(pass)
                .await
                .map_err(|_| Failure::panicked(&log))?,
            false => pass(),
        };
        Ok((admitted?, body))
    }
}

/// Does the work and sends the answer. If the client disconnects, the work is cancelled.
pub(crate) async fn at_once(
    admitted: Admitted,
    work: impl FnOnce(Work, &Gone) -> Result<Answer, Failure> + Send + 'static,
) -> Result<Response, Failure> {
    let Admitted {
        it,
        under_way,
        repeatable,
    } = admitted;
    let (log, bodies) = (it.ask.app.place.log(), Arc::clone(&it.ask.app.bodies));
    let claim = match repeatable {
        Some(asked) => match it.ask.app.repeats.claim(asked).await? {
            Claim::Mine(claim) => Some(claim),
            Claim::Answered(json) => return Ok(repeats::replayed(&json)),
        },
        None => None,
    };
    let here = Here::default();
    let gone = here.gone();
    let work = spawn_blocking(move || {
        let _under_way = under_way;
        let app = Arc::clone(&it.ask.app);
        let noted =
            Noted::of(|| work(it, &gone).map_err(|failure| failure.with_figures(&app.runtime)));
        if let (Some(claim), Ok(answer)) = (claim, &noted.done) {
            // Also for a caller that has disconnected: it will ask again.
            claim.keep(&answer.json);
        }
        noted
    });
    let answer = work.await.map_err(|_| Failure::panicked(&log))?;
    drop(here);
    Ok(answer.send(&bodies).await)
}
