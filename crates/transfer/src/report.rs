//! What every report may list.

use serde::{Deserialize, Serialize};

/// Something that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Relative to the directory that is copied.
    pub path: Vec<u8>,
    pub reason: String,
}
