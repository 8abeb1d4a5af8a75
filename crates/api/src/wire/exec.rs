//! A command: the request, and the events while it runs. The answer is in `envelope.rs`.

use super::base64::Data;
use super::exec_options::{
    CheckpointAsk, DriverWord, ForkWord, LimitsAsk, NetworkName, ProfileWord, StdinItem, TtyAsk,
};
use super::{Base64, CallId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Runs a command: either `argv` or `shell`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// The program and its arguments, without a shell.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        default,
        alias = "command",
        deserialize_with = "super::words::bounded"
    )]
    pub argv: Vec<String>,
    /// All of `argv` exactly, if a part of it is not UTF-8.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "super::words::bounded_if_any"
    )]
    pub argv_b64: Option<Vec<Base64>>,
    /// Text for the shell instead of `argv`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shell: Option<String>,
    /// The directory in the vault that it runs in. Left out: `/workspace` if that exists, else `/`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
    /// The exact bytes of `cwd`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd_b64: Option<Base64>,
    /// Variables of its environment, which is never inherited.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub env: BTreeMap<String, String>,
    /// Variables whose value is not UTF-8.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub env_b64: BTreeMap<String, Base64>,
    /// Default: the vault's setting, else five minutes. 0: no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_ms: Option<u64>,
    /// How many bytes of each stream the envelope keeps. Default: 1 MiB; at most 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_limit: Option<usize>,
    /// Its standard input: here, or sent with [`ExecInput`]. Default: empty.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stdin: Option<StdinItem>,
    /// Runs it on a terminal: input is typed, and all output is `stdout`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tty: Option<TtyAsk>,
    /// `/` refuses writes.
    #[serde(skip_serializing_if = "is_false", default)]
    pub readonly: bool,
    /// Default: as the rules decide.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoint: Option<CheckpointAsk>,
    /// Runs it in a temporary fork. Default: in the vault itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fork: Option<ForkWord>,
    /// Its limits; missing ones are those of the profile or the vault's settings.
    #[serde(skip_serializing_if = "LimitsAsk::is_empty", default)]
    pub limits: LimitsAsk,
    /// A named set of limits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub profile: Option<ProfileWord>,
    /// What holds it. Left out: namespaces.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub driver: Option<DriverWord>,
    /// What it can reach. Left out: what the vault's setting `network` says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub network: Option<NetworkName>,
    /// Hosts that it can reach besides, as `example.com`, `*.example.com:8080`, `192.0.2.0/24` or `registries`. With the network `none`, only
    /// those.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub allow: Vec<String>,
    /// If it needs approval, waits for the answer.
    #[serde(skip_serializing_if = "is_false", default)]
    pub wait: bool,
    /// Uses this approval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approval: Option<String>,
    /// If it needs approval, runs it in a temporary fork and shows the result to the approver.
    #[serde(skip_serializing_if = "is_false", default)]
    pub speculate: bool,
    /// Adds a patch.
    #[serde(skip_serializing_if = "is_false", default)]
    pub patch: bool,
    /// Lists what changed in the home directory.
    #[serde(skip_serializing_if = "is_false", default)]
    pub list_home_changes: bool,
    /// How many changed paths the envelope lists, up to 10,000. Default: 1,000, in 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changes_limit: Option<usize>,
}

pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}

/// The events of an exec, in order.
#[derive(Clone, Debug)]
pub enum ExecEvent {
    /// The request was taken.
    Started(StartedEvent),
    /// Bytes of standard output.
    Stdout(OutputChunk),
    /// Bytes of standard error.
    Stderr(OutputChunk),
    /// The command waits for approval.
    Waiting(WaitingEvent),
}

/// The approval that the command waits for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WaitingEvent {
    /// The request for approval.
    pub approval_id: String,
}

/// The daemon has accepted the request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StartedEvent {
    /// The handle for [`ExecCancel`].
    pub call: CallId,
}

/// Output of the command: as `data` if it is UTF-8, else as `data_b64`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputChunk {
    /// Numbers the chunks of both streams together, from 1.
    pub seq: u64,
    #[serde(flatten)]
    data: Data,
}

impl OutputChunk {
    /// These bytes.
    pub fn new(seq: u64, bytes: &[u8]) -> OutputChunk {
        let data = Data::new(bytes.to_vec());
        OutputChunk { seq, data }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }
}

/// Sends a running exec its input, as the body of the request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecInput {
    /// The running exec.
    pub call: CallId,
}

/// The answer to [`ExecInput`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExecInputTaken {
    /// How much the command read before it ended or closed its input.
    pub bytes: u64,
}

/// Cancels a running exec; its caller still gets the envelope.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecCancel {
    /// The running exec.
    pub call: CallId,
    /// With SIGINT, as Ctrl-C does; otherwise as if its caller had disconnected.
    #[serde(default)]
    pub interrupt: bool,
}

/// Resizes the terminal of a running exec.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecResize {
    /// The running exec.
    pub call: CallId,
    /// Lines of the terminal.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// The answer to [`ExecCancel`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExecCancelled {
    /// False if that exec had ended already.
    pub cancelled: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_keeps_its_bytes() {
        for bytes in [b"text".as_slice(), b"\xff\x00", b""] {
            let chunk = OutputChunk::new(1, bytes);
            let text = serde_json::to_string(&chunk).unwrap();
            let back: OutputChunk = serde_json::from_str(&text).unwrap();
            assert_eq!(back.bytes(), bytes);
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(serde_json::from_str::<Exec>(r#"{"argv":["true"],"sudo":true}"#).is_err());
    }
}
