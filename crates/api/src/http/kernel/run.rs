//! Commands: in a sandbox of their own, several, in a sandbox that stays.

use super::answer::{self, Ended};
use super::asker::{Asker, Asks};
use super::sandboxes::{self, Marks};
use crate::http::events::{self, event};
use crate::http::watch::{Gone, Here};
use crate::mcp::{fresh_name, no_image};
use crate::ops::failure::Failure;
use crate::ops::handler::Listener;
use crate::wire::{Envelope, Exec, ExecEvent, OutputChunk, ProfileWord, VaultCreate, VaultDelete};
use avfs_runtime::ErrorKind;
use axum::extract::Path;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Bytes of each stream in an answer.
const OUTPUT: usize = 512 << 10;
/// Bytes of each stream of a command in a batch: all answers are in memory at once.
const BATCH_OUTPUT: usize = 64 << 10;
/// Commands of one batch.
const BATCH_MAX: usize = 64;
/// Queued events before a command has to wait for a slow reader.
const QUEUE: usize = 4;
/// How often it looks whether the reader caught up.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(2);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Run {
    command: Vec<String>,
    image: Option<String>,
    profile: Option<ProfileWord>,
    /// Every run begins in a fresh sandbox at once, with or without it.
    #[serde(default = "yes")]
    fast: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Batch {
    commands: Vec<Run>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ExecIn {
    command: Vec<String>,
    /// Each as `NAME=VALUE`.
    #[serde(default)]
    env: Vec<String>,
    workdir: Option<String>,
    #[serde(default)]
    sudo: bool,
}

impl ExecIn {
    /// The command, with what the sandbox gives to all its commands.
    pub fn request(self, marks: &Marks) -> Result<Exec, Failure> {
        if self.sudo {
            let what = "sudo: nothing in a sandbox has more rights than the rest of it";
            return Err(Failure::new(ErrorKind::Denied, what));
        }
        let mut env = BTreeMap::new();
        for pair in self.env {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Failure::invalid(format!("{pair:?} is not NAME=VALUE")));
            };
            env.insert(name.to_owned(), value.to_owned());
        }
        Ok(Exec {
            argv: self.command,
            cwd: self.workdir,
            env,
            output_limit: Some(OUTPUT),
            limits: marks.limits(),
            profile: marks.profile,
            ..Exec::default()
        })
    }
}

/// A sandbox that goes away afterwards, with its command.
struct Alone {
    asks: Asks,
    name: String,
    exec: Exec,
}

impl Alone {
    fn new(asks: Asks, run: Run) -> Result<Alone, Failure> {
        no_image(run.image.as_deref())?;
        let exec = Exec {
            argv: run.command,
            profile: run.profile,
            output_limit: Some(OUTPUT),
            ..Exec::default()
        };
        let name = fresh_name("run");
        Ok(Alone { asks, name, exec })
    }

    async fn create(&self) -> Result<(), Failure> {
        let name = self.name.clone();
        self.asks.ask("", VaultCreate::named(name)).await.map(drop)
    }

    /// Whatever becomes of the command, nothing of it stays.
    async fn run(self, listener: Arc<dyn Listener<ExecEvent> + Send>) -> Result<Envelope, Failure> {
        let ran = self.asks.run(&self.name, self.exec, listener).await;
        let delete = VaultDelete { force: true };
        let removed = self.asks.ask(&self.name, delete).await;
        let ran = ran?;
        removed?;
        Ok(ran)
    }

    /// All of it, in a task that goes on when its caller is gone: then the command is ended, and the sandbox removed.
    async fn whole(self) -> Result<Envelope, Failure> {
        let here = Here::default();
        let (gone, log) = (here.gone(), self.asks.app.place.log());
        let task = tokio::spawn(async move {
            self.create().await?;
            self.run(Arc::new(gone)).await
        });
        let done = task.await.map_err(|_| Failure::panicked(&log))?;
        drop(here);
        done
    }
}

pub(in crate::http) async fn run(asker: Asker) -> Result<Response, Failure> {
    let (asks, run) = asker.read::<Run>().await?;
    answer::ran(Alone::new(asks, run)?.whole().await?)
}

/// Several at once, each in a sandbox of its own; the answers are in their order.
pub(in crate::http) async fn batch(asker: Asker) -> Result<Response, Failure> {
    let (asks, batch) = asker.read::<Batch>().await?;
    if batch.commands.len() > BATCH_MAX {
        let what = format!("a batch has at most {BATCH_MAX} commands");
        return Err(Failure::invalid(what));
    }
    let mut tasks = Vec::new();
    for run in batch.commands {
        let mut alone = Alone::new(asks.clone(), run)?;
        alone.exec.output_limit = Some(BATCH_OUTPUT);
        tasks.push(tokio::spawn(async move { Ended::of(alone.whole().await?) }));
    }
    let mut results = Vec::new();
    for task in tasks {
        let log = asks.app.place.log();
        let ended = task.await.map_err(|_| Failure::panicked(&log))?;
        results.push(match ended {
            Ok(ended) => {
                let error = (!ended.success).then(|| ended.error());
                json!({ "output": ended.output, "error": error, "exit_code": ended.exit_code })
            }
            Err(failure) => json!({ "output": null, "error": failure.problem().detail }),
        });
    }
    Ok(answer::done(json!({ "results": results })))
}

pub(in crate::http) async fn exec(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let (asks, command) = asker.read::<ExecIn>().await?;
    let marks = sandboxes::running(&asks, &name).await?;
    let exec = command.request(&marks)?;
    let here = Here::default();
    let gone: Arc<Gone> = Arc::new(here.gone());
    let ran = asks.run(&name, exec, gone).await;
    drop(here);
    answer::ran(ran?)
}

/// As [`run`], with events while it runs.
pub(in crate::http) async fn stream(asker: Asker) -> Result<Response, Failure> {
    let (asks, run) = asker.read::<Run>().await?;
    let started = json!({
        "command": run.command,
        "fast": run.fast,
        "timestamp": jiff::Timestamp::now().to_string(),
    });
    let alone = Alone::new(asks, run)?;
    alone.create().await?;
    let (events, queue) = mpsc::channel::<Event>(QUEUE);
    tokio::spawn(async move {
        let made = json!({ "stage": "sandbox_created", "sandbox": alone.name });
        let begun = json!({ "stage": "sandbox_started" });
        for (name, data) in [
            ("started", &started),
            ("progress", &made),
            ("progress", &begun),
        ] {
            // An error means that the client has disconnected; the command then ends at once.
            let _ = events.send(event(name, data)).await;
        }
        let ran = alone.run(Arc::new(Output(events.clone()))).await;
        let last = match ran.and_then(Ended::of) {
            Ok(ended) => {
                let data = json!({ "exit_code": ended.exit_code, "success": ended.success });
                event("done", &data)
            }
            Err(failure) => event("error", &json!({ "message": failure.problem().detail })),
        };
        let _ = events.send(last).await;
    });
    Ok(events::answered(ReceiverStream::new(queue).map(Ok)).into_response())
}

/// A reader of output as it is written. A slow one slows the command down, as a pipe would.
struct Output(mpsc::Sender<Event>);

impl Listener<ExecEvent> for Output {
    fn tell(&self, told: ExecEvent, is_patient: &dyn Fn() -> bool) {
        let data = |chunk: &OutputChunk, stream: &str| -> Value {
            let text = String::from_utf8_lossy(chunk.bytes());
            json!({ "data": text, "stream": stream })
        };
        let mut waiting = match &told {
            ExecEvent::Stdout(chunk) => event("output", &data(chunk, "stdout")),
            ExecEvent::Stderr(chunk) => event("output", &data(chunk, "stderr")),
            ExecEvent::Waiting(waiting) => event(
                "progress",
                &json!({ "stage": "waiting_for_approval", "approval": waiting.approval_id }),
            ),
            ExecEvent::Started(_) => return,
        };
        while let Err(TrySendError::Full(event)) = self.0.try_send(waiting) {
            if !is_patient() {
                return;
            }
            waiting = event;
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}
