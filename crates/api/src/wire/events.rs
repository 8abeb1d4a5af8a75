//! Changes of all vaults, as they happen.

use super::JournalItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Follows the changes of every vault that the caller may reach, as events; the id of each is the position to continue
/// from. Without events it is one page.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Only entries of the journal with a larger id; 0 is all of them. Default: those from now on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<u64>,
    /// Waits up to this time until there is an entry; at most half a minute. For a page only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wait_ms: Option<u64>,
}

/// A page of [`Events`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventsPage {
    /// The oldest first.
    pub entries: Vec<JournalItem>,
    /// The position behind them, to continue from.
    pub after: u64,
    /// Whether there is more at once.
    pub more: bool,
}

/// Where a stream of changes begins: its first event.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventsReady {
    /// The id of the last entry that is not in the stream.
    pub after: u64,
}
