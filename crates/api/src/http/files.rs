//! Files as answers: whole, in ranges, or not at all if the reader has them.

use super::conditional::{self, Part};
use super::retried::{Noted, with_header};
use super::routes::{Admitted, Arrived};
use crate::ops::content::piece_length;
use crate::ops::erased::OpenFn;
use crate::ops::failure::Failure;
use crate::ops::handler::Opened;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName,
    HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;

/// Queued pieces.
const QUEUE: usize = 1;

/// Sends a file, or a part of it.
pub(crate) async fn send_file(arrived: Arrived, open: OpenFn) -> Result<Response, Failure> {
    let (log, headers) = (arrived.app.place.log(), arrived.parts.headers.clone());
    let (request, lane) = (arrived.query()?, arrived.lane());
    let (Admitted { it, under_way, .. }, _) = arrived.admit(request, Some(lane)).await?;
    let open = move || Noted::of(|| open(&it.ask, it.vault, it.request));
    let opening = spawn_blocking(open).await;
    let Noted { done, retried } = opening.map_err(|_| Failure::panicked(&log))?;
    let mut opened = done?;
    let size = opened.file.size;
    // Tags and ranges are of the whole file, not of a part that the query asks for.
    let is_whole = opened.part == (0..size);
    let tag = opened.file.tag().filter(|_| is_whole);
    let judged = match is_whole {
        true => conditional::judge(&headers, tag.as_deref(), size)?,
        false => Part::Whole,
    };
    let mut answer = StatusCode::OK.into_response();
    match judged {
        Part::Whole => {}
        Part::NotModified => {
            let answer = StatusCode::NOT_MODIFIED.into_response();
            return Ok(described(answer, tag.as_deref()));
        }
        Part::Nothing => {
            let answer = Failure::no_such_range(size).into_response();
            return Ok(with(answer, CONTENT_RANGE, &format!("bytes */{size}")));
        }
        Part::Some(range) => {
            let shown = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            let answered = StatusCode::PARTIAL_CONTENT.into_response();
            answer = with(answered, CONTENT_RANGE, &shown);
            opened = only(opened, range, &log).await?;
        }
    }
    let length = opened.part.end.saturating_sub(opened.part.start);
    answer = described(answer, tag.as_deref());
    answer = with(answer, CONTENT_TYPE, "application/octet-stream");
    answer = with(answer, CONTENT_LENGTH, &length.to_string());
    let (pieces, queue) = mpsc::channel::<io::Result<Vec<u8>>>(QUEUE);
    tokio::spawn(async move {
        let _under_way = under_way;
        send_part(opened, pieces).await;
    });
    *answer.body_mut() = Body::from_stream(ReceiverStream::new(queue));
    Ok(with_header(answer, &retried))
}

/// Another part of the file, with its first piece.
async fn only(opened: Opened, part: Range<u64>, log: &Path) -> Result<Opened, Failure> {
    let Opened { file, .. } = opened;
    let reading = spawn_blocking(move || {
        let first = file.read_at(part.start, piece_length(&part))?;
        Ok(Opened { file, part, first })
    });
    reading.await.map_err(|_| Failure::panicked(log))?
}

/// What an answer with a file, or about one, says of it. Others may keep it, but must ask whether it is still so.
fn described(mut answer: Response, tag: Option<&str>) -> Response {
    if let Some(tag) = tag {
        answer = with(answer, ETAG, &format!("\"{tag}\""));
    }
    for (name, value) in [
        (ACCEPT_RANGES, "bytes"),
        (CACHE_CONTROL, "private, no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        answer = with(answer, name, value);
    }
    answer
}

fn with(mut answer: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
    answer
}

/// Reads piece by piece, each after the previous one was taken: no thread waits for a slow reader.
async fn send_part(opened: Opened, pieces: mpsc::Sender<io::Result<Vec<u8>>>) {
    let Opened { file, part, first } = opened;
    let file = Arc::new(file);
    let mut offset = part.start + first.len() as u64;
    if !first.is_empty() && pieces.send(Ok(first)).await.is_err() {
        return;
    }
    while offset < part.end {
        // First a place in the queue, so that no piece is read before it is wanted.
        let Ok(place) = pieces.reserve().await else {
            return;
        };
        let length = piece_length(&(offset..part.end));
        let file = Arc::clone(&file);
        let read = spawn_blocking(move || file.read_at(offset, length)).await;
        let piece = match read {
            Ok(Ok(bytes)) if bytes.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Ok(bytes)) => Ok(bytes),
            // The status is already sent: the stream is aborted, which the client notices.
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
