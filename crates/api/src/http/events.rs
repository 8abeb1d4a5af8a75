//! Commands and logs as server-sent events.

use super::routes::{Admitted, Arrived, at_once};
use super::telling::{Telling, Told};
use crate::bounds::CONTENT;
use crate::ops::erased::{FollowFn, OnceFn, PageFn, RunFn, TellFn};
use crate::ops::events::Told as Change;
use crate::ops::failure::Failure;
use crate::ops::handler::{Listener, Resume};
use crate::wire::{EventsReady, ExecEvent, JobEvent, StreamWord};
use avfs_runtime::HeldOutput;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};

/// Queued events before a command has to wait for a slow reader. A job never waits.
pub(super) const QUEUE: usize = 4;
/// How long a stream is silent before it has a comment.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);
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
        let Admitted { it, under_way, .. } = admitted;
        let _under_way = under_way;
        let live = Live {
            events,
            number: AtomicU64::new(0),
            begun: Mutex::new(Some(begun)),
        };
        let served = serve(&it.ask, it.vault, it.request, &live);
        live.end(served.map(|it| (answer_event(it.json), it.held)));
    });
    first.await.map_err(|_| Failure::panicked(&log))??;
    Ok(answered(Telling::new(queue)))
}

/// Events as an answer. A silent stream has a comment now and then, so that both ends notice a broken connection.
pub(crate) fn answered<S>(events: S) -> Response
where
    S: Stream<Item = Result<Event, Infallible>> + Send + 'static,
{
    let heartbeats = KeepAlive::new().interval(HEARTBEAT);
    Sse::new(events).keep_alive(heartbeats).into_response()
}

/// A listener of a command. The answer begins with the first event.
struct Live {
    events: mpsc::Sender<Told>,
    /// The id of the last event: they are numbered from 1, so a reader knows whether it has all.
    number: AtomicU64,
    begun: Mutex<Option<oneshot::Sender<Result<(), Failure>>>>,
}

impl Live {
    fn take_begun(&self) -> Option<oneshot::Sender<Result<(), Failure>>> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.take()
    }

    /// The event with its number.
    fn numbered(&self, event: Event) -> Event {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        event.id(number.to_string())
    }

    /// Sends the last event. If no event was sent before, an error is the answer itself.
    fn end(&self, last: Result<(Event, Vec<HeldOutput>), Failure>) {
        let (last, held) = match (last, self.take_begun()) {
            (Err(failure), Some(begun)) => return drop(begun.send(Err(failure))),
            (Err(failure), None) => (event("error", failure.problem()), Vec::new()),
            (Ok(last), begun) => {
                begun.map(|begun| begun.send(Ok(())));
                last
            }
        };
        let last = Told::holding(self.numbered(last), held);
        // An error means that the client has disconnected.
        let _ = self.events.blocking_send(last);
    }
}

impl Listener<ExecEvent> for Live {
    fn tell(&self, event: ExecEvent, is_patient: &dyn Fn() -> bool) {
        self.take_begun().map(|begun| begun.send(Ok(())));
        let told = Told::new(self.numbered(match &event {
            ExecEvent::Started(started) => self::event("started", started),
            ExecEvent::Stdout(chunk) => self::event("stdout", chunk),
            ExecEvent::Stderr(chunk) => self::event("stderr", chunk),
            ExecEvent::Waiting(waiting) => self::event("waiting", waiting),
        }));
        queue_up(&self.events, told, is_patient);
    }

    fn is_gone(&self) -> bool {
        self.events.is_closed()
    }
}

/// Puts what a command wrote into the queue of its reader. While the queue is full, it waits as long as `is_patient` returns
/// true.
pub(super) fn queue_up<T>(queue: &mpsc::Sender<T>, item: T, is_patient: &dyn Fn() -> bool) {
    let mut waiting = item;
    while let Err(TrySendError::Full(item)) = queue.try_send(waiting) {
        if !is_patient() {
            return;
        }
        waiting = item;
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Answers with a part of a job's logs, or with all of them as events; the id of an event is the position after it.
pub(crate) async fn follow(
    arrived: Arrived,
    once: OnceFn,
    follow: FollowFn,
) -> Result<Response, Failure> {
    let resume = resumed(&arrived.parts.headers)?;
    let (lane, wants_events) = (arrived.lane(), arrived.wants_events());
    let request = arrived.query()?;
    if !wants_events {
        // Nothing is waited for, so it uses the lane of content.
        let (admitted, _) = arrived.admit(request, Some(CONTENT)).await?;
        return at_once(admitted, move |it, _| once(&it.ask, it.request, resume)).await;
    }
    let (Admitted { it, under_way, .. }, _) = arrived.admit(request, Some(lane)).await?;
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
    Ok(answered(ReceiverStream::new(queue).map(Ok)))
}

/// Answers with a page of changes, or with all of them as events; the id of an event is the id of its entry.
pub(crate) async fn tell(
    arrived: Arrived,
    page: PageFn,
    follow: TellFn,
) -> Result<Response, Failure> {
    let resume = match arrived.parts.headers.get("last-event-id") {
        Some(last) => Some(entry_id(last)?),
        None => None,
    };
    let (lane, wants_events) = (arrived.lane(), arrived.wants_events());
    let (log, request) = (arrived.app.place.log(), arrived.query()?);
    let (admitted, _) = arrived.admit(request, Some(lane)).await?;
    if !wants_events {
        return at_once(admitted, move |it, _| page(&it.ask, it.request, resume)).await;
    }
    let Admitted { it, under_way, .. } = admitted;
    let opened = spawn_blocking(move || follow(it.ask, it.request, resume)).await;
    let followed = opened.map_err(|_| Failure::panicked(&log))??;
    let (events, queue) = mpsc::channel::<Event>(QUEUE);
    spawn_blocking(move || {
        let _under_way = under_way;
        let listener = Changes(events);
        if let Err(failure) = followed.tell(&listener) {
            // An error means that the client has disconnected.
            let _ = listener.0.blocking_send(event("error", failure.problem()));
        }
    });
    Ok(answered(ReceiverStream::new(queue).map(Ok)))
}

/// A position in the journal.
fn entry_id(last: &HeaderValue) -> Result<u64, Failure> {
    let id = last.to_str().ok().and_then(|text| text.parse().ok());
    id.ok_or_else(unknown_event)
}

/// A client that follows all changes.
struct Changes(mpsc::Sender<Event>);

impl Listener<Change> for Changes {
    fn tell(&self, change: Change, _: &dyn Fn() -> bool) {
        let told = match change {
            Change::Ready(after) => event("ready", &EventsReady { after }).id(after.to_string()),
            Change::Entry(entry) => event("change", &entry).id(entry.id.to_string()),
        };
        // An error means that the client has disconnected.
        let _ = self.0.blocking_send(told);
    }

    fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}

/// The offsets after the last event that a client has seen.
fn resumed(headers: &HeaderMap) -> Result<Resume, Failure> {
    let Some(last) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let read = || {
        let (stdout, stderr) = last.to_str().ok()?.split_once('-')?;
        Some([stdout.parse().ok()?, stderr.parse().ok()?])
    };
    read().map(Some).ok_or_else(unknown_event)
}

/// Beginning anywhere else would silently skip or repeat events.
fn unknown_event() -> Failure {
    Failure::invalid("this Last-Event-ID is of no event here")
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
