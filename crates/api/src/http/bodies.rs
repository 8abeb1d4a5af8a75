//! Bodies of requests and answers within the memory limits: small ones are always accepted, large ones share an amount.

use crate::bounds::{ANSWERS_MAX, BODY_TIME, SMALL};
use crate::ops::app::AtWork;
use crate::ops::erased::{Answer, Erased, Request};
use crate::ops::failure::Failure;
use crate::ops::memory::Bodies;
use avfs_runtime::{ErrorKind, HeldOutput};
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;
use tokio_stream::{Stream, StreamExt};

/// A request in JSON, and the hash of its text. Its memory is reserved until the work is done.
pub(crate) async fn receive(
    operation: &Arc<Erased>,
    at_work: &AtWork,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Request, blake3::Hash), Failure> {
    let (name, most) = (operation.row.name, operation.row.body_max);
    let bytes = arrive(name, most, at_work, headers, body).await?;
    if bytes.len() <= SMALL {
        return Ok((operation.read_json(&bytes)?, blake3::hash(&bytes)));
    }
    // On another thread, to keep the event loop free.
    let operation = Arc::clone(operation);
    let parsed = spawn_blocking(move || {
        let request = operation.read_json(&bytes)?;
        Ok((request, blake3::hash(&bytes)))
    });
    parsed
        .await
        .unwrap_or_else(|_| Err(Failure::invalid("the body cannot be read")))
}

/// A whole body, within the limits of size, memory and time. Its memory is reserved as long as `at_work` is there.
pub(crate) async fn arrive(
    name: &str,
    most: usize,
    at_work: &AtWork,
    headers: &HeaderMap,
    body: Body,
) -> Result<Vec<u8>, Failure> {
    let declared = headers.get(CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let expected = match body.is_end_stream() {
        true => 0,
        false => declared.unwrap_or(most),
    };
    if expected > most {
        return Err(Failure::too_large(name, most));
    }
    if expected > SMALL {
        at_work.hold(at_work.bodies().for_request(expected).await?);
    }
    let arrived = tokio::time::timeout(BODY_TIME, collect(name, body, most)).await;
    arrived.map_err(|_| {
        let seconds = BODY_TIME.as_secs();
        let what = format!("the request did not arrive within {seconds} s");
        Failure::new(ErrorKind::TimedOut, what)
    })?
}

async fn collect(operation: &str, body: Body, most: usize) -> Result<Vec<u8>, Failure> {
    let mut body = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece =
            piece.map_err(|error| Failure::invalid(format!("the body did not arrive: {error}")))?;
        if bytes.len() + piece.len() > most {
            return Err(Failure::too_large(operation, most));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Sends an answer as soon as memory for it can be reserved.
pub(crate) async fn send(answer: Answer, bodies: &Bodies) -> Result<Response, Failure> {
    let Answer { json: bytes, held } = answer;
    let json = [(CONTENT_TYPE, "application/json")];
    if bytes.len() <= SMALL {
        return Ok((json, bytes).into_response());
    }
    let share = bodies.for_answer(bytes.len().min(ANSWERS_MAX)).await?;
    // Without a length: then the connection polls for more only when it has sent what it has.
    let body = Body::from_stream(Unread {
        bytes: Some(bytes.into()),
        _share: share,
        _held: held,
    });
    Ok((json, body).into_response())
}

/// An unread answer. Its memory is released when the connection has sent it.
struct Unread {
    bytes: Option<Bytes>,
    _share: OwnedSemaphorePermit,
    _held: Vec<HeldOutput>,
}

impl Stream for Unread {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.bytes.take().map(Ok))
    }
}
