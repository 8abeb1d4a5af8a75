//! The header for a vault with uncommitted writes: readers get its head.

use crate::ops::app::App;
use crate::ops::caller::Caller;
use crate::ops::parse_vault;
use crate::wire::UNCOMMITTED_HEADER;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Answers, and adds the header if there are uncommitted writes.
pub(crate) async fn note_uncommitted(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>();
    let (uri, by) = (request.uri().clone(), caller.map(|it| it.principal));
    let mut answer = next.run(request).await;
    if !app.runtime.may_have_uncommitted() {
        return answer;
    }
    let vault = uri.path().strip_prefix("/v1/vaults/");
    let vault = vault.and_then(|rest| rest.split('/').next());
    let vault = vault.and_then(|name| parse_vault(name).ok());
    let (Some(vault), Some(by), true) = (vault, by, answer.status().is_success()) else {
        return answer;
    };
    let session = app.runtime.by(by);
    let looking = spawn_blocking(move || session.uncommitted_note(&vault));
    if let Ok(Some(note)) = looking.await
        && let Ok(note) = HeaderValue::from_str(&one_line(&note))
    {
        answer.headers_mut().insert(UNCOMMITTED_HEADER, note);
    }
    answer
}

/// Makes text fit into a header.
fn one_line(text: &str) -> String {
    let plain = |symbol: char| match symbol {
        ' '..='~' => symbol,
        _ => '?',
    };
    text.chars().map(plain).collect()
}
