//! A row of the table as a route: whatever the shape of its handler, a request passes the guard and the gate, waits for
//! its turn, and is done on a thread that may block.

use super::watch::{Gone, Here};
use super::{bodies, events, guard, streams, watch};
use crate::bounds::LaneBound;
use crate::ops::app::{App, AtWork};
use crate::ops::caller::{Ask, Caller, may_ask};
use crate::ops::failure::Failure;
use crate::ops::handler::{Handler, Reply, Served};
use crate::ops::{lanes, parse_vault};
use crate::table::{EachRow, Method, Operation};
use avfs_runtime::{ErrorKind, Select};
use axum::Router;
use axum::body::Body;
use axum::extract::{Query, RawPathParams, Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Routes as they are gathered.
#[derive(Default)]
pub(crate) struct Routes(Router<Arc<App>>);

impl EachRow for Routes {
    fn row<O: Served>(&mut self) {
        let method = match O::METHOD {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            Method::Delete => MethodFilter::DELETE,
        };
        let router = std::mem::take(&mut self.0);
        self.0 = router.route(O::ROUTE, on(method, serve::<O>));
    }
}

impl Routes {
    pub fn into_router(self, app: Arc<App>) -> Router {
        let refused = || async { Failure::new(ErrorKind::Invalid, "no such method here") };
        let lost = || async { Failure::new(ErrorKind::NotFound, "no such address") };
        self.0
            .method_not_allowed_fallback(refused)
            .fallback(lost)
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

/// Serves a request by the handler of its row.
async fn serve<O: Served>(
    State(app): State<Arc<App>>,
    address: RawPathParams,
    request: Request,
) -> Result<Response, Failure> {
    let arrived = Arrived::new::<O>(app, &address, request)?;
    match O::HANDLER {
        Handler::Answer(serve) => {
            let it = arrived.whole::<O>().await?;
            at_once(it, move |ask, _, request, _| serve(ask, request)).await
        }
        Handler::OnVault(serve) => {
            let it = arrived.whole::<O>().await?;
            at_once(it, move |ask, vault, request, _| serve(ask, vault, request)).await
        }
        Handler::Watched(serve) if arrived.wants_events() => {
            Ok(watch::with_events(arrived.whole::<O>().await?, serve))
        }
        Handler::Attended(serve) | Handler::Watched(serve) => {
            let it = arrived.whole::<O>().await?;
            at_once(it, move |ask, vault, request, gone| {
                serve(ask, vault, request, gone)
            })
            .await
        }
        Handler::Receives(serve) => streams::receive(arrived, serve).await,
        Handler::Sends(media_type, serve) => streams::send(arrived, media_type, serve).await,
        Handler::Runs(serve) => events::run(arrived, serve).await,
        Handler::Follows { once, follow } => events::follow(arrived, once, follow).await,
        Handler::Feeds(open) => streams::feed(arrived, open).await,
    }
}

/// A request that has come in, from somebody who may ask for such a thing.
pub(crate) struct Arrived {
    pub app: Arc<App>,
    at_work: AtWork,
    caller: Caller,
    vault: Select,
    pub parts: Parts,
    body: Body,
}

/// A request that the gate let in, when it is its turn.
pub(crate) struct Admitted<O> {
    pub ask: Ask,
    pub vault: Select,
    pub request: O,
    /// Held until the work is done.
    pub under_way: (AtWork, Option<lanes::Place>),
}

impl Arrived {
    fn new<O: Operation>(
        app: Arc<App>,
        address: &RawPathParams,
        request: Request,
    ) -> Result<Arrived, Failure> {
        let at_work = app.enter();
        let (parts, body) = request.into_parts();
        let caller = guard::caller::<O>(&parts)?;
        may_ask::<O>(&caller)?;
        let vault = address.iter().find(|(name, _)| *name == "vault");
        let vault = match vault {
            Some((_, name)) => parse_vault(name)?,
            None => Select::Current,
        };
        Ok(Arrived {
            app,
            at_work,
            caller,
            vault,
            parts,
            body,
        })
    }

    /// Whether the client wants to be told what happens meanwhile.
    pub fn wants_events(&self) -> bool {
        let accept = self.parts.headers.get(header::ACCEPT);
        let accept = accept.and_then(|value| value.to_str().ok());
        accept.is_some_and(|accept| accept.contains("text/event-stream"))
    }

    /// The request in the address.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        match Query::<T>::try_from_uri(&self.parts.uri) {
            Ok(Query(request)) => Ok(request),
            Err(error) => Err(Failure::invalid(error.body_text())),
        }
    }

    /// All of a request that carries no stream, admitted in the lane of its row.
    pub async fn whole<O: Served>(mut self) -> Result<Admitted<O>, Failure> {
        let request = match O::METHOD {
            Method::Get | Method::Put => self.query()?,
            Method::Post | Method::Delete => {
                let body = std::mem::take(&mut self.body);
                bodies::receive(&O::ROW, &self.at_work, &self.parts.headers, body).await?
            }
        };
        let (admitted, _) = self.admit(request, Some(O::ROW.lane)).await?;
        Ok(admitted)
    }

    /// Waits for the request's turn and passes the gate. The body is given back as it comes.
    pub async fn admit<O: Served>(
        self,
        request: O,
        lane: Option<LaneBound>,
    ) -> Result<(Admitted<O>, Body), Failure> {
        let Arrived {
            app,
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
        let looks_up = caller.grant.vaults.is_some();
        let log = app.place.log();
        let pass = move || {
            let (ask, vault) = Ask::admit(app, caller, vault, &request)?;
            Ok(Admitted {
                ask,
                vault,
                request,
                under_way: (at_work, place),
            })
        };
        // Only whoever is limited to some vaults makes the gate read anything.
        let admitted: Result<Admitted<O>, Failure> = match looks_up {
            true => tokio::task::spawn_blocking(pass)
                .await
                .map_err(|_| Failure::panicked(&log))?,
            false => pass(),
        };
        Ok((admitted?, body))
    }
}

/// Does the work and sends the answer. When the client goes away meanwhile, the work is told.
pub(crate) async fn at_once<O: Served>(
    admitted: Admitted<O>,
    work: impl FnOnce(&Ask, Select, O, &Gone) -> Reply<O> + Send + 'static,
) -> Result<Response, Failure> {
    let Admitted {
        ask,
        vault,
        request,
        under_way,
    } = admitted;
    let (log, bodies) = (ask.app.place.log(), Arc::clone(&ask.app.bodies));
    let here = Here::default();
    let gone = here.gone();
    let work = tokio::task::spawn_blocking(move || {
        let _under_way = under_way;
        work(&ask, vault, request, &gone).map(|answer| bodies::write(&answer, Vec::new()))
    });
    let answer = work.await.map_err(|_| Failure::panicked(&log))?;
    drop(here);
    answer?.send(&bodies).await
}
