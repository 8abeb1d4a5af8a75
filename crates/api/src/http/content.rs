//! Content of any size as a stream of bytes, in and out: never more than some pieces of it are in memory.

use super::app::AtWork;
use super::bodies;
use super::errors::Failure;
use super::files::{at, store, vault_path, write_options};
use super::retried::{Noted, with_header};
use super::routes::{Routes, parse_vault, query};
use super::{App, Ask};
use crate::bounds::{PAUSE_TIME, lane_of};
use crate::wire::{Operation, ReadContent, WriteContent};
use avfs_runtime::OpenFile;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Pieces that may wait for the other side.
const QUEUE: usize = 1;
/// What is read of a file at once.
const PIECE: usize = 256 << 10;

pub(crate) fn routes(routes: Routes) -> Routes {
    // One address for both ways.
    routes
        .add::<ReadContent>(get(read_content))
        .add::<WriteContent>(put(write_content))
}

async fn read_content(
    State(app): State<Arc<App>>,
    Path(vault): Path<String>,
    request: Request,
) -> Result<Response, Failure> {
    let (at_work, log) = (app.enter(), app.place.log());
    let select = parse_vault(&vault)?;
    let (caller, asked, _) = query::<ReadContent>(request)?;
    let path = vault_path(&asked.path, asked.path_b64.as_ref())?;
    let turn = app.lanes.enter(lane_of(ReadContent::NAME), &caller).await?;
    let ask = Ask::new(app, caller);
    let opening = tokio::task::spawn_blocking(move || {
        Noted::of(|| {
            let file = ask.session.open_file(select, &path, asked.version);
            let file = file.map_err(at(&path))?;
            let end = match asked.limit {
                Some(limit) => file.size.min(asked.offset.saturating_add(limit)),
                None => file.size,
            };
            // With the answer not yet begun, damage can still be told as such.
            let part = asked.offset..end;
            let first = match piece_length(&part) {
                0 => Vec::new(),
                length => file.read_at(part.start, length).map_err(at(&path))?,
            };
            Ok::<_, Failure>((file, first, part))
        })
    });
    let Noted { done, retried } = opening.await.map_err(|_| Failure::panicked(&log))?;
    let (file, first, part) = done?;
    let (pieces, queue) = mpsc::channel::<io::Result<Vec<u8>>>(QUEUE);
    tokio::spawn(async move {
        let _under_way: (AtWork, _) = (at_work, turn);
        send_part(Arc::new(file), first, part, pieces).await;
    });
    let body = Body::from_stream(ReceiverStream::new(queue));
    let response = ([(CONTENT_TYPE, "application/octet-stream")], body).into_response();
    Ok(with_header(response, &retried))
}

fn piece_length(part: &Range<u64>) -> usize {
    let left = part.end.saturating_sub(part.start);
    usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))
}

/// Reads piece by piece, each when the one before was taken: no thread waits for a slow reader.
async fn send_part(
    file: Arc<OpenFile>,
    first: Vec<u8>,
    part: Range<u64>,
    pieces: mpsc::Sender<io::Result<Vec<u8>>>,
) {
    let mut offset = part.start + first.len() as u64;
    if !first.is_empty() && pieces.send(Ok(first)).await.is_err() {
        return;
    }
    while offset < part.end {
        // A place in the queue first, so that no piece is read before somebody wants it.
        let Ok(place) = pieces.reserve().await else {
            return;
        };
        let length = piece_length(&(offset..part.end));
        let file = Arc::clone(&file);
        let read = tokio::task::spawn_blocking(move || file.read_at(offset, length)).await;
        let piece = match read {
            Ok(Ok(bytes)) if bytes.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Ok(bytes)) => Ok(bytes),
            // Too late for an answer: the stream breaks, and the client sees that.
            Ok(Err(error)) => Err(io::Error::other(error)),
            Err(_) => Err(io::Error::other("reading panicked")),
        };
        offset += piece.as_ref().map_or(0, Vec::len) as u64;
        let broken = piece.is_err();
        place.send(piece);
        if broken {
            return;
        }
    }
}

async fn write_content(
    State(app): State<Arc<App>>,
    Path(vault): Path<String>,
    request: Request,
) -> Result<Response, Failure> {
    let (at_work, log) = (app.enter(), app.place.log());
    let select = parse_vault(&vault)?;
    let (caller, asked, body) = query::<WriteContent>(request)?;
    let path = vault_path(&asked.path, asked.path_b64.as_ref())?;
    let options = write_options(asked.append, asked.parents, asked.mode.as_deref())?;
    let turn = app
        .lanes
        .enter(lane_of(WriteContent::NAME), &caller)
        .await?;
    let bodies = Arc::clone(&app.bodies);
    let ask = Ask::new(app, caller);
    let (pieces, mut arriving) = Arriving::new();
    let work = tokio::task::spawn_blocking(move || {
        let _under_way = (at_work, turn);
        Noted::of(|| {
            let stored = store(&ask, select, &path, &mut arriving, &options);
            stored.map(|answer| bodies::write(&answer, Vec::new()))
        })
    });
    pass_on(body, pieces).await;
    let answer = work.await.map_err(|_| Failure::panicked(&log))?;
    Ok(answer.send(&bodies).await)
}

/// Hands a body over, piece by piece, until it ends, breaks, pauses for too long, or nobody takes it.
pub(crate) async fn pass_on(body: Body, pieces: mpsc::Sender<io::Result<Bytes>>) {
    let mut body = body.into_data_stream();
    loop {
        let piece = match tokio::time::timeout(PAUSE_TIME, body.next()).await {
            Ok(None) => {
                let _ = pieces.send(Ok(Bytes::new())).await;
                return;
            }
            Ok(Some(Ok(piece))) if piece.is_empty() => continue,
            Ok(Some(piece)) => piece.map_err(|error| io::Error::other(error.to_string())),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        let broken = piece.is_err();
        // Nobody takes it: the work has ended, and says why.
        if pieces.send(piece).await.is_err() || broken {
            return;
        }
    }
}

/// A request's body, for a thread that may wait. An empty piece is its end; a sender that goes without one has
/// broken off, and what it sent is not whole.
pub(crate) struct Arriving {
    queue: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
    ended: bool,
}

impl Arriving {
    pub fn new() -> (mpsc::Sender<io::Result<Bytes>>, Arriving) {
        let (pieces, queue) = mpsc::channel(QUEUE);
        let arriving = Arriving {
            queue,
            piece: Bytes::new(),
            ended: false,
        };
        (pieces, arriving)
    }
}

impl Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && !self.ended {
            match self.queue.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            self.ended = self.piece.is_empty();
        }
        let size = buffer.len().min(self.piece.len());
        buffer[..size].copy_from_slice(&self.piece.split_to(size));
        Ok(size)
    }
}
