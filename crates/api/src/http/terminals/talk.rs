//! A conversation: what a terminal shows is sent, and what its client types and asks for is passed on. Both directions go
//! on by themselves, so that neither end can keep the other waiting for ever.

use super::Client;
use crate::bounds::{CONTROL, DRAIN_TIME, TERMINAL_MESSAGE_MAX, TERMINAL_UNREAD_MAX};
use crate::http::events::{HEARTBEAT, QUEUE};
use crate::ops::erased::read_object;
use crate::ops::failure::Failure;
use crate::ops::input::{give, writer};
use crate::wire::{TerminalControl, TerminalMessage};
use avfs_runtime::{ErrorKind, HeldOutput, WindowSize};
use axum::body::Bytes;
use axum::extract::ws::{CloseCode, CloseFrame, Message, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// A terminal, as its client controls it. Each call may block.
pub(super) trait Screen: Send + Sync + 'static {
    /// Where to write what is typed.
    fn input(&self) -> Result<OwnedFd, Failure>;
    fn resize(&self, size: WindowSize) -> Result<(), Failure>;
    fn signal(&self, signal: i32) -> Result<(), Failure>;
}

/// What a client is sent.
pub(super) enum Shown {
    /// Bytes of the terminal.
    Bytes(Bytes),
    /// A message, and the memory reserved for it.
    Message(TerminalMessage, Vec<HeldOutput>),
}

impl Shown {
    pub fn message(message: TerminalMessage) -> Shown {
        Shown::Message(message, Vec::new())
    }

    pub fn error(failure: &Failure) -> Shown {
        let problem = failure.problem().clone();
        Shown::message(TerminalMessage::Error { problem })
    }
}

/// What is to be sent: the queue of a client.
pub(super) fn queue() -> (mpsc::Sender<Shown>, mpsc::Receiver<Shown>) {
    mpsc::channel(QUEUE)
}

/// How one direction of a conversation ended.
enum End {
    /// The last message was sent.
    Told,
    /// The client is gone.
    Gone,
    /// The client sent what is no message.
    Nonsense(Failure),
}

/// Talks until the last message was sent, or the client is gone. The terminal is known when the command was taken.
pub(super) async fn talk(
    client: Client,
    socket: WebSocket,
    say: mpsc::Sender<Shown>,
    shown: mpsc::Receiver<Shown>,
    screen: impl Future<Output = Option<Arc<dyn Screen>>>,
) {
    let (mut sink, mut stream) = socket.split();
    let hearing = async {
        match screen.await {
            Some(screen) => hear(&client, &mut stream, &say, screen).await,
            // The reason is on its way.
            None => std::future::pending().await,
        }
    };
    let end = tokio::select! {
        end = show(&mut sink, shown) => end,
        end = hearing => end,
    };
    match end {
        // What is still on its way is read, or the kernel would break the connection before the client has read the end.
        End::Told => drop(timeout(DRAIN_TIME, drain(&mut stream)).await),
        End::Gone => {}
        End::Nonsense(failure) => drop(timeout(DRAIN_TIME, refuse(&mut sink, &failure)).await),
    }
    let _ = timeout(HEARTBEAT, sink.close()).await;
}

/// Tells a client why it is not listened to.
pub(super) async fn refuse(sink: &mut SplitSink<WebSocket, Message>, failure: &Failure) {
    let (message, ..) = as_message(Shown::error(failure));
    if sink.send(message).await.is_ok() {
        close(sink, close_code::POLICY).await;
    }
}

/// Reads until the client closes the connection.
async fn drain(stream: &mut SplitStream<WebSocket>) {
    while let Some(Ok(_)) = stream.next().await {}
}

async fn close(sink: &mut SplitSink<WebSocket, Message>, code: CloseCode) {
    let frame = CloseFrame {
        code,
        reason: "".into(),
    };
    // An error means that the client has disconnected.
    let _ = sink.send(Message::Close(Some(frame))).await;
}

/// Sends what is shown. A silent terminal has a ping now and then, so that both ends notice a broken connection.
async fn show(sink: &mut SplitSink<WebSocket, Message>, mut shown: mpsc::Receiver<Shown>) -> End {
    loop {
        let next = timeout(HEARTBEAT, shown.recv()).await;
        let (message, held, is_last) = match next {
            Err(_) => (Message::Ping(Bytes::new()), Vec::new(), false),
            Ok(Some(shown)) => as_message(shown),
            Ok(None) => return End::Gone,
        };
        let sent = sink.send(message).await;
        drop(held);
        if sent.is_err() {
            return End::Gone;
        }
        if is_last {
            close(sink, close_code::NORMAL).await;
            return End::Told;
        }
    }
}

/// The message, the memory reserved for it, and whether it is the last one.
fn as_message(shown: Shown) -> (Message, Vec<HeldOutput>, bool) {
    match shown {
        Shown::Bytes(bytes) => (Message::Binary(bytes), Vec::new(), false),
        Shown::Message(message, held) => {
            let text = serde_json::to_string(&message).expect("wire types are plain data");
            (Message::Text(text.into()), held, message.is_last())
        }
    }
}

/// Passes on what a client types, and does what it asks for.
async fn hear(
    client: &Client,
    stream: &mut SplitStream<WebSocket>,
    say: &mpsc::Sender<Shown>,
    screen: Arc<dyn Screen>,
) -> End {
    let (typed, unread) = mpsc::channel(TERMINAL_UNREAD_MAX);
    let controlling = async {
        while let Some(message) = stream.next().await {
            let heard = match message {
                Ok(Message::Binary(bytes)) => {
                    // An error means that the command reads no more.
                    let _ = typed.send(bytes).await;
                    Ok(())
                }
                Ok(Message::Text(text)) => control(client, &screen, text.as_bytes()).await,
                Ok(Message::Ping(_) | Message::Pong(_)) => Ok(()),
                Ok(Message::Close(_)) => return End::Gone,
                Err(error) => return End::Nonsense(no_message(&error)),
            };
            if let Err(failure) = heard {
                tell_refused(say, &failure).await;
            }
        }
        End::Gone
    };
    let feeding = async {
        feed(client, &screen, say, unread).await;
        // The rest of the conversation goes on.
        std::future::pending().await
    };
    tokio::select! {
        end = controlling => end,
        end = feeding => end,
    }
}

async fn tell_refused(say: &mpsc::Sender<Shown>, failure: &Failure) {
    let problem = failure.problem().clone();
    // An error means that the client has disconnected.
    let _ = say
        .send(Shown::message(TerminalMessage::Refused { problem }))
        .await;
}

/// What cannot be read, or is too large.
pub(super) fn no_message(error: &axum::Error) -> Failure {
    let most = TERMINAL_MESSAGE_MAX;
    Failure::invalid(format!("this is no message: {error}"))
        .hint(format!("a message to a terminal has at most {most} bytes"))
}

/// Writes what is typed to the command, as fast as it reads.
async fn feed(
    client: &Client,
    screen: &Arc<dyn Screen>,
    say: &mpsc::Sender<Shown>,
    mut typed: mpsc::Receiver<Bytes>,
) {
    let mut pipe: Option<pipe::Sender> = None;
    while let Some(bytes) = typed.recv().await {
        if pipe.is_none() {
            let opened = perform(client, screen, |screen| screen.input()).await;
            let opened = opened.and_then(|input| writer(input).map_err(no_input));
            match opened {
                Ok(opened) => pipe = Some(opened),
                Err(failure) => tell_refused(say, &failure).await,
            }
        }
        if let Some(open) = &pipe
            && give(open, &bytes).await.is_err()
        {
            // A command that has ended reads no more.
            return;
        }
    }
}

fn no_input(error: std::io::Error) -> Failure {
    let what = format!("the command reads no more: {error}");
    Failure::new(ErrorKind::Conflict, what)
}

/// Does what a text message asks for.
async fn control(client: &Client, screen: &Arc<dyn Screen>, text: &[u8]) -> Result<(), Failure> {
    let asked = read_object(text).map_err(|failure: Failure| {
        failure
            .hint("`resize` with `rows` and `columns`, or `signal` with `signal`; input is binary")
    })?;
    perform(client, screen, move |screen| match asked {
        TerminalControl::Resize { rows, columns } => screen.resize(WindowSize { rows, columns }),
        TerminalControl::Signal { signal } => screen.signal(signal),
    })
    .await
}

/// Does something to a terminal, within the rate of the client's credential and the limits of its lane.
async fn perform<T: Send + 'static>(
    client: &Client,
    screen: &Arc<dyn Screen>,
    act: impl FnOnce(&dyn Screen) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    client.open.take_turn(&client.app)?;
    let place = client.app.lanes.enter(CONTROL, &client.caller).await?;
    let screen = Arc::clone(screen);
    let acting = spawn_blocking(move || {
        let _place = place;
        act(&*screen)
    });
    let log = client.app.place.log();
    acting.await.map_err(|_| Failure::panicked(&log))?
}
