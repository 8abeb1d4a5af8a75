//! Errors of operations, as problem details of RFC 9457: one table from kind to status.

use crate::wire::{Problem, VERSION};
use avfs_runtime::{ErrorKind, Runtime};
use axum::http::StatusCode;
use std::path::Path;

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Failure(Box<Problem>, Figures);

/// Whether a failure needs more details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figures {
    Told,
    /// The disk is full, and the missing space is not known yet.
    Missing,
}

impl Failure {
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Failure {
        Failure::with_status(status(kind), kind, detail)
    }

    pub fn invalid(detail: impl Into<String>) -> Failure {
        Failure::new(ErrorKind::Invalid, detail)
    }

    /// The handler panicked; the daemon continues.
    pub fn panicked(log: &Path) -> Failure {
        let failure = Failure::new(ErrorKind::Bug, "the daemon panicked during this request");
        failure.hint(format!("see {}, and report it", log.display()))
    }

    /// The client has another version than this daemon.
    pub fn other_version(client: &str) -> Failure {
        Failure::with_status(
            StatusCode::UPGRADE_REQUIRED,
            ErrorKind::Conflict,
            format!("the daemon is version {VERSION}, the client is {client}"),
        )
    }

    /// The address is for WebSocket, and the request is none.
    pub fn not_upgraded(detail: impl Into<String>) -> Failure {
        let status = StatusCode::UPGRADE_REQUIRED;
        Failure::with_status(status, ErrorKind::Invalid, detail)
            .hint("connect with a WebSocket client (RFC 6455)")
    }

    /// The home was moved: any operation would change another one.
    pub fn home_lost(home: &Path) -> Failure {
        let error = crate::Error::HomeLost { home: home.into() };
        let mut failure = Failure::new(error.kind(), error.to_string());
        failure.0.hint = error.hint();
        failure
    }

    /// The request is too large.
    pub fn too_large(operation: &str, most: usize) -> Failure {
        let what = format!("a request for {operation} has at most {most} bytes");
        Failure::with_status(StatusCode::PAYLOAD_TOO_LARGE, ErrorKind::Invalid, what).hint(
            "content of any size is sent as a stream: `avfs write --from-file`, `--stdin-file`",
        )
    }

    /// Nobody is asking, or nobody that is known.
    pub fn unauthenticated(detail: impl Into<String>) -> Failure {
        Failure::with_status(StatusCode::UNAUTHORIZED, ErrorKind::Denied, detail)
            .hint("send a key as `authorization: Bearer KEY`; `avfs key create` makes one")
    }

    /// The request can be read, and its content is wrong.
    pub fn unprocessable(detail: impl Into<String>) -> Failure {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Failure::with_status(status, ErrorKind::Invalid, detail)
    }

    /// A condition of the request does not hold.
    pub fn condition_failed(detail: impl Into<String>) -> Failure {
        let status = StatusCode::PRECONDITION_FAILED;
        Failure::with_status(status, ErrorKind::Conflict, detail)
    }

    /// The file has no such range.
    pub fn no_such_range(size: u64) -> Failure {
        let status = StatusCode::RANGE_NOT_SATISFIABLE;
        let detail = format!("the range is outside of the {size} bytes of the file");
        Failure::with_status(status, ErrorKind::Invalid, detail)
    }

    /// What is there is asked for by another method.
    pub fn wrong_method() -> Failure {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Failure::with_status(status, ErrorKind::Invalid, "no such method here")
    }

    /// Requests follow each other too fast.
    pub fn too_fast(who: &str, per_second: u32) -> Failure {
        let what = format!("{who} has at most {per_second} requests per second");
        Failure::with_status(StatusCode::TOO_MANY_REQUESTS, ErrorKind::Unavailable, what)
            .hint("try again in a moment")
    }

    fn with_status(status: StatusCode, kind: ErrorKind, detail: impl Into<String>) -> Failure {
        let problem = Box::new(Problem {
            about: "about:blank".into(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            kind: kind.as_str().into(),
            detail: detail.into(),
            hint: None,
            path: None,
        });
        Failure(problem, Figures::Told)
    }

    /// Adds how much disk space is missing.
    pub fn with_figures(mut self, runtime: &Runtime) -> Failure {
        if self.1 == Figures::Missing {
            self.0.detail = format!("{} ({})", runtime.shortage(), self.0.detail);
            self.1 = Figures::Told;
        }
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.0.hint = Some(hint.into());
        self
    }

    /// Names the vault path the request was about.
    pub fn at(mut self, path: &str) -> Failure {
        self.0.path = Some(path.to_owned());
        self
    }

    pub fn problem(&self) -> &Problem {
        &self.0
    }
}

/// The HTTP status of each kind.
fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::AlreadyExists | ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Denied | ErrorKind::NeedsApproval => StatusCode::FORBIDDEN,
        ErrorKind::Quota => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Corrupt | ErrorKind::Bug => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<avfs_runtime::Error> for Failure {
    fn from(mut error: avfs_runtime::Error) -> Failure {
        let status = match error {
            avfs_runtime::Error::ConditionFailed { .. } => StatusCode::PRECONDITION_FAILED,
            _ => status(error.kind()),
        };
        let mut failure = Failure::with_status(status, error.kind(), error.to_string());
        failure.0.hint = error.hint();
        if error.lacks_figures() {
            failure.1 = Figures::Missing;
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_an_error_status() {
        for kind in ErrorKind::ALL {
            let failure = Failure::new(kind, "x");
            assert!(failure.0.status >= 400, "{}", kind.as_str());
            assert_eq!(ErrorKind::parse(&failure.0.kind), Some(kind));
        }
    }
}
