//! An error: RFC 9457 problem details with our kind and hint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went wrong with a request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Always `about:blank`: `kind` identifies the error.
    #[serde(rename = "type")]
    pub about: String,
    /// What the status is called in HTTP.
    pub title: String,
    /// The status in HTTP.
    pub status: u16,
    /// One of the closed list of error kinds.
    pub kind: String,
    /// What failed, with the value.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// The vault path of the request, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
}
