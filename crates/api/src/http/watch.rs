//! Long work over HTTP: one answer at the end, or events that tell how far it is. Whoever goes away
//! ends it.

use super::App;
use super::bodies::{self, Bodies};
use super::caller::Ask;
use super::errors::Failure;
use super::exec::{accepts_events, event};
use super::retried::{Noted, words};
use super::routes::{Reply, Routes, by_method, parse_vault, receive};
use crate::bounds::lane_of;
use crate::wire::{Operation, ProgressEvent, RetriedEvent};
use avfs_runtime::{Progress, Select, Watcher};
use axum::extract::{Path, Request, State};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// A reader who is slower than this misses some steps, not the end.
const QUEUE: usize = 16;

/// Does an operation on a vault for somebody who may watch.
pub(crate) type Serve<O> = fn(&Ask, Select, O, &dyn Watcher) -> Reply<O>;

impl Routes {
    /// An operation that may take long.
    pub fn watched<O: Operation>(self, serve: Serve<O>) -> Routes {
        let handler = move |State(app): State<Arc<App>>,
                            Path(vault): Path<String>,
                            request: Request| async move {
            let (at_work, log) = (app.enter(), app.place.log());
            let wants_events = accepts_events(request.headers());
            let select = parse_vault(&vault)?;
            let (caller, request) = receive::<O>(&at_work, request).await?;
            let turn = app.lanes.enter(lane_of(O::NAME), &caller).await?;
            let bodies = Arc::clone(&app.bodies);
            let ask = Ask::new(app, caller);
            let work = move |watcher: &dyn Watcher| {
                let _under_way = (at_work, turn);
                serve(&ask, select, request, watcher)
            };
            if wants_events {
                Ok(with_events::<O>(work))
            } else {
                at_once::<O>(work, &log, &bodies).await
            }
        };
        self.add::<O>(by_method::<O, _, _>(handler))
    }
}

async fn at_once<O: Operation>(
    work: impl FnOnce(&dyn Watcher) -> Reply<O> + Send + 'static,
    log: &std::path::Path,
    bodies: &Bodies,
) -> Result<Response, Failure> {
    let here = Here::default();
    let caller = Caller {
        gone: here.0.clone(),
    };
    let work = move || work(&caller).map(|answer| bodies::write(&answer, Vec::new()));
    let answer = tokio::task::spawn_blocking(move || Noted::of(work)).await;
    let answer = answer.map_err(|_| Failure::panicked(log))?;
    drop(here);
    Ok(answer.send(bodies).await)
}

fn with_events<O: Operation>(
    work: impl FnOnce(&dyn Watcher) -> Reply<O> + Send + 'static,
) -> Response {
    let (events, queue) = mpsc::channel::<Event>(QUEUE);
    tokio::task::spawn_blocking(move || {
        let Noted { done, retried } = Noted::of(|| work(&Listener(events.clone())));
        let last = match done {
            Ok(answer) => event("result", &answer),
            Err(failure) => event("error", failure.problem()),
        };
        let retried = words(retried);
        let again = (!retried.is_empty()).then(|| event("retried", &RetriedEvent { retried }));
        for told in again.into_iter().chain([last]) {
            // An error here means that nobody is left to be told.
            let _ = events.blocking_send(told);
        }
    });
    Sse::new(ReceiverStream::new(queue).map(Ok::<_, Infallible>)).into_response()
}

/// Lives as long as the request is waited for.
#[derive(Default)]
pub(crate) struct Here(pub Arc<AtomicBool>);

impl Drop for Here {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Waits for the answer alone.
pub(crate) struct Caller {
    pub gone: Arc<AtomicBool>,
}

impl Watcher for Caller {
    fn progress(&self, _: Progress) {}

    fn cancelled(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

/// Wants to know how far it is.
struct Listener(mpsc::Sender<Event>);

impl Watcher for Listener {
    fn progress(&self, progress: Progress) {
        let told = ProgressEvent {
            files: progress.files,
            bytes: progress.bytes,
            total_files: progress.total_files,
            total_bytes: progress.total_bytes,
        };
        // A full queue means that the last step has not even been read.
        let _ = self.0.try_send(event("progress", &told));
    }

    fn cancelled(&self) -> bool {
        self.0.is_closed()
    }
}
