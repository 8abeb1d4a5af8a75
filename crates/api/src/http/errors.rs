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
        let more = match status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                Some((header::RETRY_AFTER, "1"))
            }
            StatusCode::UNAUTHORIZED => {
                Some((header::WWW_AUTHENTICATE, "Bearer realm=\"agentvfs\""))
            }
            _ => None,
        };
        if let Some((name, value)) = more {
            let value = header::HeaderValue::from_static(value);
            answer.headers_mut().insert(name, value);
        }
        answer
    }
}
