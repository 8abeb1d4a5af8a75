//! What a call of a tool is answered with: within a budget of tokens, and with the next step where something failed.

use super::schema;
use crate::ops::failure::Failure;
use crate::wire::Problem;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Resource};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// Tokens in an answer, where nobody says how many.
pub(crate) const TOKENS: usize = 8_000;
/// The most that can be asked for.
pub(crate) const TOKENS_MAX: usize = 100_000;
/// What a token of text or code has on average, rather too few than too many.
const BYTES_OF_A_TOKEN: usize = 4;

/// How many bytes of text fit a budget.
pub(crate) fn bytes_of(tokens: Option<usize>) -> usize {
    tokens.unwrap_or(TOKENS).clamp(100, TOKENS_MAX) * BYTES_OF_A_TOKEN
}

/// Something that a tool can answer.
pub(crate) trait Reply: Send {
    /// What it looks like, where it has a fixed shape.
    fn schema() -> Option<JsonObject>;

    fn reply(self) -> CallToolResult;
}

/// An object of a known shape: structured, and as text for clients that know no other.
pub(crate) struct Object<T>(pub T);

impl<T: Serialize + JsonSchema + Send> Reply for Object<T> {
    fn schema() -> Option<JsonObject> {
        Some(schema::output::<T>())
    }

    fn reply(self) -> CallToolResult {
        structured(&self.0)
    }
}

fn structured(value: &impl Serialize) -> CallToolResult {
    let value = serde_json::to_value(value).expect("answers are plain data");
    let mut result = CallToolResult::success(vec![ContentBlock::text(value.to_string())]);
    result.structured_content = Some(value);
    result
}

/// An object that may not be what was hoped for, and links to more.
pub(crate) struct Outcome<T> {
    pub said: T,
    /// Whether nothing was done.
    pub failed: bool,
    pub links: Vec<Resource>,
}

impl<T: Serialize + JsonSchema + Send> Reply for Outcome<T> {
    fn schema() -> Option<JsonObject> {
        Some(schema::output::<T>())
    }

    fn reply(self) -> CallToolResult {
        let mut result = structured(&self.said);
        result.is_error = Some(self.failed);
        let links = self.links.into_iter().map(ContentBlock::resource_link);
        result.content.extend(links);
        result
    }
}

/// JSON of one shape or another. Lists are text alone: for older clients they can be no structured content.
pub(crate) struct Json(pub Value);

impl Reply for Json {
    fn schema() -> Option<JsonObject> {
        None
    }

    fn reply(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.0.to_string())]);
        result.structured_content = self.0.is_object().then_some(self.0);
        result
    }
}

/// A sentence, or the content of a file.
pub(crate) struct Plain(pub String);

impl Reply for Plain {
    fn schema() -> Option<JsonObject> {
        None
    }

    fn reply(self) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::text(self.0)])
    }
}

/// What a command wrote, as text, and how it ended.
pub(crate) struct Output {
    pub text: String,
    pub value: Value,
}

impl Reply for Output {
    fn schema() -> Option<JsonObject> {
        None
    }

    fn reply(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(self.value);
        result
    }
}

/// A failure that the model is to read: its kind as on every surface, and what to call next.
pub(crate) fn failed(failure: &Failure, next: Option<String>) -> CallToolResult {
    let problem = failure.problem();
    CallToolResult::error(vec![ContentBlock::text(told(problem, next).to_string())])
}

/// A problem in few words.
pub(crate) fn told(problem: &Problem, next: Option<String>) -> Value {
    let mut told = json!({ "error": problem.kind, "message": problem.detail });
    let more = [
        ("hint", problem.hint.clone()),
        ("path", problem.path.clone()),
        ("next", next),
    ];
    for (key, text) in more {
        if let Some(text) = text {
            told[key] = Value::String(text);
        }
    }
    told
}

/// The head and the tail of a stream, with a line between them that says what is missing.
pub(crate) fn with_gap(kept: &[u8], limit: usize, total: u64, how: &str) -> String {
    let head = (limit / 2).min(kept.len());
    let (head, tail) = kept.split_at(head);
    let missing = total.saturating_sub(kept.len() as u64);
    format!(
        "{}\n[{missing} bytes left out; {how}]\n{}",
        String::from_utf8_lossy(head),
        String::from_utf8_lossy(tail)
    )
}

/// As many items as fit the budget, and whether that is all of them.
pub(crate) fn fitting<T: Serialize>(mut items: Vec<T>, bytes: usize) -> (Vec<T>, bool) {
    let mut size = 0;
    let fits = |item: &T| {
        size += serde_json::to_string(item).map_or(0, |text| text.len()) + 1;
        size <= bytes
    };
    let kept = items.iter().map(fits).take_while(|fits| *fits).count();
    let whole = kept == items.len();
    items.truncate(kept);
    (items, whole)
}

/// The word that a value is on the wire.
pub(crate) fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// The beginning of a text that fits so many bytes, cut where a character ends.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told() {
        let items: Vec<u32> = (0..1000).collect();
        let (kept, whole) = fitting(items, 30);
        assert!(!whole && kept.len() > 5 && kept.len() < 20, "{kept:?}");
        assert_eq!(fitting(vec![1, 2], 30), (vec![1, 2], true));
    }

    #[test]
    fn a_gap_is_between_head_and_tail() {
        let text = with_gap(b"aaaabbbb", 8, 100, "read more");
        assert_eq!(text, "aaaa\n[92 bytes left out; read more]\nbbbb");
        assert_eq!(beginning("aä€", 2), "a");
    }
}
