//! Bodies of any size as byte streams between the connection and a blocking thread.

use super::bodies;
use super::routes::{Admitted, Arrived, at_once};
use crate::bounds::PAUSE_TIME;
use crate::ops::erased::{FeedFn, ReceiveFn, SendFn};
use crate::ops::failure::Failure;
use crate::ops::input::{give, writer};
use crate::wire::WriteContent;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::response::{IntoResponse, Response};
use std::io::{self, Read, Write};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Headers that are fields of a request as well.
const CONDITIONS: [(HeaderName, &str); 2] =
    [(IF_MATCH, "if_match"), (IF_NONE_MATCH, "if_none_match")];
/// Queued pieces.
const QUEUE: usize = 1;
/// Bytes of one piece.
const PIECE: usize = 256 << 10;

/// Passes the request's body to a handler, and answers when it is done.
pub(crate) async fn receive(arrived: Arrived, serve: ReceiveFn) -> Result<Response, Failure> {
    let request = match arrived.is::<WriteContent>() {
        true => arrived.query_and(&CONDITIONS)?,
        false => arrived.query()?,
    };
    let lane = arrived.lane();
    let (admitted, body) = arrived.admit(request, Some(lane)).await?;
    let (pieces, mut arriving) = Arriving::new();
    let work = at_once(admitted, move |it, gone| {
        serve(&it.ask, it.vault, it.request, &mut arriving, gone)
    });
    let (answer, ()) = tokio::join!(work, pass_on(body, pieces));
    answer
}

/// Sends what a handler writes. The answer begins with the first piece.
pub(crate) async fn send(
    arrived: Arrived,
    media_type: &'static str,
    serve: SendFn,
) -> Result<Response, Failure> {
    let log = arrived.app.place.log();
    let (request, lane) = (arrived.query()?, arrived.lane());
    let (Admitted { it, under_way, .. }, _) = arrived.admit(request, Some(lane)).await?;
    let (begun, first) = oneshot::channel();
    let (pieces, queue) = mpsc::channel::<io::Result<Vec<u8>>>(QUEUE);
    spawn_blocking(move || {
        let _under_way = under_way;
        let mut leaving = Leaving {
            pieces,
            begun: Some(begun),
            piece: Vec::new(),
        };
        let written = serve(&it.ask, it.vault, it.request, &mut leaving);
        match (written, leaving.begun.take()) {
            (Ok(()), begun) => {
                leaving.begun = begun;
                // An error means that the client has disconnected.
                let _ = leaving.flush();
            }
            (Err(failure), Some(begun)) => drop(begun.send(Err(failure))),
            // The status is already sent: the stream is aborted, which the client notices.
            (Err(failure), None) => {
                let detail = failure.problem().detail.clone();
                let _ = leaving.pieces.blocking_send(Err(io::Error::other(detail)));
            }
        }
    });
    first.await.map_err(|_| Failure::panicked(&log))??;
    let body = Body::from_stream(ReceiverStream::new(queue));
    Ok(([(CONTENT_TYPE, media_type)], body).into_response())
}

/// Passes the body to a command, until its end or until the command stops reading. It uses no lane: it lasts as long as
/// the command, and no thread waits for it.
pub(crate) async fn feed(arrived: Arrived, open: FeedFn) -> Result<Response, Failure> {
    let request = arrived.query()?;
    let (log, bodies) = (arrived.app.place.log(), Arc::clone(&arrived.app.bodies));
    let (Admitted { it, under_way, .. }, body) = arrived.admit(request, None).await?;
    let _under_way = under_way;
    let opening = spawn_blocking(move || open(&it.ask, it.request));
    let feed = opening.await.map_err(|_| Failure::panicked(&log))??;
    let mut given = 0;
    if let Ok(pipe) = writer(feed.pipe) {
        let mut body = body.into_data_stream();
        while let Some(Ok(piece)) = body.next().await {
            // A command that has ended reads no more.
            if give(&pipe, &piece).await.is_err() {
                break;
            }
            given += piece.len() as u64;
        }
    }
    bodies::send((feed.done)(given)?, &bodies).await
}

/// An answer's body, written by a blocking thread. The answer begins with the first piece.
struct Leaving {
    pieces: mpsc::Sender<io::Result<Vec<u8>>>,
    begun: Option<oneshot::Sender<Result<(), Failure>>>,
    piece: Vec<u8>,
}

impl Write for Leaving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(begun) = self.begun.take() {
            let _ = begun.send(Ok(()));
        }
        let piece = std::mem::take(&mut self.piece);
        let sent = self.pieces.blocking_send(Ok(piece));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Passes a body on, piece by piece, until it ends, breaks, pauses for too long, or is not wanted any more.
async fn pass_on(body: Body, pieces: mpsc::Sender<io::Result<Bytes>>) {
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
        // The work has ended, and reports why.
        if pieces.send(piece).await.is_err() || broken {
            return;
        }
    }
}

/// A request's body, for a blocking thread. An empty piece is its end; if the sender is dropped without one, the body is
/// incomplete.
struct Arriving {
    queue: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
    ended: bool,
}

impl Arriving {
    fn new() -> (mpsc::Sender<io::Result<Bytes>>, Arriving) {
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
