//! Running a command, and controlling it meanwhile.

use super::calls::CallState;
use super::envelope::{self, Asked};
use super::failure::Failure;
use super::handler::{Feed, Held, Listener, Reply};
use super::traces::Ended;
use super::{Ask, input, parse};
use crate::wire::{
    CallId, Envelope, Exec, ExecCancel, ExecCancelled, ExecEvent, ExecInput, ExecInputTaken,
    ExecResize, Output, OutputChunk, OutputPart, StartedEvent, StreamWord, WaitingEvent,
    WindowItem, to_text,
};
use avfs_runtime::{ApprovalId, Cancel, ErrorKind, ExecId, OutputSink, Select, Stream, WindowSize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The most bytes of output in one event.
const PIECE: usize = 16 << 10;

/// Runs a command. If the listener disconnects, it is ended.
pub(crate) fn exec(
    ask: &Ask,
    vault: Select,
    request: Exec,
    listener: &dyn Listener<ExecEvent>,
) -> Held<Exec> {
    let call = ask
        .app
        .calls
        .begin(ask.session.principal(), vault.clone())?;
    let asked = Asked::new(vault, request)?;
    let stdin = input::prepare(asked.stdin(), &call)?;
    let sink = Sink {
        listener,
        state: call.state(),
        seq: AtomicU64::new(0),
    };
    sink.tell(ExecEvent::Started(StartedEvent { call: call.id() }), None);
    let request = asked.request(stdin, call.state().control());
    let begun = Instant::now();
    let mut report = ask.session.exec(request, &sink)?;
    let held = std::mem::take(&mut report.held);
    let envelope = envelope::envelope(report);
    trace(ask, &envelope, begun);
    Ok((envelope, held))
}

/// The span of a command: how it ended, and its id in the journal.
fn trace(ask: &Ask, envelope: &Envelope, begun: Instant) {
    if ask.caller.trace.is_none() {
        return;
    }
    let result = &envelope.result;
    let status = serde_json::to_value(result.status).unwrap_or_default();
    let mut attributes = vec![("avfs.exec.status", status)];
    if let Some(code) = result.ending.exit_code {
        attributes.push(("process.exit.code", code.into()));
    }
    attributes.push(("avfs.exec.id", result.exec.clone().into()));
    let ended = Ended {
        name: "command",
        took: begun.elapsed(),
        failed: false,
        attributes,
    };
    ask.app.traces.command(ask.caller.trace, &ended);
}

/// The sink of a command's output. A slow listener slows the command down, as a pipe would, but not beyond the command's
/// own time limit: later output is in the envelope only.
struct Sink<'a> {
    listener: &'a dyn Listener<ExecEvent>,
    state: Arc<CallState>,
    seq: AtomicU64,
}

impl Sink<'_> {
    fn tell(&self, event: ExecEvent, until: Option<Instant>) {
        self.listener.tell(event, &|| {
            let in_time = until.is_none_or(|until| Instant::now() < until);
            in_time && self.cancelled().is_none()
        });
    }
}

impl OutputSink for Sink<'_> {
    fn output(&self, stream: Stream, bytes: &[u8], until: Option<Instant>) {
        if !self.listener.is_listening() {
            return;
        }
        for piece in pieces(bytes, PIECE) {
            let seq = self.seq.fetch_add(1, Ordering::Relaxed) + 1;
            let chunk = OutputChunk::new(seq, piece);
            let event = match stream {
                Stream::Stdout => ExecEvent::Stdout(chunk),
                Stream::Stderr => ExecEvent::Stderr(chunk),
            };
            self.tell(event, until);
        }
    }

    fn waiting(&self, approval: ApprovalId) {
        let approval_id = approval.to_string();
        self.tell(ExecEvent::Waiting(WaitingEvent { approval_id }), None);
    }

    fn cancelled(&self) -> Option<Cancel> {
        let gone = self.listener.is_gone().then_some(Cancel::Leave);
        self.state.cancelled().or(gone)
    }
}

pub(crate) fn resize(ask: &Ask, request: ExecResize) -> Reply<ExecResize> {
    let (rows, columns) = (request.rows, request.columns);
    let size = WindowSize { rows, columns };
    let by = ask.session.principal();
    ask.app.calls.resize(request.call, by, size)?;
    Ok(WindowItem { rows, columns })
}

/// Sends a signal to a command that runs at a terminal.
pub(crate) fn signal(ask: &Ask, call: CallId, signal: i32) -> Result<(), Failure> {
    ask.app.calls.signal(call, ask.session.principal(), signal)
}

pub(crate) fn cancel(ask: &Ask, request: ExecCancel) -> Reply<ExecCancel> {
    let how = if request.interrupt {
        Cancel::Interrupt
    } else {
        Cancel::Leave
    };
    let by = ask.session.principal();
    Ok(ExecCancelled {
        cancelled: ask.app.calls.cancel(request.call, by, how),
    })
}

pub(crate) fn input(ask: &Ask, request: ExecInput) -> Result<Feed<ExecInput>, Failure> {
    let ExecInput { call } = request;
    let pipe = ask.app.calls.take_input(call, ask.session.principal());
    let pipe = pipe.ok_or_else(|| {
        let what = format!(
            "call {call} takes no input: it has ended, has no open input, or another request writes to it"
        );
        Failure::new(ErrorKind::NotFound, what)
    })?;
    Ok(Feed {
        pipe,
        done: Box::new(|bytes| Ok(ExecInputTaken { bytes })),
    })
}

/// A part of the output of a command.
pub(crate) fn output(ask: &Ask, request: Output) -> Reply<Output> {
    let stream = match request.stream {
        StreamWord::Stdout => Stream::Stdout,
        StreamWord::Stderr => Stream::Stderr,
    };
    let exec: ExecId = parse(&request.exec)?;
    let to = request.to.unwrap_or(u64::MAX);
    let part = ask.session.output(exec, stream, request.from, to)?;
    let to = part.from + part.bytes.len() as u64;
    let (data, data_b64) = to_text(part.bytes);
    Ok(OutputPart {
        exec: exec.to_string(),
        stream: request.stream,
        from: part.from,
        to,
        kept: part.kept,
        data,
        data_b64,
    })
}

/// Cuts bytes into pieces of at most `most`, at character boundaries if it is text.
fn pieces(mut bytes: &[u8], most: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let mut end = bytes.len().min(most);
        let is_middle = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        let begins = (end.saturating_sub(3)..=end)
            .rev()
            .find(|at| !is_middle(*at));
        end = begins.filter(|at| *at > 0).unwrap_or(end);
        let (piece, rest) = bytes.split_at(end);
        bytes = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stay_whole_and_nothing_is_lost() {
        let text = "aä€😀".repeat(50);
        for most in 4..40 {
            let cut: Vec<&[u8]> = pieces(text.as_bytes(), most).collect();
            assert!(
                cut.iter()
                    .all(|piece| piece.len() <= most && !piece.is_empty())
            );
            assert!(cut.iter().all(|piece| std::str::from_utf8(piece).is_ok()));
            assert_eq!(cut.concat(), text.as_bytes());
        }
        let noise = [0x80_u8; 100];
        assert_eq!(pieces(&noise, 7).collect::<Vec<_>>().concat(), noise);
    }
}
