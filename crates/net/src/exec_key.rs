//! How a command is named.

use serde::Serialize;

/// A command, as the caller numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ExecKey(pub u128);
