//! What every report may list.

/// Something that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Relative to the directory that is copied.
    pub path: Vec<u8>,
    pub reason: String,
}
