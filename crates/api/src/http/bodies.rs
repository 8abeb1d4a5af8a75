//! Bodies of requests and of answers, held within bounds: small ones always fit, large ones share what there is.

use crate::bounds::{ANSWERS_MAX, BODY_TIME, SMALL};
use crate::ops::app::AtWork;
use crate::ops::failure::Failure;
use crate::ops::memory::Bodies;
use crate::table::Row;
use avfs_runtime::{ErrorKind, HeldOutput};
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;
use tokio_stream::{Stream, StreamExt};

/// A request in JSON. Its memory is held until the work is done.
pub(crate) async fn receive<T>(
    row: &Row,
    at_work: &AtWork,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Failure>
where
    T: DeserializeOwned + Send + 'static,
{
    let (operation, most) = (row.name, row.body_max);
    let declared = headers.get(CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let expected = declared.unwrap_or(most);
    if expected > most {
        return Err(Failure::too_large(operation, most));
    }
    if expected > SMALL {
        at_work.hold(at_work.bodies().for_request(expected).await?);
    }
    let arrived = tokio::time::timeout(BODY_TIME, collect(operation, body, most)).await;
    let bytes = arrived.map_err(|_| {
        let seconds = BODY_TIME.as_secs();
        let what = format!("the request did not arrive within {seconds} s");
        Failure::new(ErrorKind::TimedOut, what)
    })??;
    if bytes.len() <= SMALL {
        return parse(&bytes);
    }
    // On another thread: the one that serves everybody must not be held up.
    let parsed = tokio::task::spawn_blocking(move || parse(&bytes));
    parsed
        .await
        .unwrap_or_else(|_| Err(Failure::invalid("the body cannot be read")))
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

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(text)
        .map_err(|error| Failure::invalid(format!("the body is not what was expected: {error}")))
}

/// An answer as it travels, with the memory that what it was made from takes.
pub(crate) struct Written {
    bytes: Vec<u8>,
    held: Vec<HeldOutput>,
}

/// Writes an answer; to be done where blocking is allowed.
pub(crate) fn write(answer: &impl Serialize, held: Vec<HeldOutput>) -> Written {
    let mut bytes = serde_json::to_vec(answer).expect("wire types are plain data");
    bytes.shrink_to_fit();
    Written { bytes, held }
}

impl Written {
    /// Sends it as soon as there is memory for it to be unread.
    pub async fn send(self, bodies: &Bodies) -> Result<Response, Failure> {
        let Written { bytes, held } = self;
        let json = [(CONTENT_TYPE, "application/json")];
        if bytes.len() <= SMALL {
            return Ok((json, bytes).into_response());
        }
        let share = bodies.for_answer(bytes.len().min(ANSWERS_MAX)).await?;
        // Without a length: the connection then asks for more only when it has sent what it has.
        let body = Body::from_stream(Unread {
            bytes: Some(bytes.into()),
            _share: share,
            _held: held,
        });
        Ok((json, body).into_response())
    }
}

/// An answer that was not read yet. It is dropped, and its memory given back, when the connection has sent it.
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
