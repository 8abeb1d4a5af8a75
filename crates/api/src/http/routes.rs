//! From an operation of the wire's table to a route: parsing, admission, and the thread it runs on.

use super::App;
use super::app::AtWork;
use super::bodies;
use super::caller::{Ask, Caller, admit};
use super::errors::Failure;
use super::retried::Noted;
use super::uncommitted::note_uncommitted;
use crate::bounds::lane_of;
use crate::wire::{CURRENT, Method, Operation, only_reads};
use avfs_runtime::{ErrorKind, Running, Select};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::Uri;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// What a handler gives back.
pub(crate) type Reply<O> = Result<<O as Operation>::Response, Failure>;

/// Routes as they are gathered.
pub(crate) struct Routes {
    all: Vec<Route>,
}

struct Route {
    name: &'static str,
    address: &'static str,
    handler: MethodRouter<Arc<App>>,
}

impl Routes {
    pub fn new() -> Routes {
        Routes { all: Vec::new() }
    }

    /// An operation that concerns no single vault.
    pub fn plain<O: Operation>(self, serve: fn(&Ask, O) -> Reply<O>) -> Routes {
        let handler = move |State(app): State<Arc<App>>, request: Request| async move {
            answer::<O, _>(app, request, serve).await
        };
        self.add::<O>(by_method::<O, _, _>(handler))
    }

    /// An operation on the vault named in the address.
    pub fn on_vault<O: Operation>(self, serve: fn(&Ask, Select, O) -> Reply<O>) -> Routes {
        let handler = move |State(app): State<Arc<App>>,
                            Path(vault): Path<String>,
                            request: Request| async move {
            let select = parse_vault(&vault)?;
            answer::<O, _>(app, request, move |ask, request| {
                serve(ask, select, request)
            })
            .await
        };
        self.add::<O>(by_method::<O, _, _>(handler))
    }

    /// An operation with a handler of its own.
    pub fn add<O: Operation>(mut self, handler: MethodRouter<Arc<App>>) -> Routes {
        self.all.push(Route {
            name: O::NAME,
            address: O::ROUTE,
            handler,
        });
        self
    }

    #[cfg(test)]
    pub fn names(&self) -> Vec<&'static str> {
        self.all.iter().map(|route| route.name).collect()
    }

    pub fn into_router(self, app: Arc<App>) -> Router {
        let refused = || async { Failure::new(ErrorKind::Invalid, "no such method here") };
        let lost = || async { Failure::new(ErrorKind::NotFound, "no such address") };
        let mut router = Router::new();
        for route in self.all {
            let handler = match only_reads(route.name) {
                true => route.handler,
                false => {
                    let guard = from_fn_with_state(Arc::clone(&app), if_writable);
                    route.handler.layer(guard)
                }
            };
            router = router.route(route.address, handler);
        }
        router
            .method_not_allowed_fallback(refused)
            .fallback(lost)
            .layer(from_fn_with_state(Arc::clone(&app), note_uncommitted))
            .layer(from_fn_with_state(Arc::clone(&app), at_home))
            .with_state(app)
    }
}

/// Refuses what would be done to another home than the one this daemon opened. To ask after it and to stop it goes on.
async fn at_home(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let is_about_home = !request.uri().path().starts_with("/v1/daemon");
    if is_about_home && app.place.is_lost() {
        app.home_lost.notify_one();
        return Failure::home_lost(app.place.home()).into_response();
    }
    next.run(request).await
}

/// Refuses what would change a home that can only be read.
async fn if_writable(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Err(error) = app.runtime.check_writable() else {
        return next.run(request).await;
    };
    let failure = Failure::from(error);
    if app.runtime.has_become_writable() && app.idle_for().is_some() {
        // The next daemon opens it as it is now.
        app.stop.notify_one();
        let hint = "it has become writable; run the command again";
        return failure.hint(hint).into_response();
    }
    failure.into_response()
}

pub(crate) fn by_method<O, H, T>(handler: H) -> MethodRouter<Arc<App>>
where
    O: Operation,
    H: axum::handler::Handler<T, Arc<App>>,
    T: 'static,
{
    match O::METHOD {
        Method::Get => get(handler),
        Method::Post => post(handler),
        Method::Put => put(handler),
        Method::Delete => delete(handler),
    }
}

/// Parses the request, answers it on a thread that may block, and writes the answer.
async fn answer<O, F>(app: Arc<App>, request: Request, serve: F) -> Result<Response, Failure>
where
    O: Operation,
    F: FnOnce(&Ask, O) -> Reply<O> + Send + 'static,
{
    let at_work = app.enter();
    let (caller, request) = receive::<O>(&at_work, request).await?;
    blocking::<O, _>(app, at_work, caller, move |ask| serve(ask, request)).await
}

/// Answers on a thread that may block, when it is the request's turn.
pub(crate) async fn blocking<O, F>(
    app: Arc<App>,
    at_work: AtWork,
    caller: Caller,
    serve: F,
) -> Result<Response, Failure>
where
    O: Operation,
    F: FnOnce(&Ask) -> Reply<O> + Send + 'static,
{
    let (log, bodies) = (app.place.log(), Arc::clone(&app.bodies));
    let turn = app.lanes.enter(lane_of(O::NAME), &caller).await?;
    let ask = Ask::new(app, caller);
    let reply = tokio::task::spawn_blocking(move || {
        let _under_way = (at_work, turn);
        Noted::of(|| {
            let answer = serve(&ask).map_err(|failure| failure.with_figures(&ask.app.runtime))?;
            Ok(bodies::write(&answer, Vec::new()))
        })
    });
    let reply = reply.await.map_err(|_| Failure::panicked(&log))?;
    Ok(reply.send(&bodies).await)
}

/// The operation a request asks for, and who asks.
pub(crate) async fn receive<O: Operation>(
    at_work: &AtWork,
    request: Request,
) -> Result<(Caller, O), Failure> {
    let (parts, body) = request.into_parts();
    let caller = admit::<O>(&parts)?;
    let request = match O::METHOD {
        Method::Get | Method::Put => parse_query(&parts.uri)?,
        Method::Post | Method::Delete => {
            bodies::receive(O::NAME, at_work, &parts.headers, body).await?
        }
    };
    Ok((caller, request))
}

/// As [`receive`] for an operation whose request is in the address, with the body as it comes.
pub(crate) fn query<O: Operation>(request: Request) -> Result<(Caller, O, Body), Failure> {
    let (parts, body) = request.into_parts();
    let caller = admit::<O>(&parts)?;
    Ok((caller, parse_query(&parts.uri)?, body))
}

fn parse_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Failure> {
    match Query::<T>::try_from_uri(uri) {
        Ok(Query(request)) => Ok(request),
        Err(error) => Err(Failure::invalid(error.body_text())),
    }
}

/// The vault an address means.
pub(crate) fn parse_vault(text: &str) -> Result<Select, Failure> {
    if text == CURRENT {
        return Ok(Select::Current);
    }
    Ok(Select::Named(parse(text)?))
}

/// A name or path from its text.
pub(crate) fn parse<T>(text: &str) -> Result<T, Failure>
where
    T: std::str::FromStr,
    avfs_runtime::Error: From<T::Err>,
{
    text.parse::<T>()
        .map_err(|error| Failure::from(avfs_runtime::Error::from(error)))
}

/// What `force` means for commands that are in the way.
pub(crate) fn running(force: bool) -> Running {
    if force {
        Running::End
    } else {
        Running::Respect
    }
}
