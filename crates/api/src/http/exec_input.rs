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
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
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
        std::thread::spawn(move || File::from(write).write_all(&whole));
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

/// Gives the command what comes, until there is no more or nobody reads it; says how much it was.
pub(crate) async fn pass_on(body: &mut BodyDataStream, pipe: OwnedFd) -> u64 {
    let mut pipe = File::from(pipe);
    let mut given = 0;
    while let Some(Ok(piece)) = body.next().await {
        let size = piece.len() as u64;
        let written = tokio::task::spawn_blocking(move || {
            let done = pipe.write_all(&piece);
            (pipe, done)
        });
        // A command that has ended reads no more.
        let Ok((back, Ok(()))) = written.await else {
            break;
        };
        pipe = back;
        given += size;
    }
    given
}
