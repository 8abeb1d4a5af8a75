//! A command at a terminal. It is ended when its client disconnects.

use super::talk::{self, Screen, Shown};
use super::{Client, query};
use crate::bounds::{BODY_TIME, RUN};
use crate::http::events::queue_up;
use crate::http::guard;
use crate::ops::app::App;
use crate::ops::caller::{Ask, may_ask};
use crate::ops::erased::read_object;
use crate::ops::failure::Failure;
use crate::ops::handler::Listener;
use crate::ops::{exec, parse_vault};
use crate::table::Operation;
use crate::wire::{
    CallId, Exec, ExecEvent, ExecInput, ExecResize, StdinItem, TerminalMessage, TerminalOpen,
    TtyAsk,
};
use avfs_runtime::{ErrorKind, Select, WindowSize};
use axum::body::Bytes;
use axum::extract::Request;
use axum::extract::ws::{Message, WebSocket};
use axum::response::Response;
use futures_util::StreamExt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The size of a terminal whose client names none.
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

/// Answers with a connection at which a command can be run. The gate is passed before, as the vault is in the address.
pub(super) async fn open(
    app: Arc<App>,
    vault: String,
    request: Request,
) -> Result<Response, Failure> {
    let (parts, _) = request.into_parts();
    let caller = guard::known(&Exec::ROW, &parts)?;
    may_ask(&Exec::ROW, &caller)?;
    let TerminalOpen {} = query(&parts)?;
    let vault = parse_vault(&vault)?;
    let log = app.place.log();
    let (held, by) = (Arc::clone(&app), caller.clone());
    let admitting = spawn_blocking(move || {
        let (ask, vault) = Ask::admit(held, by, vault, &Exec::default())?;
        ask.session.vault_info(vault.clone())?;
        Ok::<_, Failure>((ask, vault))
    });
    let (ask, vault) = admitting.await.map_err(|_| Failure::panicked(&log))??;
    let talk = |client, socket| converse(client, socket, ask, vault);
    Client::upgrade(app, caller, parts, talk).await
}

/// Waits for the command, runs it, and talks meanwhile.
async fn converse(client: Client, mut socket: WebSocket, ask: Ask, vault: Select) {
    let asked = match timeout(BODY_TIME, first(&mut socket)).await {
        Ok(None) => return,
        Ok(Some(asked)) => asked,
        Err(_) => {
            let what = format!("no command came within {} s", BODY_TIME.as_secs());
            Err(Failure::new(ErrorKind::TimedOut, what))
        }
    };
    let entered = match asked {
        Ok(exec) => {
            let place = client.app.lanes.enter(RUN, &client.caller).await;
            place.map(|place| (exec, place))
        }
        Err(failure) => Err(failure),
    };
    let (exec, place) = match entered {
        Ok(entered) => entered,
        Err(failure) => {
            let (mut sink, _stream) = socket.split();
            return drop(timeout(BODY_TIME, talk::refuse(&mut sink, &failure)).await);
        }
    };
    let ask = Arc::new(ask);
    let (say, shown) = talk::queue();
    let (taken, call) = oneshot::channel();
    let listener = Live {
        shown: say.clone(),
        taken: Mutex::new(Some(taken)),
    };
    let (asking, log) = (Arc::clone(&ask), client.app.place.log());
    let running = spawn_blocking(move || {
        let _place = place;
        let ran = exec::exec(&asking, vault, exec, &listener);
        let last = match ran {
            Ok((envelope, held)) => {
                let envelope = Box::new(envelope);
                Shown::Message(TerminalMessage::Result { envelope }, held)
            }
            Err(failure) => Shown::error(&failure.with_figures(&asking.app.runtime)),
        };
        // An error means that the client has disconnected.
        let _ = listener.shown.blocking_send(last);
    });
    let panicked = say.clone();
    tokio::spawn(async move {
        if running.await.is_err() {
            let _ = panicked.send(Shown::error(&Failure::panicked(&log))).await;
        }
    });
    let screen = async {
        let call = call.await.ok()?;
        Some(Arc::new(Running { ask, call }) as Arc<dyn Screen>)
    };
    talk::talk(client, socket, say, shown, screen).await;
}

/// The command, which is the first message; `None` if the client leaves without one.
async fn first(socket: &mut WebSocket) -> Option<Result<Exec, Failure>> {
    loop {
        return Some(match socket.recv().await? {
            Ok(Message::Text(text)) => read(text.as_bytes()),
            Ok(Message::Binary(_)) => Err(Failure::invalid(
                "the first message is the command, as text",
            )),
            Ok(Message::Ping(_) | Message::Pong(_)) => continue,
            Ok(Message::Close(_)) => return None,
            Err(error) => Err(talk::no_message(&error)),
        });
    }
}

/// A command at a terminal: its input is what the client types, and its output is not repeated in the envelope.
fn read(text: &[u8]) -> Result<Exec, Failure> {
    let mut exec: Exec = read_object(text)?;
    match exec.stdin {
        None | Some(StdinItem::Live) => exec.stdin = Some(StdinItem::Live),
        Some(StdinItem::Text(_) | StdinItem::Base64(_)) => {
            let what = "the input of a command at a terminal is sent in binary messages";
            return Err(Failure::unprocessable(what).hint("leave `stdin` out"));
        }
    }
    exec.tty.get_or_insert(TtyAsk {
        rows: ROWS,
        columns: COLUMNS,
        term: None,
    });
    exec.output_limit.get_or_insert(0);
    Ok(exec)
}

/// A listener of a command at a terminal.
struct Live {
    shown: mpsc::Sender<Shown>,
    /// Told the handle of the command.
    taken: Mutex<Option<oneshot::Sender<CallId>>>,
}

impl Listener<ExecEvent> for Live {
    fn tell(&self, event: ExecEvent, is_patient: &dyn Fn() -> bool) {
        let shown = match event {
            // At a terminal there is one stream.
            ExecEvent::Stdout(chunk) | ExecEvent::Stderr(chunk) => {
                Shown::Bytes(Bytes::copy_from_slice(chunk.bytes()))
            }
            ExecEvent::Started(started) => {
                let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
                taken.take().map(|taken| taken.send(started.call));
                Shown::message(TerminalMessage::Started { call: started.call })
            }
            ExecEvent::Waiting(waiting) => Shown::message(TerminalMessage::Waiting {
                approval_id: waiting.approval_id,
            }),
        };
        queue_up(&self.shown, shown, is_patient);
    }

    fn is_gone(&self) -> bool {
        self.shown.is_closed()
    }
}

/// The terminal of a running command.
struct Running {
    ask: Arc<Ask>,
    call: CallId,
}

impl Screen for Running {
    fn input(&self) -> Result<OwnedFd, Failure> {
        let call = self.call;
        exec::input(&self.ask, ExecInput { call }).map(|feed| feed.pipe)
    }

    fn resize(&self, size: WindowSize) -> Result<(), Failure> {
        let WindowSize { rows, columns } = size;
        let request = ExecResize {
            call: self.call,
            rows,
            columns,
        };
        exec::resize(&self.ask, request).map(drop)
    }

    fn signal(&self, signal: i32) -> Result<(), Failure> {
        exec::signal(&self.ask, self.call, signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_at_a_terminal_has_its_input_from_there() {
        let exec = read(br#"{"argv":["sh"]}"#).unwrap();
        assert!(matches!(exec.stdin, Some(StdinItem::Live)));
        assert_eq!(exec.tty.map(|it| (it.rows, it.columns)), Some((24, 80)));
        assert_eq!(exec.output_limit, Some(0));
        let exec = read(br#"{"shell":"sh","tty":{"rows":2,"columns":3},"output_limit":9}"#);
        let exec = exec.unwrap();
        assert_eq!(exec.tty.map(|it| (it.rows, it.columns)), Some((2, 3)));
        assert_eq!(exec.output_limit, Some(9));
        for wrong in [
            r#"{"argv":["cat"],"stdin":{"text":"x"}}"#,
            r#"{"argv":["cat"],"more":1}"#,
            r#"[["cat"]]"#,
            "cat",
            "",
        ] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
