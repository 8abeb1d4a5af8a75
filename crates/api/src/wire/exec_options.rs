//! What the caller of an exec may choose.

use super::Base64;
use serde::{Deserialize, Serialize};

/// What a command reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinItem {
    /// This text.
    Text(String),
    /// These bytes.
    Base64(Base64),
    /// What [`super::ExecInput`] brings while it runs.
    Live,
}

/// Whether the state before a command gets a name.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointAsk {
    /// As policy decides.
    Auto,
    /// Always, and it is kept.
    Named(String),
    /// Not at all: for the owner alone.
    Never,
}

/// What becomes of the fork a command runs in.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForkWord {
    /// It goes away.
    Discard,
    /// It stays if the command exits with 0.
    KeepOnSuccess,
}

/// A named set of limits.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileWord {
    Restrictive,
    Moderate,
    Permissive,
}

/// What holds a command.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverWord {
    #[default]
    Namespace,
    /// Nothing but policy and timeouts: for the owner alone.
    Process,
}

/// What a command can reach.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkWord {
    #[default]
    None,
    /// Whatever the host can: for the owner alone.
    Host,
}

/// Limits; what is left out is not limited, or limited by something else.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsAsk {
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory: Option<u64>,
    /// Processors, 0.5 being half of one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpus: Option<f64>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pids: Option<u32>,
    /// Bytes by which the vault and its `/tmp` may grow.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk: Option<u64>,
}

impl LimitsAsk {
    pub(super) fn is_empty(&self) -> bool {
        *self == LimitsAsk::default()
    }
}
