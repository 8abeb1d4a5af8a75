//! What a command reads (nothing, what came with the request, or what a second request brings), and
//! what it wrote beyond its envelope.

use super::app::Call;
use super::envelope::Asked;
use super::errors::Failure;
use super::routes::{Reply, Routes, by_method, parse, query};
use super::{App, Ask};
use crate::wire::{ExecInput, ExecInputTaken, Output, OutputPart, StdinItem, StreamWord, to_text};
use avfs_runtime::{ErrorKind, ExecId, Stdin, Stream};
use axum::body::BodyDataStream;
use axum::extract::{Request, State};
use axum::response::Json;
use rustix::fs::OFlags;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::net::unix::pipe;
use tokio_stream::StreamExt;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .add::<ExecInput>(by_method::<ExecInput, _, _>(input))
        .plain::<Output>(output)
}

fn output(ask: &Ask, request: Output) -> Reply<Output> {
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

/// The command's end of its input.
pub(crate) fn prepare(asked: &Asked, call: &Call) -> Result<Stdin, Failure> {
    let Some(item) = asked.stdin() else {
        return Ok(Stdin::Empty);
    };
    let read = call.wishes().open_input();
    let read = read.map_err(|error| {
        let what = format!("a pipe for the command's input cannot be made: {error}");
        Failure::new(ErrorKind::Unavailable, what)
    })?;
    let whole = match item {
        StdinItem::Live => return Ok(Stdin::From(read)),
        StdinItem::Text(text) => text.clone().into_bytes(),
        StdinItem::Base64(bytes) => bytes.0.clone(),
    };
    if let Some(write) = call.take_input() {
        // It ends when all is read, or when the command does.
        tokio::spawn(give_all(write, whole));
    }
    Ok(Stdin::From(read))
}

async fn input(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<ExecInputTaken>, Failure> {
    let (caller, ExecInput { call }, body) = query(request)?;
    let Some(pipe) = app.calls.take_input(call, caller.principal) else {
        return Err(Failure::new(
            ErrorKind::NotFound,
            format!(
                "call {call} takes no input: it has ended, wants none, or is brought it already"
            ),
        ));
    };
    let bytes = pass_on(&mut body.into_data_stream(), pipe).await;
    Ok(Json(ExecInputTaken { bytes }))
}

/// Gives the command what comes, until there is no more or nobody reads it; says how much it was. No thread waits for
/// a command that does not read.
pub(crate) async fn pass_on(body: &mut BodyDataStream, pipe: OwnedFd) -> u64 {
    let mut given = 0;
    let Ok(pipe) = writer(pipe) else {
        return given;
    };
    while let Some(Ok(piece)) = body.next().await {
        // A command that has ended reads no more.
        if give(&pipe, &piece).await.is_err() {
            break;
        }
        given += piece.len() as u64;
    }
    given
}

/// Gives the command all it reads, or as much as it does.
pub(crate) async fn give_all(pipe: OwnedFd, bytes: Vec<u8>) {
    if let Ok(pipe) = writer(pipe) {
        // A command that has ended reads no more.
        let _ = give(&pipe, &bytes).await;
    }
}

async fn give(pipe: &pipe::Sender, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        pipe.writable().await?;
        match pipe.try_write(bytes) {
            Ok(size) => bytes = &bytes[size..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A pipe that is written to when it has room.
fn writer(pipe: OwnedFd) -> std::io::Result<pipe::Sender> {
    rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
    pipe::Sender::from_owned_fd(pipe)
}
