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

/// The terminal a command is to have.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TtyAsk {
    pub rows: u16,
    pub columns: u16,
    /// What kind it is: the variable TERM, unless `env` sets it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub term: Option<String>,
}

/// The size of a terminal, in characters.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct WindowItem {
    pub rows: u16,
    pub columns: u16,
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

/// Asks for a part of what a command wrote beyond what its envelope holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    pub exec: String,
    pub stream: StreamWord,
    /// The first byte.
    #[serde(default)]
    pub from: u64,
    /// The byte after the last one. Left out: as much as fits one answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<u64>,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamWord {
    Stdout,
    Stderr,
}

/// A part of what a command wrote. It may be shorter than what was asked for: ask again from its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputPart {
    pub exec: String,
    pub stream: StreamWord,
    pub from: u64,
    /// The byte after the last one of this part.
    pub to: u64,
    /// How many bytes are kept.
    pub kept: u64,
    pub data: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub data_b64: Option<Base64>,
}

/// How commands were held still while the state was taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FreezeItem {
    /// `sigstop`, or `none` when they could not be stopped.
    pub method: String,
    /// Execs that were running.
    pub commands: usize,
    /// `moment`: all files as they were at one moment. `per_file`: each as it was when it was read.
    pub consistency: String,
}
