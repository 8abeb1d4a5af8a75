//! Commands and logs as server-sent events.

use super::routes::{Admitted, Arrived, at_once};
use super::telling::{Telling, Told};
use crate::bounds::CONTENT;
use crate::ops::erased::{FollowFn, OnceFn, RunFn};
use crate::ops::failure::Failure;
use crate::ops::handler::{Listener, Resume};
use crate::wire::{ExecEvent, JobEvent, StreamWord};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Queued events before a command has to wait for a slow reader. A job never waits.
const QUEUE: usize = 4;
/// How often a waiting command checks whether its reader caught up, disconnected, or ran out of time.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

pub(crate) fn event(name: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).expect("wire types are plain data");
    Event::default().event(name).data(data)
}

/// An answer as the last event.
pub(crate) fn answer_event(json: Vec<u8>) -> Event {
    let json = String::from_utf8(json).expect("JSON is UTF-8");
    Event::default().event("result").data(json)
}

/// Answers with events, of which the envelope is the last. If the caller disconnects, the command is ended.
pub(crate) async fn run(admitted: Admitted, serve: RunFn) -> Result<Response, Failure> {
    let log = admitted.it.ask.app.place.log();
    let (begun, first) = oneshot::channel();
    let (events, queue) = mpsc::channel(QUEUE);
    spawn_blocking(move || {
        let Admitted { it, under_way } = admitted;
        let _under_way = under_way;
        let live = Live {
            events,
            begun: Mutex::new(Some(begun)),
        };
        let served = serve(&it.ask, it.vault, it.request, &live);
        live.end(served.map(|it| Told::holding(answer_event(it.json), it.held)));
    });
    first.await.map_err(|_| Failure::panicked(&log))??;
    Ok(Sse::new(Telling::new(queue)).into_response())
}

/// A listener of a command. The answer begins with the first event.
struct Live {
    events: mpsc::Sender<Told>,
    begun: Mutex<Option<oneshot::Sender<Result<(), Failure>>>>,
}

impl Live {
    fn take_begun(&self) -> Option<oneshot::Sender<Result<(), Failure>>> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.take()
    }

    /// Sends the last event. If no event was sent before, an error is the answer itself.
    fn end(&self, last: Result<Told, Failure>) {
        let last = match (last, self.take_begun()) {
            (Err(failure), Some(begun)) => return drop(begun.send(Err(failure))),
            (Err(failure), None) => Told::new(event("error", failure.problem())),
            (Ok(last), begun) => {
                begun.map(|begun| begun.send(Ok(())));
                last
            }
        };
        // An error means that the client has disconnected.
        let _ = self.events.blocking_send(last);
    }
}

impl Listener<ExecEvent> for Live {
    fn tell(&self, event: ExecEvent, is_patient: &dyn Fn() -> bool) {
        self.take_begun().map(|begun| begun.send(Ok(())));
        let mut waiting = Told::new(match &event {
            ExecEvent::Started(started) => self::event("started", started),
            ExecEvent::Stdout(chunk) => self::event("stdout", chunk),
            ExecEvent::Stderr(chunk) => self::event("stderr", chunk),
            ExecEvent::Waiting(waiting) => self::event("waiting", waiting),
        });
        while let Err(TrySendError::Full(event)) = self.events.try_send(waiting) {
            if !is_patient() {
                return;
            }
            waiting = event;
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn is_gone(&self) -> bool {
        self.events.is_closed()
    }
}

/// Answers with a part of a job's logs, or with all of them as events; the id of an event is the position after it.
pub(crate) async fn follow(
    arrived: Arrived,
    once: OnceFn,
    follow: FollowFn,
) -> Result<Response, Failure> {
    let resume = resumed(&arrived.parts.headers);
    let (lane, wants_events) = (arrived.lane(), arrived.wants_events());
    let request = arrived.query()?;
    if !wants_events {
        // Nothing is waited for, so it uses the lane of content.
        let (admitted, _) = arrived.admit(request, Some(CONTENT)).await?;
        return at_once(admitted, move |it, _| once(&it.ask, it.request, resume)).await;
    }
    let (Admitted { it, under_way }, _) = arrived.admit(request, Some(lane)).await?;
    let following = follow(&it.ask, it.request, resume)?;
    let (events, queue) = mpsc::channel::<Event>(QUEUE);
    spawn_blocking(move || {
        let _under_way = under_way;
        let follower = Follower {
            events,
            at: Mutex::new(following.at),
        };
        if let Err(failure) = following.tell(&follower) {
            // An error means that the client has disconnected.
            let _ = follower
                .events
                .blocking_send(event("error", failure.problem()));
        }
    });
    let events = ReceiverStream::new(queue).map(Ok::<_, Infallible>);
    let events = Sse::new(events).keep_alive(KeepAlive::default());
    Ok(events.into_response())
}

/// The offsets after the last event that a client has seen.
fn resumed(headers: &HeaderMap) -> Resume {
    let last = headers.get("last-event-id")?.to_str().ok()?;
    let (stdout, stderr) = last.split_once('-')?;
    Some([stdout.parse().ok()?, stderr.parse().ok()?])
}

/// A client that follows a job.
struct Follower {
    events: mpsc::Sender<Event>,
    /// How much of each stream was sent.
    at: Mutex<[u64; 2]>,
}

impl Listener<JobEvent> for Follower {
    fn tell(&self, event: JobEvent, _: &dyn Fn() -> bool) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let told = match &event {
            JobEvent::Output(stream, chunk) => {
                let (index, name) = match stream {
                    StreamWord::Stdout => (0, "stdout"),
                    StreamWord::Stderr => (1, "stderr"),
                };
                at[index] = chunk.offset + chunk.bytes().len() as u64;
                self::event(name, chunk)
            }
            JobEvent::End(job) => self::event("end", job),
        };
        // An error means that the client has disconnected.
        let _ = self
            .events
            .blocking_send(told.id(format!("{}-{}", at[0], at[1])));
    }

    fn is_gone(&self) -> bool {
        self.events.is_closed()
    }
}
