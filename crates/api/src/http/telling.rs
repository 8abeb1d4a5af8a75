//! Events for a client that may read slowly.

use avfs_runtime::HeldOutput;
use axum::response::sse::Event;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio_stream::Stream;

/// An event, and the memory reserved for it.
pub(crate) struct Told {
    event: Event,
    held: Vec<HeldOutput>,
}

impl Told {
    pub fn new(event: Event) -> Told {
        Told::holding(event, Vec::new())
    }

    pub fn holding(event: Event, held: Vec<HeldOutput>) -> Told {
        Told { event, held }
    }
}

/// The events of a queue. The memory of an event is released when the next one is polled: the connection polls when it has
/// sent the one before.
pub(crate) struct Telling {
    queue: mpsc::Receiver<Told>,
    held: Vec<HeldOutput>,
}

impl Telling {
    pub fn new(queue: mpsc::Receiver<Told>) -> Telling {
        Telling {
            queue,
            held: Vec::new(),
        }
    }
}

impl Stream for Telling {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.held.clear();
        let told = ready!(self.queue.poll_recv(context));
        Poll::Ready(told.map(|told| {
            self.held = told.held;
            Ok(told.event)
        }))
    }
}
