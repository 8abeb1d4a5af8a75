//! Bodies of requests and of answers, held within bounds: small ones always fit, large ones share what there is.

use super::app::AtWork;
use super::errors::Failure;
use crate::bounds::{ANSWERS_MAX, BODIES_MAX, BODY_TIME, SMALL, TURN_TIME, body_max};
use avfs_runtime::{ErrorKind, HeldOutput};
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::{Stream, StreamExt};

/// The unit in which memory is shared out.
const UNIT: usize = 1 << 10;

/// The memory for large bodies.
pub(crate) struct Bodies {
    requests: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

impl Bodies {
    pub fn new() -> Bodies {
        Bodies {
            requests: Arc::new(Semaphore::new(BODIES_MAX / UNIT)),
            answers: Arc::new(Semaphore::new(ANSWERS_MAX / UNIT)),
        }
    }
}

/// Memory for so many bytes, once there is some.
async fn share(of: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
    let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
    let share = Arc::clone(of).acquire_many_owned(units);
    match tokio::time::timeout(TURN_TIME, share).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(Failure::new(
            ErrorKind::Unavailable,
            "too much is being sent or read at the same time",
        )
        .hint("try again in a moment")),
    }
}

/// A request in JSON. Its memory is held until the work is done.
pub(crate) async fn receive<T>(
    operation: &'static str,
    at_work: &AtWork,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Failure>
where
    T: DeserializeOwned + Send + 'static,
{
    let most = body_max(operation);
    let declared = headers.get(CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let expected = declared.unwrap_or(most);
    if expected > most {
        return Err(Failure::too_large(operation, most));
    }
    if expected > SMALL {
        at_work.hold(share(&at_work.bodies().requests, expected).await?);
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
        let share = share(&bodies.answers, bytes.len().min(ANSWERS_MAX)).await?;
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
