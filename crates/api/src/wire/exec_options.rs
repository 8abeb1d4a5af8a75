//! Options of an exec.

use super::Base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The standard input of a command.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StdinItem {
    /// This text.
    Text(String),
    /// These bytes.
    Base64(Base64),
    /// Sent with [`super::ExecInput`] while it runs.
    Live,
}

/// The terminal of a command.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TtyAsk {
    /// Lines of the terminal.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
    /// The variable TERM, unless `env` sets it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub term: Option<String>,
}

/// The size of a terminal, in characters.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowItem {
    /// Lines of the terminal.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// Whether a checkpoint is taken before a command.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointAsk {
    /// As the rules decide.
    Auto,
    /// Always, and it is kept.
    Named(String),
    /// Never: for the owner only.
    Never,
}

/// Whether the fork of a command is kept.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForkWord {
    /// It is deleted.
    Discard,
    /// It is kept if the command exits with 0.
    KeepOnSuccess,
}

/// A named set of limits.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProfileWord {
    /// For what nobody trusts.
    Restrictive,
    /// For ordinary work.
    Moderate,
    /// For builds that need much.
    Permissive,
}

/// The driver of a command.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverWord {
    /// Namespaces, Landlock and seccomp.
    #[default]
    Namespace,
    /// No isolation: for the owner only.
    Process,
}

/// The network that is asked for. A list of hosts stands beside it.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkName {
    /// Nothing but a loopback interface of its own.
    None,
    /// The host's network: for the owner only.
    Host,
    /// Every host, and the report has the smallest list that would have been enough: for the owner only.
    Observe,
}

/// The kind of network of a command.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkWord {
    /// Nothing but a loopback interface of its own.
    #[default]
    None,
    /// The hosts on a list.
    Listed,
    /// The host's network.
    Host,
    /// Every host, and what it reaches is recorded.
    Observe,
}

/// Limits; missing ones are not set here.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Reads a part of the output of a command that did not fit into its envelope.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The id of the exec.
    pub exec: String,
    /// Which stream.
    pub stream: StreamWord,
    /// The first byte.
    #[serde(default)]
    pub from: u64,
    /// The byte after the last one. Default: as much as fits into one answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<u64>,
}

/// One of the two streams that a command writes to.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamWord {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A part of the output of a command. It may be shorter than requested: continue at its end.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputPart {
    /// The id of the exec.
    pub exec: String,
    /// Which stream.
    pub stream: StreamWord,
    /// The first byte of this part.
    pub from: u64,
    /// The byte after the last one of this part.
    pub to: u64,
    /// How many bytes are kept.
    pub kept: u64,
    /// The part.
    pub data: String,
    /// The exact bytes of `data`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub data_b64: Option<Base64>,
}

/// How commands were stopped while the state was read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FreezeItem {
    /// `sigstop`, or `none` if they could not be stopped.
    pub method: String,
    /// Execs that were running.
    pub commands: usize,
    /// `moment`: all files as they were at one moment. `per_file`: each as it was when it was read.
    pub consistency: String,
}
