//! The typed client of the daemon: HTTP over its socket, with a synchronous interface.

mod jobs;
mod sse;
mod streams;
mod window;

use crate::daemon_paths::DaemonPaths;
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Interrupts};
use crate::table::Method;
use crate::wire::{
    CLASS_HEADER, CallId, Daemon, DaemonState, Envelope, Exec, ExecCancel, ExecEvent, ExecInput,
    ExecResize, NAME_HEADER, Operation, Problem, RETRIED_HEADER, RetriedWord, UNCOMMITTED_HEADER,
    VERSION, VERSION_HEADER, retried_in,
};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use sse::Parser;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use tokio::net::UnixStream;
use window::Resizes;

pub use jobs::{Attached, Attachment, Detach};
pub use window::Window;

/// The body of a request.
type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// The standard input of a command.
pub type Input = Box<dyn std::io::Read + Send>;

/// Live input and terminal size of a running exec.
#[derive(Default)]
pub struct ExecIo {
    /// Read as the command takes it.
    pub input: Option<Input>,
    /// Its terminal follows this size.
    pub window: Option<Window>,
    pub signals: Signals,
}

/// Whose signals SIGINT, SIGTERM and SIGHUP are while a command runs.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub enum Signals {
    /// The program's: nothing is done about them. A handler that was installed once stays for the life of a process, so a
    /// library must not install any.
    #[default]
    Programs,
    /// The command's: the first asks the daemon to end it and waits for the envelope, a second one leaves.
    Commands,
}

/// A connection to the daemon of one home.
pub struct Client {
    event_loop: EventLoop,
    connection: Connection,
}

/// An event loop that may go away anywhere: tokio's own panics when that happens in async code.
struct EventLoop(Option<tokio::runtime::Runtime>);

impl EventLoop {
    fn new() -> Result<EventLoop> {
        let made = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Ok(EventLoop(Some(made.map_err(Error::Setup)?)))
    }
}

impl std::ops::Deref for EventLoop {
    type Target = tokio::runtime::Runtime;

    fn deref(&self) -> &tokio::runtime::Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        if let Some(event_loop) = self.0.take() {
            event_loop.shutdown_background();
        }
    }
}

struct Connection {
    place: DaemonPaths,
    /// The process at the other end (`SO_PEERCRED`).
    pid: Option<i32>,
    sender: SendRequest<Body>,
    /// What daemons retried, for requests since the last call of [`Client::take_retried`].
    retried: Vec<RetriedWord>,
    /// What the last answer said about uncommitted writes.
    uncommitted: Option<String>,
}

impl Client {
    /// Connects to a running daemon; [`Error::NoDaemon`] if there is none.
    pub fn connect(place: &DaemonPaths) -> Result<Client> {
        let event_loop = EventLoop::new()?;
        let connection = event_loop.block_on(Connection::open(place))?;
        Ok(Client {
            event_loop,
            connection,
        })
    }

    /// Calls one operation. `vault` is a name or [`crate::wire::CURRENT`], and is ignored by operations without a vault.
    pub fn call<O: Operation>(&mut self, vault: &str, request: &O) -> Result<O::Response> {
        let answered = self
            .event_loop
            .block_on(self.connection.call(vault, request));
        match answered {
            // A read can be repeated.
            Err(Error::Broken { what }) if O::METHOD == Method::Get => Err(Error::Unheard { what }),
            answered => answered,
        }
    }

    /// What was retried since the last call.
    pub fn take_retried(&mut self) -> Vec<RetriedWord> {
        std::mem::take(&mut self.connection.retried)
    }

    /// The daemon's state. Works with a daemon of any version.
    pub fn daemon(&mut self) -> Result<DaemonState> {
        self.call("", &Daemon {})
    }

    /// Why the vault of the last request has uncommitted writes, if it has.
    pub fn uncommitted(&self) -> Option<&str> {
        self.connection.uncommitted.as_deref()
    }

    /// The daemon's process (`SO_PEERCRED`).
    pub fn daemon_pid(&self) -> Option<i32> {
        self.connection.pid
    }

    /// Runs a command and hands its output over as it arrives. If `on_event` breaks off, the answer is
    /// [`Error::Interrupted`], and the daemon ends the command.
    pub fn exec(
        &mut self,
        vault: &str,
        request: &Exec,
        on_event: &mut dyn FnMut(ExecEvent) -> ControlFlow<()>,
    ) -> Result<Envelope> {
        self.exec_with(vault, request, &mut ExecIo::default(), on_event)
    }

    /// Runs a command whose input is live, that is at a terminal, or that is sent this program's signals.
    pub fn exec_with(
        &mut self,
        vault: &str,
        request: &Exec,
        io: &mut ExecIo,
        on_event: &mut dyn FnMut(ExecEvent) -> ControlFlow<()>,
    ) -> Result<Envelope> {
        self.event_loop
            .block_on(self.connection.exec(vault, request, io, on_event))
    }
}

impl Connection {
    async fn open(place: &DaemonPaths) -> Result<Connection> {
        let socket = place.reachable_socket()?;
        let Ok(stream) = UnixStream::connect(&socket).await else {
            return Err(Error::NoDaemon { socket });
        };
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(driver);
        Ok(Connection {
            place: place.clone(),
            pid,
            sender,
            retried: Vec::new(),
            uncommitted: None,
        })
    }

    async fn call<O: Operation>(&mut self, vault: &str, request: &O) -> Result<O::Response> {
        let answer = self.send(vault, request, "application/json").await?;
        let bytes = answer
            .into_body()
            .collect()
            .await
            .map_err(broken)?
            .to_bytes();
        parse(&bytes)
    }

    /// Sends a request and returns a successful answer; any other becomes an error.
    async fn send<O: Operation>(
        &mut self,
        vault: &str,
        request: &O,
        accept: &str,
    ) -> Result<Response<Incoming>> {
        if self.sender.ready().await.is_err() {
            // The daemon closed an idle connection: nothing of this request was sent.
            *self = Connection::open(&self.place).await?;
        }
        let request = http_request(vault, request, accept, None)?;
        self.send_made(request).await
    }

    /// Sends a request.
    async fn send_made(&mut self, mut request: Request<Body>) -> Result<Response<Incoming>> {
        let class = HeaderValue::from_static(self.place.class().as_str());
        request.headers_mut().insert(CLASS_HEADER, class);
        if let Some(name) = self.place.caller_name() {
            let name = HeaderValue::from_str(name).map_err(|error| Error::Broken {
                what: error.to_string(),
            })?;
            request.headers_mut().insert(NAME_HEADER, name);
        }
        let answer = self.sender.send_request(request).await.map_err(unsent)?;
        let again = answer.headers().get(RETRIED_HEADER);
        let again = again.and_then(|words| words.to_str().ok());
        self.retried.extend(again.into_iter().flat_map(retried_in));
        if answer.status().is_success() {
            let note = answer.headers().get(UNCOMMITTED_HEADER);
            let note = note.and_then(|note| note.to_str().ok());
            self.uncommitted = note.map(str::to_owned);
            return Ok(answer);
        }
        let status = answer.status();
        let bytes = answer
            .into_body()
            .collect()
            .await
            .map_err(broken)?
            .to_bytes();
        if status == StatusCode::UPGRADE_REQUIRED {
            let daemon = self.call_daemon().await?;
            return Err(Error::OtherVersion {
                daemon: daemon.version,
                client: VERSION.into(),
            });
        }
        Err(Error::Refused(Box::new(parse::<Problem>(&bytes)?)))
    }

    async fn call_daemon(&mut self) -> Result<DaemonState> {
        Box::pin(self.call("", &Daemon {})).await
    }

    async fn exec(
        &mut self,
        vault: &str,
        request: &Exec,
        io: &mut ExecIo,
        on_event: &mut dyn FnMut(ExecEvent) -> ControlFlow<()>,
    ) -> Result<Envelope> {
        let mut interrupts = match io.signals {
            Signals::Commands => Interrupts::watch()?,
            Signals::Programs => Interrupts::never(),
        };
        let asked = request.tty.as_ref().map(|tty| (tty.rows, tty.columns));
        let mut resizes = Resizes::watch(io.window.take(), asked)?;
        let place = self.place.clone();
        let mut body = tokio::select! {
            answer = self.send(vault, request, "text/event-stream") => answer?.into_body(),
            _ = interrupts.next() => return Err(Error::Interrupted),
        };
        let mut parser = Parser::default();
        let mut call = None;
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                interrupt = interrupts.next() => {
                    // The first signal cancels, and the envelope still arrives. The second one leaves.
                    let Some(asked) = call.take() else { return Err(Error::Interrupted) };
                    resizes = Resizes::default();
                    let mut second = Connection::open(&place).await?;
                    let interrupt = interrupt == Interrupt::CtrlC;
                    second.call("", &ExecCancel { call: asked, interrupt }).await?;
                    continue;
                }
                (call, (rows, columns)) = resizes.next_for(call) => {
                    // The command may have ended meanwhile.
                    let mut second = Connection::open(&place).await?;
                    let _ = second.call("", &ExecResize { call, rows, columns }).await;
                    continue;
                }
            };
            let Some(frame) = frame else {
                return Err(Error::Broken {
                    what: "it ended before the command did".into(),
                });
            };
            let Ok(data) = frame.map_err(broken)?.into_data() else {
                continue;
            };
            for message in parser.push(&data) {
                match read_message(&message)? {
                    Message::Done(envelope) => return Ok(*envelope),
                    Message::Event(event) => {
                        if let ExecEvent::Started(started) = &event {
                            call = Some(started.call);
                            bring_input(&place, started.call, io.input.take());
                        }
                        if on_event(event).is_break() {
                            return Err(Error::Interrupted);
                        }
                    }
                    Message::Unknown => {}
                }
            }
        }
    }
}

/// Sends a command its input over a second connection, as long as it reads.
fn bring_input(place: &DaemonPaths, call: CallId, input: Option<Input>) {
    let Some(input) = input else { return };
    let place = place.clone();
    tokio::spawn(async move {
        // If this fails, the command sees the end of its input, or ends with this client.
        if let Ok(mut second) = Connection::open(&place).await {
            let _ = second.upload("", &ExecInput { call }, input).await;
        }
    });
}

enum Message {
    Event(ExecEvent),
    Done(Box<Envelope>),
    /// A newer daemon may send events that this client does not know.
    Unknown,
}

fn read_message(message: &sse::Message) -> Result<Message> {
    let data = message.data.as_bytes();
    Ok(match message.event.as_str() {
        "started" => Message::Event(ExecEvent::Started(parse(data)?)),
        "stdout" => Message::Event(ExecEvent::Stdout(parse(data)?)),
        "stderr" => Message::Event(ExecEvent::Stderr(parse(data)?)),
        "waiting" => Message::Event(ExecEvent::Waiting(parse(data)?)),
        "result" => Message::Done(Box::new(parse(data)?)),
        "error" => return Err(Error::Refused(Box::new(parse(data)?))),
        _ => Message::Unknown,
    })
}

fn http_request<O: Operation>(
    vault: &str,
    request: &O,
    accept: &str,
    stream: Option<Body>,
) -> Result<Request<Body>> {
    let mut address = O::ROUTE.replace("{vault}", &segment(vault));
    let mut method = match O::METHOD {
        Method::Get => hyper::Method::GET,
        Method::Put => hyper::Method::PUT,
        Method::Post => hyper::Method::POST,
        Method::Delete => hyper::Method::DELETE,
    };
    let mut body = Bytes::new();
    if O::METHOD.has_query() {
        let query = query(request)?;
        if O::METHOD == Method::Get && query.len() > QUERY_MAX {
            method = hyper::Method::POST;
            body = json_body(request)?;
        } else {
            address.push_str(&query);
        }
    } else {
        body = json_body(request)?;
    }
    Request::builder()
        .method(method)
        .uri(address)
        .header(HOST, "avfs")
        .header(VERSION_HEADER, VERSION)
        .header(ACCEPT, accept)
        .header(CONTENT_TYPE, "application/json")
        .body(stream.unwrap_or_else(|| whole(body)))
        .map_err(|error| Error::Nonsense {
            what: error.to_string(),
        })
}

/// A longer query of a read is sent as a JSON body by `POST`.
const QUERY_MAX: usize = 8 << 10;

/// Characters that need no escape in a path segment.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'@');

/// One escaped path segment.
fn segment(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// The fields of a flat request as `?name=value&…`, or an empty string.
fn query(request: &impl serde::Serialize) -> Result<String> {
    let fields = serde_html_form::to_string(request).map_err(|error| Error::Nonsense {
        what: error.to_string(),
    })?;
    match fields.is_empty() {
        true => Ok(fields),
        false => Ok(format!("?{fields}")),
    }
}

fn whole(bytes: Bytes) -> Body {
    let never = |error: std::convert::Infallible| match error {};
    Full::new(bytes).map_err(never).boxed_unsync()
}

fn json_body(request: &impl serde::Serialize) -> Result<Bytes> {
    serde_json::to_vec(request)
        .map(Bytes::from)
        .map_err(|error| Error::Nonsense {
            what: error.to_string(),
        })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Nonsense {
        what: error.to_string(),
    })
}

/// Why a request got no answer. If the daemon closed the connection before it had read all of the request, it did not
/// start it: EPIPE on writing, or ECONNRESET on reading with unread data, tells that.
fn unsent(error: hyper::Error) -> Error {
    use std::error::Error as _;
    let source = error.source().and_then(|it| it.downcast_ref());
    let kind = source.map(std::io::Error::kind);
    let unread = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    match error.is_canceled() || kind.is_some_and(|kind| unread.contains(&kind)) {
        true => Error::Unheard {
            what: error.to_string(),
        },
        false => broken(error),
    }
}

fn broken(error: hyper::Error) -> Error {
    Error::Broken {
        what: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
