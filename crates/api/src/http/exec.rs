//! Exec over HTTP: one envelope at the end, or events while the command runs.

use super::app::{AtWork, Call, Wishes};
use super::bodies;
use super::envelope::{self, Asked};
use super::errors::Failure;
use super::exec_input;
use super::lanes::Place;
use super::routes::{Reply, Routes, parse_vault, receive};
use super::telling::{Telling, Told, pieces};
use super::{App, Ask};
use crate::bounds::lane_of;
use crate::wire::{
    Exec, ExecCancel, ExecCancelled, ExecResize, Operation, OutputChunk, StartedEvent,
    WaitingEvent, WindowItem,
};
use avfs_runtime::{ApprovalId, Cancel, OutputSink, Stream, WindowSize};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, error::TrySendError};

/// Events a slow reader may leave waiting before the command itself has to wait.
const QUEUE: usize = 4;
/// The most bytes of output in one event.
const PIECE: usize = 16 << 10;
/// How often a waiting command looks whether its reader caught up, went away, or ran out of time.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .add::<Exec>(post(exec))
        .plain::<ExecCancel>(cancel)
        .plain::<ExecResize>(resize)
}

fn resize(ask: &Ask, request: ExecResize) -> Reply<ExecResize> {
    let (rows, columns) = (request.rows, request.columns);
    ask.app.calls.resize(
        request.call,
        ask.session.principal(),
        WindowSize { rows, columns },
    )?;
    Ok(WindowItem { rows, columns })
}

fn cancel(ask: &Ask, request: ExecCancel) -> Reply<ExecCancel> {
    let how = if request.interrupt {
        Cancel::Interrupt
    } else {
        Cancel::Leave
    };
    Ok(ExecCancelled {
        cancelled: ask
            .app
            .calls
            .cancel(request.call, ask.session.principal(), how),
    })
}

async fn exec(
    State(app): State<Arc<App>>,
    Path(vault): Path<String>,
    request: Request,
) -> Result<Response, Failure> {
    let at_work = app.enter();
    let wants_events = accepts_events(request.headers());
    let (caller, exec) = receive::<Exec>(&at_work, request).await?;
    let asked = Asked::new(parse_vault(&vault)?, exec)?;
    let turn = app.lanes.enter(lane_of(Exec::NAME), &caller).await?;
    let ask = Ask::new(app, caller);
    let call = ask.app.calls.begin(ask.session.principal())?;
    if wants_events {
        with_events(ask, asked, call, (at_work, turn))
    } else {
        at_once(ask, asked, call, (at_work, turn)).await
    }
}

pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.contains("text/event-stream"))
}

/// Answers with the envelope alone. If the caller goes away this future is dropped, and with it
/// `call`, which ends the command.
async fn at_once(
    ask: Ask,
    asked: Asked,
    call: Call,
    under_way: (AtWork, Place),
) -> Result<Response, Failure> {
    let (log, bodies) = (ask.app.place.log(), Arc::clone(&ask.app.bodies));
    let stdin = exec_input::prepare(&asked, &call)?;
    let call_control = call.wishes().control();
    let sink = Silent {
        wishes: call.wishes(),
    };
    let running = tokio::task::spawn_blocking(move || {
        let _under_way = under_way;
        let mut report = ask
            .session
            .exec(asked.request(stdin, call_control), &sink)?;
        let held = std::mem::take(&mut report.held);
        let envelope = envelope::envelope(&asked, report);
        Ok::<_, Failure>(bodies::write(&envelope, held))
    });
    let envelope = running.await.map_err(|_| Failure::panicked(&log))?;
    drop(call);
    envelope?.send(&bodies).await
}

/// Answers with events. If the caller goes away the stream is dropped, the sink's queue closes,
/// and the command is ended.
fn with_events(
    ask: Ask,
    asked: Asked,
    call: Call,
    under_way: (AtWork, Place),
) -> Result<Response, Failure> {
    let stdin = exec_input::prepare(&asked, &call)?;
    let (events, queue) = mpsc::channel(QUEUE);
    tokio::task::spawn_blocking(move || {
        let _under_way = under_way;
        let sink = Live {
            events,
            wishes: call.wishes(),
            seq: AtomicU64::new(0),
        };
        let started = StartedEvent { call: call.id() };
        sink.send(event("started", &started), None);
        let last = match ask
            .session
            .exec(asked.request(stdin, call.wishes().control()), &sink)
        {
            Ok(mut report) => {
                let held = std::mem::take(&mut report.held);
                Told::holding(event("result", &envelope::envelope(&asked, report)), held)
            }
            Err(error) => Told::new(event("error", Failure::from(error).problem())),
        };
        // An error here means that nobody is left to be told.
        let _ = sink.events.blocking_send(last);
    });
    Ok(Sse::new(Telling::new(queue)).into_response())
}

pub(crate) fn event(name: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).expect("wire types are plain data");
    Event::default().event(name).data(data)
}

/// The sink of a caller who waits for the envelope.
pub(crate) struct Silent {
    pub wishes: Arc<Wishes>,
}

impl OutputSink for Silent {
    fn output(&self, _: Stream, _: &[u8], _: Option<Instant>) {}

    fn cancelled(&self) -> Option<Cancel> {
        self.wishes.cancelled()
    }
}

/// The sink of a caller who listens. A slow listener slows the command down, as a pipe would,
/// but not beyond the command's own time limit: what is written after that is in the envelope.
struct Live {
    events: mpsc::Sender<Told>,
    wishes: Arc<Wishes>,
    seq: AtomicU64,
}

impl Live {
    fn send(&self, event: Event, until: Option<Instant>) {
        let mut waiting = Told::new(event);
        while let Err(TrySendError::Full(event)) = self.events.try_send(waiting) {
            let late = until.is_some_and(|until| Instant::now() >= until);
            if late || self.cancelled().is_some() {
                return;
            }
            waiting = event;
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl OutputSink for Live {
    fn output(&self, stream: Stream, bytes: &[u8], until: Option<Instant>) {
        for piece in pieces(bytes, PIECE) {
            let seq = self.seq.fetch_add(1, Ordering::Relaxed) + 1;
            self.send(event(stream.name(), &OutputChunk::new(seq, piece)), until);
        }
    }

    fn waiting(&self, approval: ApprovalId) {
        let waiting = WaitingEvent {
            approval_id: approval.to_string(),
        };
        self.send(event("waiting", &waiting), None);
    }

    fn cancelled(&self) -> Option<Cancel> {
        let gone = self.events.is_closed().then_some(Cancel::Leave);
        self.wishes.cancelled().or(gone)
    }
}
