//! The answer to every exec: what was asked, what was decided, and what happened.

use super::exec::is_false;
use super::exec_options::{DriverWord, ForkWord, LimitsAsk, NetworkWord, ProfileWord};
use super::network::NetworkUse;
use super::{Base64, ChangeItem, IgnoredChanges, RetriedWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer to every exec, whatever the outcome.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// The version of its shape.
    pub schema_version: u32,
    /// The word by which it is known.
    pub kind: String,
    /// Whether the command ran and exited with 0.
    pub success: bool,
    /// What was asked.
    pub request: EnvelopeRequest,
    /// What happened.
    pub result: EnvelopeResult,
}

impl Envelope {
    /// The version of its shape.
    pub const SCHEMA_VERSION: u32 = super::SCHEMA_VERSION;
    /// The word by which it is known.
    pub const KIND: &str = "proxy_exec_result";
    /// What `shared_with` calls the programs of the host in a mount of the vault.
    pub const SHARED_WITH_MOUNT: &str = "mount";
}

/// The request, with every default filled in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnvelopeRequest {
    /// The name of the vault.
    pub vault: String,
    /// The directory in the vault that the command runs in.
    pub cwd: String,
    /// Whether `/` refused writes.
    pub readonly: bool,
    /// Always false.
    pub keep_mount: bool,
    /// Always null.
    pub mountpoint: Option<String>,
    /// Whether the state before was to get a name.
    pub checkpoint_mode: String,
    /// The command, as one line.
    pub command: String,
    /// Whether it was words or text for the shell.
    pub command_mode: CommandMode,
    /// How long it might run.
    pub timeout: TimeoutItem,
    /// What holds it.
    pub driver: DriverWord,
    /// What it can reach.
    pub network: NetworkWord,
    /// The hosts on its list.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub network_hosts: Vec<String>,
    /// The named set of limits that was asked for.
    pub profile: Option<ProfileWord>,
    /// The limits that were asked for.
    pub limits: LimitsAsk,
    /// What was to become of a fork made for it.
    pub fork: Option<ForkWord>,
    /// How many bytes of each stream were to be kept.
    pub output_limit: usize,
    /// The program and its arguments.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub argv: Option<Vec<String>>,
    /// All of `argv` exactly, when a part of it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub argv_b64: Option<Vec<Base64>>,
}

/// How a command was given.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandMode {
    /// As words.
    Argv,
    /// As text for the shell.
    Shell,
}

/// `{"millis": N}`, or `"none"`.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TimeoutItem {
    /// After so many milliseconds.
    After {
        /// How many.
        millis: u64,
    },
    /// Not at all.
    Never(Never),
}

impl TimeoutItem {
    /// No limit.
    pub const NONE: TimeoutItem = TimeoutItem::Never(Never::None);
}

/// The word for no limit.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Never {
    /// `none`.
    #[serde(rename = "none")]
    None,
}

/// How the command ended, or why it did not start.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    /// It exited by itself.
    Exited,
    /// A signal ended it.
    Signaled,
    /// Killed because it, or something it started, exceeded its memory.
    OutOfMemory,
    /// Killed for exceeding another limit.
    LimitExceeded,
    /// It took too long and was ended.
    TimedOut,
    /// Its caller ended it.
    Cancelled,
    /// The policy did not let it run.
    Denied,
    /// Somebody has to approve it first.
    NeedsApproval,
    /// There is no such program.
    NotFound,
    /// It could not be started.
    CouldNotStart,
    /// agentvfs itself ended under it.
    Interrupted,
}

/// What the kernel said of the end of a command, and the reason for it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    /// From the kernel: null if the command did not exit by itself, or not yet.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it could not start, why it was ended, or what went wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// The result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnvelopeResult {
    /// The id of the exec.
    pub exec: String,
    /// The name of the vault.
    pub vault: String,
    /// Always `/`.
    pub mountpoint: String,
    /// The directory in the vault that it ran in.
    pub cwd: String,
    /// The exact bytes of `cwd`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd_b64: Option<Base64>,
    /// The command, as one line.
    pub command: String,
    /// How it ended, or why it never began.
    pub status: StatusWord,
    /// What the kernel said of its end, and the reason for it.
    #[serde(flatten)]
    pub ending: Ending,
    /// What it wrote to standard output, as far as it is kept.
    pub stdout: String,
    /// The exact bytes of `stdout`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stdout_b64: Option<Base64>,
    /// What it wrote to standard error, as far as it is kept.
    pub stderr: String,
    /// The exact bytes of `stderr`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stderr_b64: Option<Base64>,
    /// How much the command wrote in total, and whether the text above is cut.
    pub output: OutputCounts,
    /// In how many places of its output the value of a secret was masked, by as many asterisks as it has characters.
    #[serde(default)]
    pub masked: u64,
    /// What it tried to reach.
    #[serde(default)]
    pub network: NetworkUse,
    /// Whether `/` refused writes.
    pub readonly: bool,
    /// Always false.
    pub kept_mounted: bool,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The checkpoint of the state before.
    pub checkpoint: Option<String>,
    /// The paths that differ from before, without those of its home directory.
    pub changed_files: Vec<String>,
    /// All of `changed_files` exactly, if one of them is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changed_files_b64: Option<Vec<Base64>>,
    /// What differs, path by path.
    pub changes: Vec<ChangeItem>,
    /// How many paths differ, without those of `ignored_changes`; a rename counts with both its names.
    #[serde(default)]
    pub changes_total: u64,
    /// Whether the lists are cut: at the requested number of paths, else at 1,000 paths or 64 KiB. `avfs changes` has all.
    #[serde(skip_serializing_if = "is_false", default)]
    pub changes_truncated: bool,
    /// What differs and is not listed, by directory: what ignore rules name, and caches in the home directory. The
    /// directories beyond the first 100 are counted as `other`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub ignored_changes: IgnoredChanges,
    /// The changes as a unified diff, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub patch: Option<String>,
    /// Whether the patch is cut at 2 MiB.
    #[serde(skip_serializing_if = "is_false", default)]
    pub patch_truncated: bool,
    /// How many paths of its home directory differ, without caches.
    pub home_changes: u64,
    /// The list of them, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub home_change_list: Option<Vec<ChangeItem>>,
    /// The version that this exec made; null if it changed nothing.
    pub version: Option<u64>,
    /// Why the writes of the command are not committed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uncommitted: Option<UncommittedItem>,
    /// What policy said.
    pub decision: DecisionItem,
    /// The approval that was requested or used.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approval_id: Option<String>,
    /// The result of a speculative run; the vault is not changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speculation: Option<SpeculationItem>,
    /// `completed` if the command ran to its end, `timed_out` if it took too long, else `failed`.
    pub state: String,
    /// Whether it took too long and was ended.
    pub timed_out: bool,
    /// What it wrote that no vault can hold.
    pub skipped: Vec<SkippedItem>,
    /// What held it.
    pub driver: DriverWord,
    /// The isolation: an object, or `"none"`; null if the command did not run.
    pub isolation: Option<serde_json::Value>,
    /// The limits in force, and what enforced each.
    pub limits: Vec<LimitItem>,
    /// The limit for which the command, or something it started, was killed.
    pub limit_hit: Option<LimitHit>,
    /// What it used; null when it never ran.
    pub usage: Option<UsageItem>,
    /// The fork it ran in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fork: Option<ForkItem>,
    /// Processes that were still running at the command's end and were ended: by SIGTERM, and two seconds later by SIGKILL. A
    /// job goes on: `avfs job start`.
    pub leftovers: u32,
    /// Execs that ran in the same vault meanwhile, and `mount` if it was mounted read-write; their changes may be among these.
    pub shared_with: Vec<String>,
    /// What was retried because a process of avfs had died.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub retried: Vec<RetriedWord>,
    /// Where the time went.
    pub timings: TimingItem,
}

/// The result of a command in a temporary fork.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SpeculationItem {
    /// How it ended.
    pub status: StatusWord,
    /// Its exit code; null when it did not exit by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote to standard output, as far as it is kept.
    pub stdout: String,
    /// What it wrote to standard error, as far as it is kept.
    pub stderr: String,
    /// The paths that differ.
    pub changed_files: Vec<String>,
    /// What differs, path by path.
    pub changes: Vec<ChangeItem>,
    /// How many paths differ; a rename counts with both its names.
    #[serde(default)]
    pub changes_total: u64,
    /// Whether the lists are cut. `avfs approval show` has more.
    #[serde(skip_serializing_if = "is_false", default)]
    pub changes_truncated: bool,
    /// What differs and is not listed, by directory.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub ignored_changes: IgnoredChanges,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
}

/// Uncommitted writes of a command, and what to do.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UncommittedItem {
    /// The kind of error, such as `Quota`.
    pub error: String,
    /// What is wrong.
    pub message: String,
    /// One thing to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// The checkpoint with them; without one, they are still in the vault's layer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoint: Option<String>,
}

/// How much a command wrote.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputCounts {
    /// To standard output.
    pub stdout: ByteCounts,
    /// To standard error.
    pub stderr: ByteCounts,
}

/// How much a command wrote to one stream.
#[derive(Copy, Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ByteCounts {
    /// How much it wrote.
    pub bytes: u64,
    /// Whether some of it is left out.
    pub truncated: bool,
    /// How many bytes from the start `avfs output` has.
    pub spilled: u64,
}

/// A limit in force.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LimitItem {
    /// Which limit.
    pub limit: String,
    /// How much.
    pub value: f64,
    /// What enforces it.
    pub enforced_by: String,
    /// The source: `request`, `vault`, or `default`, which protects the host.
    pub source: String,
}

/// The limit that ended something.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LimitHit {
    /// Which limit.
    pub limit: String,
    /// What enforced it.
    pub enforced_by: String,
}

/// What the command and all it started used.
#[derive(Copy, Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UsageItem {
    /// Processor time in programs, in microseconds.
    pub user_us: u64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: u64,
    /// The largest resident set of one process.
    pub max_rss_kib: u64,
    /// From and to devices, without the page cache.
    pub read_bytes: u64,
    /// To devices.
    pub written_bytes: u64,
}

/// The fork a command ran in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ForkItem {
    /// Its name.
    pub name: String,
    /// Whether it was kept.
    pub kept: bool,
}

/// The decision, and why.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecisionItem {
    /// What is to be done: `allow`, `allow_with_checkpoint`, `require_approval` or `deny`.
    pub action: String,
    /// What the command is taken for.
    pub categories: Vec<String>,
    /// Why, where the rule says so.
    pub reason: Option<String>,
    /// The rule that decided.
    pub rule: String,
    /// The smallest rule that would let the command run, if it does not.
    pub smallest_rule: Option<String>,
    /// Every simple command found in the request.
    pub parts: Vec<DecisionPart>,
}

/// The decision on one simple command of the request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecisionPart {
    /// The command, as one line.
    pub command: String,
    /// What is to be done: `allow`, `allow_with_checkpoint`, `require_approval` or `deny`.
    pub action: String,
    /// What the command is taken for.
    pub categories: Vec<String>,
    /// The rule that decided.
    pub rule: String,
}

/// Something that is not stored, and why.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SkippedItem {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Why it is not kept.
    pub reason: String,
}

/// The time of each step, in microseconds.
#[derive(Copy, Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TimingItem {
    /// Deciding.
    pub decide_us: u64,
    /// The checkpoint.
    pub checkpoint_us: u64,
    /// Opening the view.
    pub view_us: u64,
    /// The command.
    pub run_us: u64,
    /// Taking its work into the vault.
    pub commit_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text that older programs wrote and read: its fields, their order, and what is left out.
    #[test]
    fn a_result_is_written_as_ever() {
        let head = r#"{"exec":"e","vault":"v","mountpoint":"/","cwd":"/","command":"c","status":"#;
        let tail = r#""stdout":"o","stderr":"","output":{"stdout":{"bytes":1,"truncated":false,"spilled":0},"stderr":{"bytes":0,"truncated":false,"spilled":0}},"masked":0,"network":{"allowed":[],"denied":[]},"readonly":false,"kept_mounted":false,"duration_ms":1,"checkpoint":null,"changed_files":[],"changes":[],"changes_total":0,"home_changes":0,"version":null,"decision":{"action":"allow","categories":[],"reason":null,"rule":"r","smallest_rule":null,"parts":[]},"state":"failed","timed_out":false,"skipped":[],"driver":"namespace","isolation":null,"limits":[],"limit_hit":null,"usage":null,"leftovers":0,"shared_with":[],"timings":{"decide_us":1,"checkpoint_us":0,"view_us":0,"run_us":0,"commit_us":0}}"#;
        for ending in [
            r#""exited","exit_code":7,"signal":null,"#,
            r#""signaled","exit_code":null,"signal":9,"#,
            r#""could_not_start","exit_code":null,"signal":null,"reason":"it is no program","#,
        ] {
            let text = format!("{head}{ending}{tail}");
            let result: EnvelopeResult = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&result).unwrap(), text);
        }
    }

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
}
