//! The terminal of a job. Any number of clients may be attached, and the job continues without them.

use super::talk::{self, Screen, Shown};
use super::{Client, query};
use crate::bounds::WAIT;
use crate::http::guard;
use crate::ops::app::App;
use crate::ops::caller::{Ask, Caller, may_ask};
use crate::ops::failure::Failure;
use crate::ops::handler::{Listener, Served};
use crate::ops::jobs;
use crate::ops::lanes::LaneGuard;
use crate::table::{ATTACH, Operation};
use crate::wire::{
    JobEvent, JobKill, JobLogs, JobResize, JobStdin, StreamWord, TerminalAttach, TerminalMessage,
};
use avfs_runtime::{Select, WindowSize};
use axum::body::Bytes;
use axum::extract::Request;
use axum::extract::ws::WebSocket;
use axum::response::Response;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// Answers with a connection to the terminal of a job.
pub(super) async fn attach(app: Arc<App>, request: Request) -> Result<Response, Failure> {
    let (parts, _) = request.into_parts();
    let caller = guard::known(&JobLogs::ROW, &parts)?;
    for row in ATTACH.rows {
        may_ask(row, &caller)?;
    }
    let asked: TerminalAttach = query(&parts)?;
    let place = app.lanes.enter(WAIT, &caller).await?;
    let (held, by, log) = (Arc::clone(&app), caller.clone(), app.place.log());
    let admitting = spawn_blocking(move || Attached::admit(&held, &by, &asked));
    let (attached, following) = admitting.await.map_err(|_| Failure::panicked(&log))??;
    let talk = |client, socket| converse(client, socket, attached, following, place);
    Client::upgrade(app, caller, parts, talk).await
}

/// Follows the job, and talks meanwhile.
async fn converse(
    client: Client,
    socket: WebSocket,
    attached: Attached,
    following: jobs::Following,
    place: LaneGuard,
) {
    let (say, shown) = talk::queue();
    let (follower, log) = (Follower(say.clone()), client.app.place.log());
    let running = spawn_blocking(move || {
        let _place = place;
        if let Err(failure) = following.tell(&follower) {
            // An error means that the client has disconnected.
            let _ = follower.0.blocking_send(Shown::error(&failure));
        }
    });
    let panicked = say.clone();
    tokio::spawn(async move {
        if running.await.is_err() {
            let _ = panicked.send(Shown::error(&Failure::panicked(&log))).await;
        }
    });
    let screen = std::future::ready(Some(Arc::new(attached) as Arc<dyn Screen>));
    talk::talk(client, socket, say, shown, screen).await;
}

/// A client that follows a job.
struct Follower(mpsc::Sender<Shown>);

impl Listener<JobEvent> for Follower {
    fn tell(&self, event: JobEvent, _: &dyn Fn() -> bool) {
        let shown = match event {
            JobEvent::Output(_, chunk) => Shown::Bytes(Bytes::copy_from_slice(chunk.bytes())),
            JobEvent::End(job) => Shown::message(TerminalMessage::End { job }),
        };
        // An error means that the client has disconnected.
        let _ = self.0.blocking_send(shown);
    }

    fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}

/// The terminal of a job, for a client that the gate has admitted to every operation it can ask for.
struct Attached {
    ask: Ask,
    job_id: u64,
}

impl Attached {
    fn admit(
        app: &Arc<App>,
        caller: &Caller,
        asked: &TerminalAttach,
    ) -> Result<(Attached, jobs::Following), Failure> {
        let TerminalAttach { job_id, offset } = *asked;
        let logs = JobLogs {
            job_id,
            stdout_offset: offset,
            stderr_offset: 0,
            stream: Some(StreamWord::Stdout),
        };
        let ask = admitted(app, caller, &logs)?;
        let attached = Attached { ask, job_id };
        admitted(app, caller, &attached.stdin())?;
        let (rows, columns) = (1, 1);
        admitted(
            app,
            caller,
            &attached.resizing(WindowSize { rows, columns }),
        )?;
        admitted(app, caller, &attached.kill(None))?;
        jobs::has_terminal(&attached.ask, job_id)?;
        let following = jobs::follow(&attached.ask, logs, None)?;
        Ok((attached, following))
    }

    fn stdin(&self) -> JobStdin {
        let job_id = self.job_id;
        JobStdin { job_id, eof: false }
    }

    fn resizing(&self, size: WindowSize) -> JobResize {
        JobResize {
            job_id: self.job_id,
            rows: size.rows,
            columns: size.columns,
        }
    }

    fn kill(&self, signal: Option<i32>) -> JobKill {
        let job_id = self.job_id;
        JobKill { job_id, signal }
    }
}

fn admitted<O: Served>(app: &Arc<App>, caller: &Caller, request: &O) -> Result<Ask, Failure> {
    let (app, caller) = (Arc::clone(app), caller.clone());
    Ask::admit(app, caller, Select::Current, request).map(|(ask, _)| ask)
}

impl Screen for Attached {
    fn input(&self) -> Result<OwnedFd, Failure> {
        jobs::stdin(&self.ask, self.stdin()).map(|feed| feed.pipe)
    }

    fn resize(&self, size: WindowSize) -> Result<(), Failure> {
        jobs::resize(&self.ask, self.resizing(size)).map(drop)
    }

    fn signal(&self, signal: i32) -> Result<(), Failure> {
        jobs::kill(&self.ask, self.kill(Some(signal))).map(drop)
    }
}
