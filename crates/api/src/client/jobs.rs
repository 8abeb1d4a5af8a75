//! Following jobs, and connecting to their terminals.

use super::window::{Resizes, Window};
use super::{Client, Connection, Input, broken, parse, sse, sse::Parser};
use crate::daemon_paths::DaemonPaths;
use crate::error::{Error, Result};
use crate::interrupt::Interrupts;
use crate::wire::{JobEvent, JobItem, JobLogs, JobResize, JobStdin, StreamWord};
use http_body_util::BodyExt;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::Notify;

/// Receives a message when the user wants to detach.
#[derive(Clone, Default)]
pub struct Detach(Arc<Notify>);

impl Detach {
    pub fn now(&self) {
        self.0.notify_one();
    }
}

/// The user's side of a job's terminal.
pub struct Attachment {
    pub logs: JobLogs,
    /// Keyboard input.
    pub input: Input,
    pub window: Window,
    pub detach: Detach,
}

/// Why a client left a job's terminal.
#[derive(Debug)]
pub enum Attached {
    /// The job has ended.
    Over(Box<JobItem>),
    Detached,
}

impl Client {
    /// Follows the output of a job until it has ended; `None` if `on_event` breaks off.
    pub fn job_follow(
        &mut self,
        request: &JobLogs,
        on_event: &mut dyn FnMut(StreamWord, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<JobItem>> {
        self.event_loop.block_on(async {
            let mut events = Events::open(&mut self.connection, request).await?;
            loop {
                match events.next().await? {
                    JobEvent::End(job) => return Ok(Some(*job)),
                    JobEvent::Output(stream, chunk) => {
                        if on_event(stream, chunk.bytes()).is_break() {
                            return Ok(None);
                        }
                    }
                }
            }
        })
    }

    /// Connects to a job's terminal, until the job has ended or the user detaches.
    pub fn job_attach(
        &mut self,
        attachment: Attachment,
        on_output: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Attached> {
        self.event_loop
            .block_on(self.connection.attach(attachment, on_output))
    }
}

impl Connection {
    async fn attach(
        &mut self,
        attachment: Attachment,
        on_output: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Attached> {
        let place = self.place.clone();
        let job_id = attachment.logs.job_id;
        let mut interrupts = Interrupts::watch()?;
        let first = (attachment.window)();
        let mut resizes = Resizes::watch(Some(attachment.window), first)?;
        let mut events = Events::open(self, &attachment.logs).await?;
        let mut second = Connection::open(&place).await?;
        if let Some((rows, columns)) = first {
            redraw(&mut second, job_id, rows, columns).await?;
        }
        bring(&place, job_id, attachment.input);
        loop {
            tokio::select! {
                event = events.next() => match event? {
                    JobEvent::End(job) => return Ok(Attached::Over(job)),
                    JobEvent::Output(_, chunk) => {
                        if on_output(chunk.bytes()).is_break() {
                            return Ok(Attached::Detached);
                        }
                    }
                },
                (rows, columns) = resizes.next() => {
                    // The job may have ended; the events tell.
                    let _ = second.call("", &JobResize { job_id, rows, columns }).await;
                }
                () = attachment.detach.0.notified() => return Ok(Attached::Detached),
                _ = interrupts.next() => return Err(Error::Interrupted),
            }
        }
    }
}

/// Makes full-screen programs redraw, by changing the size.
async fn redraw(second: &mut Connection, job_id: u64, rows: u16, columns: u16) -> Result<()> {
    let smaller = if rows > 1 { rows - 1 } else { rows + 1 };
    for rows in [smaller, rows] {
        let resize = JobResize {
            job_id,
            rows,
            columns,
        };
        second.call("", &resize).await?;
    }
    Ok(())
}

/// Sends keyboard input over a second connection.
fn bring(place: &DaemonPaths, job_id: u64, input: Input) {
    let place = place.clone();
    tokio::spawn(async move {
        // A job that has ended reads no more; the events tell.
        if let Ok(mut connection) = Connection::open(&place).await {
            let request = JobStdin { job_id, eof: false };
            let _ = connection.upload("", &request, input).await;
        }
    });
}

/// The events of a job, as they arrive.
struct Events {
    body: hyper::body::Incoming,
    parser: Parser,
    ready: std::collections::VecDeque<sse::Message>,
}

impl Events {
    async fn open(connection: &mut Connection, request: &JobLogs) -> Result<Events> {
        let answer = connection.send("", request, "text/event-stream").await?;
        Ok(Events {
            body: answer.into_body(),
            parser: Parser::default(),
            ready: std::collections::VecDeque::new(),
        })
    }

    /// The next event. Cancel-safe.
    async fn next(&mut self) -> Result<JobEvent> {
        loop {
            while let Some(message) = self.ready.pop_front() {
                let data = message.data.as_bytes();
                match message.event.as_str() {
                    "stdout" => return Ok(JobEvent::Output(StreamWord::Stdout, parse(data)?)),
                    "stderr" => return Ok(JobEvent::Output(StreamWord::Stderr, parse(data)?)),
                    "end" => return Ok(JobEvent::End(Box::new(parse(data)?))),
                    "error" => return Err(Error::Refused(Box::new(parse(data)?))),
                    // A newer daemon may send events that this client does not know.
                    _ => {}
                }
            }
            let Some(frame) = self.body.frame().await else {
                return Err(Error::Broken {
                    what: "it ended before the job did".into(),
                });
            };
            if let Ok(data) = frame.map_err(broken)?.into_data() {
                self.ready.extend(self.parser.push(&data));
            }
        }
    }
}
