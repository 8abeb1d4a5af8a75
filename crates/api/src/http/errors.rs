//! Failures as answers: problem+json.

use crate::ops::failure::Failure;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The media type of RFC 9457.
const MEDIA_TYPE: &str = "application/problem+json";

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem().status)
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(self.problem()).expect("a problem is plain text and numbers");
        let mut answer = (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let soon = header::HeaderValue::from_static("1");
            answer.headers_mut().insert(header::RETRY_AFTER, soon);
        }
        answer
    }
}
