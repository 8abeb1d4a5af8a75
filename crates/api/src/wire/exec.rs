//! An exec: the request, the events while it runs, and the envelope.

use super::RetriedWord;
use super::base64::Data;
use super::exec_options::{
    CheckpointAsk, DriverWord, ForkWord, LimitsAsk, NetworkWord, ProfileWord, StdinItem, TtyAsk,
};
use super::{Base64, CallId, ChangeItem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Runs a command: either `argv` or `shell`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        default,
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
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd_b64: Option<Base64>,
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
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub profile: Option<ProfileWord>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub driver: Option<DriverWord>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub network: Option<NetworkWord>,
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
}

pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}

/// The events of an exec, in order.
#[derive(Clone, Debug)]
pub enum ExecEvent {
    Started(StartedEvent),
    Stdout(OutputChunk),
    Stderr(OutputChunk),
    /// The command waits for approval.
    Waiting(WaitingEvent),
}

/// The approval that the command waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WaitingEvent {
    pub approval_id: String,
}

/// The daemon has accepted the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartedEvent {
    /// The handle for [`ExecCancel`].
    pub call: CallId,
}

/// Output of the command: as `data` if it is UTF-8, else as `data_b64`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputChunk {
    /// Numbers the chunks of both streams together, from 1.
    pub seq: u64,
    #[serde(flatten)]
    data: Data,
}

impl OutputChunk {
    pub fn new(seq: u64, bytes: &[u8]) -> OutputChunk {
        let data = Data::new(bytes.to_vec());
        OutputChunk { seq, data }
    }

    pub fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }
}

/// Sends a running exec its input, as the body of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecInput {
    pub call: CallId,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecInputTaken {
    /// How much the command read before it ended or closed its input.
    pub bytes: u64,
}

/// Cancels a running exec; its caller still gets the envelope.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecCancel {
    pub call: CallId,
    /// With SIGINT, as Ctrl-C does; otherwise as if its caller had disconnected.
    #[serde(default)]
    pub interrupt: bool,
}

/// Resizes the terminal of a running exec.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecResize {
    pub call: CallId,
    pub rows: u16,
    pub columns: u16,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecCancelled {
    /// False if that exec had ended already.
    pub cancelled: bool,
}

/// The answer to every exec, whatever the outcome.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Envelope {
    pub schema_version: u32,
    pub kind: String,
    pub success: bool,
    pub request: EnvelopeRequest,
    pub result: EnvelopeResult,
}

impl Envelope {
    pub const SCHEMA_VERSION: u32 = 1;
    pub const KIND: &str = "proxy_exec_result";
}

/// The request, with every default filled in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnvelopeRequest {
    pub vault: String,
    pub cwd: String,
    pub readonly: bool,
    pub keep_mount: bool,
    pub mountpoint: Option<String>,
    pub checkpoint_mode: String,
    pub command: String,
    pub command_mode: CommandMode,
    pub timeout: TimeoutItem,
    pub driver: DriverWord,
    pub network: NetworkWord,
    pub profile: Option<ProfileWord>,
    pub limits: LimitsAsk,
    pub fork: Option<ForkWord>,
    pub output_limit: usize,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub argv: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub argv_b64: Option<Vec<Base64>>,
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandMode {
    Argv,
    Shell,
}

/// `{"millis": N}`, or `"none"`.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TimeoutItem {
    After { millis: u64 },
    Never(Never),
}

impl TimeoutItem {
    pub const NONE: TimeoutItem = TimeoutItem::Never(Never::None);
}

#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum Never {
    #[serde(rename = "none")]
    None,
}

/// How the command ended, or why it did not start.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    Exited,
    Signaled,
    /// Killed because it, or something it started, exceeded its memory.
    OutOfMemory,
    /// Killed for exceeding another limit.
    LimitExceeded,
    TimedOut,
    Cancelled,
    Denied,
    NeedsApproval,
    NotFound,
    CouldNotStart,
    Interrupted,
}

/// The result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnvelopeResult {
    pub exec: String,
    pub vault: String,
    pub mountpoint: String,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd_b64: Option<Base64>,
    pub command: String,
    pub status: StatusWord,
    /// From the kernel: null if the command did not exit by itself.
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Why the command could not start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    pub stdout: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stdout_b64: Option<Base64>,
    pub stderr: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stderr_b64: Option<Base64>,
    /// How much the command wrote in total, and whether the text above is cut.
    pub output: OutputCounts,
    pub readonly: bool,
    pub kept_mounted: bool,
    pub duration_ms: u64,
    pub checkpoint: Option<String>,
    pub changed_files: Vec<String>,
    /// All of `changed_files` exactly, if one of them is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changed_files_b64: Option<Vec<Base64>>,
    pub changes: Vec<ChangeItem>,
    /// How many paths differ; a rename counts with both its names.
    #[serde(default)]
    pub changes_total: u64,
    /// Whether the list is cut at 10,000. `avfs diff` has the rest.
    #[serde(skip_serializing_if = "is_false", default)]
    pub changes_truncated: bool,
    /// The changes as a unified diff, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub patch: Option<String>,
    /// Whether the patch is cut at 2 MiB.
    #[serde(skip_serializing_if = "is_false", default)]
    pub patch_truncated: bool,
    pub home_changes: u64,
    /// The list of them, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub home_change_list: Option<Vec<ChangeItem>>,
    /// The version that this exec made; null if it changed nothing.
    pub version: Option<u64>,
    /// Why the writes of the command are not committed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uncommitted: Option<UncommittedItem>,
    pub decision: DecisionItem,
    /// The approval that was requested or used.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approval_id: Option<String>,
    /// The result of a speculative run; the vault is not changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speculation: Option<SpeculationItem>,
    /// `completed` if the command ran to its end, else `failed`.
    pub state: String,
    pub timed_out: bool,
    pub skipped: Vec<SkippedItem>,
    pub driver: DriverWord,
    /// The isolation: an object, or `"none"`; null if the command did not run.
    pub isolation: Option<serde_json::Value>,
    /// The limits in force, and what enforced each.
    pub limits: Vec<LimitItem>,
    /// The limit for which the command, or something it started, was killed.
    pub limit_hit: Option<LimitHit>,
    pub usage: Option<UsageItem>,
    /// The fork it ran in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fork: Option<ForkItem>,
    /// Processes that were still running at the command's end and were killed.
    pub leftovers: u32,
    /// Execs that ran in the same vault meanwhile; their changes may be among these.
    pub shared_with: Vec<String>,
    /// What was retried because a process of avfs had died.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub retried: Vec<RetriedWord>,
    pub timings: TimingItem,
}

/// The result of a command in a temporary fork.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpeculationItem {
    pub status: StatusWord,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub changed_files: Vec<String>,
    pub changes: Vec<ChangeItem>,
    /// How many paths differ; a rename counts with both its names.
    #[serde(default)]
    pub changes_total: u64,
    /// Whether the list is cut at 10,000. `avfs diff` has the rest.
    #[serde(skip_serializing_if = "is_false", default)]
    pub changes_truncated: bool,
    pub duration_ms: u64,
}

/// Uncommitted writes of a command, and what to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UncommittedItem {
    /// The kind of error, such as `Quota`.
    pub error: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// The checkpoint with them; without one, they are still in the vault's layer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoint: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputCounts {
    pub stdout: ByteCounts,
    pub stderr: ByteCounts,
}

#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
pub struct ByteCounts {
    pub bytes: u64,
    pub truncated: bool,
    /// How many bytes from the start `avfs output` has.
    pub spilled: u64,
}

/// A limit in force.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitItem {
    pub limit: String,
    pub value: f64,
    pub enforced_by: String,
    /// The source: `request`, `vault`, or `default`, which protects the host.
    pub source: String,
}

/// The limit that ended something.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitHit {
    pub limit: String,
    pub enforced_by: String,
}

/// What the command and all it started used.
#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
pub struct UsageItem {
    pub user_us: u64,
    pub system_us: u64,
    /// The largest resident set of one process.
    pub max_rss_kib: u64,
    /// From and to devices, without the page cache.
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// The fork a command ran in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForkItem {
    pub name: String,
    /// Whether it was kept.
    pub kept: bool,
}

/// The decision, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionItem {
    pub action: String,
    pub categories: Vec<String>,
    pub reason: Option<String>,
    /// The rule that decided.
    pub rule: String,
    /// The smallest rule that would let the command run, if it does not.
    pub smallest_rule: Option<String>,
    /// Every simple command found in the request.
    pub parts: Vec<DecisionPart>,
}

/// The decision on one simple command of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionPart {
    pub command: String,
    pub action: String,
    pub categories: Vec<String>,
    pub rule: String,
}

/// Something that is not stored, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SkippedItem {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub reason: String,
}

/// The time of each step, in microseconds.
#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
pub struct TimingItem {
    pub decide_us: u64,
    pub checkpoint_us: u64,
    pub view_us: u64,
    pub run_us: u64,
    pub commit_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_an_object_or_the_word_none() {
        let after = serde_json::to_string(&TimeoutItem::After { millis: 5 }).unwrap();
        assert_eq!(after, r#"{"millis":5}"#);
        let none = serde_json::to_string(&TimeoutItem::NONE).unwrap();
        assert_eq!(none, r#""none""#);
        assert_eq!(
            serde_json::from_str::<TimeoutItem>(&none).unwrap(),
            TimeoutItem::NONE
        );
        assert!(serde_json::from_str::<TimeoutItem>(r#""never""#).is_err());
    }

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
