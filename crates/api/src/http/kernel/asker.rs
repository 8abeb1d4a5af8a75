//! From a request of the dialect to the rows of the table.

use crate::bounds::BODY_MAX;
use crate::http::bodies::arrive;
use crate::http::guard;
use crate::http::watch::Here;
use crate::ops::app::{App, AtWork};
use crate::ops::caller::{Caller, may_ask};
use crate::ops::erased::{self, Answer, Erased, Serve, is_object};
use crate::ops::failure::Failure;
use crate::ops::handler::Listener;
use crate::ops::parse_vault;
use crate::table::Operation;
use crate::wire::{Envelope, Exec, ExecEvent};
use avfs_runtime::{ErrorKind, Progress, Select, Watcher, noting};
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use std::sync::{Arc, LazyLock};
use std::time::Instant;
use tokio::task::spawn_blocking;

/// Every row, served.
static ROWS: LazyLock<Vec<Arc<Erased>>> =
    LazyLock::new(|| erased::all().into_iter().map(Arc::new).collect());

/// A caller of the dialect with its request.
pub(in crate::http) struct Asker {
    asks: Asks,
    parts: Parts,
    body: Body,
    at_work: AtWork,
}

/// What asks for rows in a caller's name.
#[derive(Clone)]
pub(super) struct Asks {
    pub app: Arc<App>,
    caller: Caller,
}

impl FromRequest<Arc<App>> for Asker {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Asker, Failure> {
        let (parts, body) = request.into_parts();
        let caller = guard::agent(&parts)?;
        Ok(Asker {
            asks: Asks {
                app: Arc::clone(app),
                caller,
            },
            at_work: app.enter(),
            parts,
            body,
        })
    }
}

impl Asker {
    /// The request in its body; an empty body has no fields.
    pub async fn read<T: DeserializeOwned>(self) -> Result<(Asks, T), Failure> {
        let Asker {
            asks,
            parts,
            body,
            at_work,
        } = self;
        let text = arrive("this", BODY_MAX, &at_work, &parts.headers, body).await?;
        is_object(&text)?;
        let text = if text.is_empty() { b"{}" } else { &text[..] };
        let request = serde_json::from_slice(text);
        let request =
            request.map_err(|error| Failure::invalid(format!("the body is invalid: {error}")))?;
        Ok((asks, request))
    }

    /// Without a body.
    pub fn asks(self) -> Asks {
        self.asks
    }
}

impl Asks {
    /// Asks for one operation.
    pub async fn ask<O: Operation>(&self, vault: &str, request: O) -> Result<O::Response, Failure> {
        let here = Here::default();
        let gone = here.gone();
        let answer = self.counted(vault, request, Arc::new(gone)).await;
        drop(here);
        answer
    }

    /// Runs a command; it ends when the listener is gone.
    pub async fn run(
        &self,
        vault: &str,
        request: Exec,
        listener: Arc<dyn Listener<ExecEvent> + Send>,
    ) -> Result<Envelope, Failure> {
        self.counted(vault, request, listener).await
    }

    async fn counted<O: Operation>(
        &self,
        vault: &str,
        request: O,
        listener: Arc<dyn Listener<ExecEvent> + Send>,
    ) -> Result<O::Response, Failure> {
        let begun = Instant::now();
        let done = self.perform(vault, request, listener).await;
        let status = done.as_ref().map_or_else(|it| it.problem().status, |_| 200);
        let by = Some(self.caller.principal);
        self.app.served(O::NAME, status, begun.elapsed(), by);
        let answer = done?;
        serde_json::from_slice(&answer.json)
            .map_err(|error| Failure::new(ErrorKind::Bug, format!("an answer of our own: {error}")))
    }

    /// Performs a row, with the gate, turns and bounds of every request.
    async fn perform<O: Operation>(
        &self,
        vault: &str,
        request: O,
        listener: Arc<dyn Listener<ExecEvent> + Send>,
    ) -> Result<Answer, Failure> {
        let row = ROWS.iter().find(|row| row.row.name == O::NAME);
        let row = Arc::clone(row.expect("every operation has a row"));
        may_ask(&row.row, &self.caller)?;
        if row.row.effect.changes_home() {
            self.app.runtime.check_writable()?;
        }
        let select = match row.row.route.contains("{vault}") {
            true => parse_vault(vault)?,
            false => Select::Current,
        };
        let at_work = self.app.enter();
        let place = self.app.lanes.enter(row.row.lane, &self.caller).await?;
        let (app, caller) = (Arc::clone(&self.app), self.caller.clone());
        let log = app.place.log();
        let work = spawn_blocking(move || {
            let _under_way = (at_work, place);
            let figures = Arc::clone(&app);
            let work = || {
                let request = erased::Request::new(request);
                let (ask, select) = row.admit(app, caller, select, &request)?;
                match &row.serve {
                    Serve::Answer(serve) => serve(&ask, select, request, &Attended(&*listener)),
                    Serve::Runs(serve) => serve(&ask, select, request, &*listener),
                    _ => Err(Failure::new(ErrorKind::Bug, "a stream is no answer")),
                }
            };
            let (done, _) = noting(work);
            done.map_err(|failure| failure.with_figures(&figures.runtime))
        });
        work.await.map_err(|_| Failure::panicked(&log))?
    }
}

/// Work that is cancelled when its listener is gone.
struct Attended<'a>(&'a dyn Listener<ExecEvent>);

impl Watcher for Attended<'_> {
    fn progress(&self, _: Progress) {}

    fn cancelled(&self) -> bool {
        self.0.is_gone()
    }
}
