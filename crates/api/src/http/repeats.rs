//! The header `Idempotency-Key`: a repeated request gets the answer of the first.

use crate::ops::caller::Caller;
use crate::ops::erased::{Erased, Serve};
use crate::ops::failure::Failure;
use crate::ops::repeats::{Asked, Slot};
use crate::table::{Method, Row};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};

const HEADER: &str = "idempotency-key";
/// Marks an answer that was given before.
const REPLAYED: &str = "idempotent-replayed";
/// Bytes of a key.
const KEY_MAX: usize = 255;

/// Refuses a key that makes no sense, or where it would have no effect on an operation that is not idempotent by itself.
pub(super) fn check(
    operation: &Erased,
    headers: &HeaderMap,
    wants_events: bool,
) -> Result<(), Failure> {
    let row = &operation.row;
    let mut keys = headers.get_all(HEADER).iter();
    let Some(key) = keys.next() else {
        return Ok(());
    };
    let is_fine = |byte: &u8| (b'!'..=b'~').contains(byte);
    let bytes = key.as_bytes();
    let is_key = (1..=KEY_MAX).contains(&bytes.len()) && bytes.iter().all(is_fine);
    if !is_key || keys.next().is_some() {
        let problem =
            format!("an idempotency key is one word of at most {KEY_MAX} ASCII characters");
        return Err(Failure::invalid(problem));
    }
    let streams = match operation.serve {
        Serve::Answer(_) => false,
        Serve::Watched(_) | Serve::Runs(_) => wants_events,
        _ => true,
    };
    match streams && !row.effect.is_read_only() {
        true => Err(Failure::invalid("a stream has no idempotency key")
            .hint("start a job, whose output can be followed as often as needed")),
        false => Ok(()),
    }
}

/// What a repeated request is recognized by, if this one has a key and changes something.
pub(super) fn asked(
    row: &Row,
    parts: &Parts,
    caller: &Caller,
    hash: blake3::Hash,
) -> Option<Asked> {
    let key = parts.headers.get(HEADER)?.to_str().ok()?;
    (row.method == Method::Post && !row.effect.is_read_only()).then(|| Asked {
        slot: Slot {
            principal: caller.principal.to_string(),
            operation: row.name,
            address: parts.uri.path().to_owned(),
            key: key.to_owned(),
        },
        hash: *hash.as_bytes(),
    })
}

/// The answer of the first request.
pub(super) fn replayed(json: &[u8]) -> Response {
    let kind = [(CONTENT_TYPE, "application/json")];
    let mut answer = (kind, json.to_vec()).into_response();
    let yes = HeaderValue::from_static("true");
    answer.headers_mut().insert(REPLAYED, yes);
    answer
}
