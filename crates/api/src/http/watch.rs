//! Long operations over HTTP: one answer at the end, or events with the progress. A client that disconnects cancels it.

use super::events::{answer_event, event};
use super::retried::Noted;
use super::routes::Admitted;
use crate::ops::erased::AnswerFn;
use crate::ops::handler::Listener;
use crate::ops::retried::words;
use crate::wire::{ProgressEvent, RetriedEvent};
use avfs_runtime::{Progress, Watcher};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// A slower reader misses some progress events, not the last one.
const QUEUE: usize = 16;

/// Does the work and reports progress.
pub(crate) fn with_events(admitted: Admitted, serve: AnswerFn) -> Response {
    let (events, queue) = mpsc::channel::<Event>(QUEUE);
    spawn_blocking(move || {
        let Admitted { it, under_way, .. } = admitted;
        let _under_way = under_way;
        let steps = Steps(events.clone());
        let work = || serve(&it.ask, it.vault, it.request, &steps);
        let Noted { done, retried } = Noted::of(work);
        let last = match done {
            Ok(answer) => answer_event(answer.json),
            Err(failure) => event("error", failure.problem()),
        };
        let retried = words(retried);
        let again = (!retried.is_empty()).then(|| event("retried", &RetriedEvent { retried }));
        for told in again.into_iter().chain([last]) {
            // An error means that the client has disconnected.
            let _ = events.blocking_send(told);
        }
    });
    Sse::new(ReceiverStream::new(queue).map(Ok::<_, Infallible>)).into_response()
}

/// Lives as long as the client waits.
#[derive(Default)]
pub(crate) struct Here(Arc<AtomicBool>);

impl Here {
    pub fn gone(&self) -> Gone {
        Gone(Arc::clone(&self.0))
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Without progress; knows whether the client still waits.
pub(crate) struct Gone(Arc<AtomicBool>);

impl Watcher for Gone {
    fn progress(&self, _: Progress) {}

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl<E> Listener<E> for Gone {
    fn tell(&self, _: E, _: &dyn Fn() -> bool) {}

    fn is_gone(&self) -> bool {
        self.cancelled()
    }

    fn is_listening(&self) -> bool {
        false
    }
}

/// With progress.
struct Steps(mpsc::Sender<Event>);

impl Watcher for Steps {
    fn progress(&self, progress: Progress) {
        let told = ProgressEvent {
            files: progress.files,
            bytes: progress.bytes,
            total_files: progress.total_files,
            total_bytes: progress.total_bytes,
        };
        // The queue is full: the reader has not read the last progress yet.
        let _ = self.0.try_send(event("progress", &told));
    }

    fn cancelled(&self) -> bool {
        self.0.is_closed()
    }
}
