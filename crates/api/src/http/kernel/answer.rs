//! The form of its answers.

use super::is_ours;
use crate::ops::failure::Failure;
use crate::wire::{Envelope, Problem, StatusWord};
use avfs_runtime::ErrorKind;
use axum::Json;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

/// Bytes of a problem, which are few.
const PROBLEM_MAX: usize = 64 << 10;

pub(super) async fn health() -> Response {
    done("ok")
}

/// An answer with data.
pub(super) fn done(data: impl Serialize) -> Response {
    with_status(StatusCode::OK, data)
}

pub(super) fn created(data: impl Serialize) -> Response {
    with_status(StatusCode::CREATED, data)
}

fn with_status(status: StatusCode, data: impl Serialize) -> Response {
    (status, Json(json!({ "success": true, "data": data }))).into_response()
}

/// How a command ended: the answer to one that exited with 0 is a success, to another a conflict with its exit code.
pub(super) fn ran(envelope: Envelope) -> Result<Response, Failure> {
    let ended = Ended::of(envelope)?;
    if ended.success {
        return Ok(done(json!({ "output": ended.output, "exit_code": 0 })));
    }
    let body = json!({
        "success": false,
        "error": ended.error(),
        "exit_code": ended.exit_code,
        "output": ended.output,
    });
    Ok((StatusCode::CONFLICT, Json(body)).into_response())
}

/// How a command ended.
pub(super) struct Ended {
    pub success: bool,
    /// The kernel's; none if the command did not exit by itself.
    pub exit_code: Option<i32>,
    pub output: String,
    why: String,
}

impl Ended {
    /// An error, if the command did not run.
    pub fn of(envelope: Envelope) -> Result<Ended, Failure> {
        let result = envelope.result;
        let reason = result
            .ending
            .reason
            .clone()
            .or(result.decision.reason.clone());
        let reason = reason.unwrap_or_default();
        match result.status {
            StatusWord::Denied => Err(Failure::new(ErrorKind::Denied, reason)),
            StatusWord::NeedsApproval => {
                let id = result.approval_id.unwrap_or_default();
                let what = format!("Permission required: approval {id}: {reason}");
                Err(Failure::new(ErrorKind::NeedsApproval, what))
            }
            StatusWord::CouldNotStart | StatusWord::NotFound => Err(Failure::invalid(reason)),
            status => {
                let status = serde_json::to_value(status).unwrap_or_default();
                Ok(Ended {
                    success: result.ending.exit_code == Some(0),
                    exit_code: result.ending.exit_code,
                    output: format!("{}{}", result.stdout, result.stderr),
                    why: match (result.ending.exit_code, result.ending.signal) {
                        (Some(code), _) => format!("exit code {code}"),
                        (None, Some(signal)) => format!("signal {signal}"),
                        (None, None) => status.as_str().unwrap_or_default().replace('_', " "),
                    },
                })
            }
        }
    }

    pub fn error(&self) -> String {
        format!("Command failed: {}", self.why)
    }
}

/// Turns the problems of its addresses into `{"success": false, "error"}`.
pub(in crate::http) async fn translate(request: Request, next: Next) -> Response {
    let is_ours = is_ours(request.uri().path());
    let answer = next.run(request).await;
    let kind = answer.headers().get(CONTENT_TYPE);
    let is_problem = kind.is_some_and(|it| it.as_bytes() == b"application/problem+json");
    if !is_ours || !is_problem {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let problem = to_bytes(body, PROBLEM_MAX).await.ok();
    let problem = problem.and_then(|text| serde_json::from_slice::<Problem>(&text).ok());
    let mut error = String::from("the request failed");
    if let Some(problem) = problem {
        error = problem.detail;
        if let Some(hint) = problem.hint {
            error = format!("{error} ({hint})");
        }
    }
    // Its clients know one status for what cannot be read.
    if parts.status == StatusCode::UNPROCESSABLE_ENTITY {
        parts.status = StatusCode::BAD_REQUEST;
    }
    parts.headers.remove(CONTENT_TYPE);
    parts.headers.remove(CONTENT_LENGTH);
    let body: Value = json!({ "success": false, "error": error });
    let mut answer = (parts.status, Json(body)).into_response();
    answer.headers_mut().extend(parts.headers);
    answer
}
