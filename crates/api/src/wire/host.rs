//! Paths of the host in requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An absolute path of the host, which the daemon opens with its own rights.
///
/// Every field of a request that is a host path has this type, and no request of the agent class has such a field: a test
/// checks the types of all fields.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostPath(pub String);

impl HostPath {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for HostPath {
    fn from(text: String) -> HostPath {
        HostPath(text)
    }
}
