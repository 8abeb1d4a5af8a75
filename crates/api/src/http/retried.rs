//! Answers with the header that lists what was retried.

use super::bodies;
use crate::ops::erased::Answer;
use crate::ops::failure::Failure;
use crate::ops::memory::Bodies;
use crate::wire::RETRIED_HEADER;
use avfs_runtime::{Retried, noting};
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};

/// A result, and what was retried for it.
pub(crate) struct Noted<T> {
    pub done: T,
    pub retried: Vec<Retried>,
}

impl<T> Noted<T> {
    /// Does the work on one thread, which records the retries.
    pub fn of(work: impl FnOnce() -> T) -> Noted<T> {
        let (done, retried) = noting(work);
        Noted { done, retried }
    }
}

impl Noted<Result<Answer, Failure>> {
    pub async fn send(self, bodies: &Bodies) -> Response {
        let response = match self.done {
            Ok(answer) => bodies::send(answer, bodies).await.into_response(),
            Err(failure) => failure.into_response(),
        };
        with_header(response, &self.retried)
    }
}

/// Adds the header to an answer.
pub(crate) fn with_header(mut response: Response, retried: &[Retried]) -> Response {
    let words: Vec<&str> = retried.iter().map(|what| what.as_str()).collect();
    if let Ok(words) = words.join(",").parse::<HeaderValue>()
        && !words.is_empty()
    {
        response.headers_mut().insert(RETRIED_HEADER, words);
    }
    response
}
