//! What an exec reports: the truth of one command, whatever became of it.

use std::time::Duration;

use avfs_policy::{Decision, Hint, Host, HostRule};
use avfs_sandbox::{Enforced, Isolation, Limit, Usage};
use avfs_transfer::Skipped;
use avfs_vault::{ApprovalId, Change, ChangeKind, CheckpointName, ExecId, VaultName, VaultPath};
use serde::{Deserialize, Serialize};

use crate::command::call::ExecCommand;
use crate::command::capture::HeldOutput;
use crate::command::network::ExecNetwork;
use crate::command::network_limits::NetworkLimits;
use crate::command::options::{Branch, CheckpointMode, Limits, Profile};
use crate::command::stored;
use crate::history::changes::{ChangeSet, Patch};
use crate::history::ignored::Ignored;
use crate::live::shape::{Access, Driver};
use crate::retried::Retried;
use crate::{Error, ErrorKind};

/// The rule of what was allowed and did not answer.
const UNREACHABLE: &str = "default:unreachable";

/// Everything that is known about one exec once it is over.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExecReport {
    #[serde(with = "stored::text")]
    pub exec: ExecId,
    #[serde(with = "stored::text")]
    pub vault: VaultName,
    #[serde(with = "stored::path")]
    pub cwd: VaultPath,
    /// What of the request the report tells again.
    pub asked: Asked,
    pub decision: Decision,
    #[serde(with = "stored::texts")]
    pub checkpoint: Option<CheckpointName>,
    pub status: ExecStatus,
    pub stdout: Captured,
    pub stderr: Captured,
    /// The memory that captured output takes, to be kept until the report is told.
    #[serde(skip)]
    pub held: Vec<HeldOutput>,
    pub duration: Duration,
    /// What is different in the vault, without what is in its home directory or counted in `ignored`.
    #[serde(with = "stored::change_set")]
    pub changes: ChangeSet,
    /// What differs and is counted by directory: what ignore rules name, and caches.
    #[serde(default)]
    pub ignored: Ignored,
    /// The changes as a patch, when it was asked for.
    pub patch: Option<Patch>,
    /// How many names differ in the home directory, without its caches.
    pub home_changes: u64,
    /// Which, when it was asked for.
    #[serde(with = "stored::changes")]
    pub home_change_list: Option<Vec<Change>>,
    /// The version that holds the changes.
    pub version: Option<u64>,
    /// Why what the command wrote is in no version, and what to do about it.
    pub uncommitted: Option<Uncommitted>,
    /// Sockets and devices that the command left, which no version holds.
    pub skipped: Vec<Skipped>,
    pub driver: Driver,
    #[serde(deserialize_with = "stored::network")]
    pub network: ExecNetwork,
    /// What it tried to reach.
    #[serde(default)]
    pub attempts: Attempts,
    /// In how many places of its output the value of a secret was masked.
    #[serde(default)]
    pub masked: u64,
    /// None for a command that never ran, or that nothing held.
    pub isolation: Option<Isolation>,
    /// The limits it ran under, and what enforced each.
    pub limits: Vec<Enforced>,
    /// Those of this host, which nobody asked for.
    pub default_limits: Vec<Enforced>,
    /// Bytes of the disk that it had to leave free.
    pub disk_reserve: Option<u64>,
    /// The limit for which it, or something it started, was killed.
    pub limit_hit: Option<Enforced>,
    pub usage: Option<Usage>,
    pub fork: Option<ForkReport>,
    /// Processes that outlived the command and were ended with it.
    pub leftovers: u32,
    /// Execs that ran in the same vault meanwhile: their changes may be among these.
    #[serde(with = "stored::texts")]
    pub shared_with: Vec<ExecId>,
    /// Whether the vault was mounted: changes of host programs may be among these.
    #[serde(default)]
    pub shared_with_mount: bool,
    /// What was tried again because a process of ours had died.
    pub retried: Vec<Retried>,
    /// What somebody was asked, if the command needs approval.
    pub approval: Option<ApprovalReport>,
    /// Whether the owner can answer: the passphrase is set up.
    pub approver_set_up: bool,
    /// What the command did when it was tried. A command that ran has none.
    #[serde(skip)]
    pub speculation: Option<SpeculationReport>,
    pub terms: ExecTerms,
    pub timings: Timings,
}

/// What of the request a report tells again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub command: ExecCommand,
    pub access: Access,
    pub checkpoint: CheckpointMode,
    pub branch: Branch,
}

/// What a command was to run under, settings included. What no limit says is as the host's defaults say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ExecTerms {
    pub timeout: Option<Duration>,
    pub output_limit: usize,
    pub limits: Limits,
    /// What of it was said for the command itself.
    pub asked: Limits,
    /// Open files of each process.
    pub nofile: Option<u32>,
    pub profile: Option<Profile>,
    /// How much network it may use.
    #[serde(default)]
    pub network: NetworkLimits,
}

/// What a command tried to reach. Bounded: what is beyond is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    pub allowed: Vec<Attempt>,
    pub denied: Vec<Attempt>,
    /// Different hosts and ports beyond those listed.
    pub more: u64,
}

impl Attempts {
    pub(crate) fn is_empty(&self) -> bool {
        self.allowed.is_empty() && self.denied.is_empty() && self.more == 0
    }

    /// The smallest list that allows what was reached, without what was refused afterwards for its address or for what it
    /// was sent.
    pub fn needs(&self) -> Vec<HostRule> {
        let refused = |attempt: &Attempt| {
            let same =
                |other: &&Attempt| (&other.host, other.port) == (&attempt.host, attempt.port);
            let mut denied = self.denied.iter().filter(same);
            denied.any(|other| other.rule != UNREACHABLE)
        };
        let reached = self.allowed.iter().filter(|attempt| !refused(attempt));
        let reached = reached.filter_map(|attempt| {
            let hint = Hint::to_allow(Host::parse(&attempt.host).ok()?, attempt.port?)?;
            Some(hint.rule().clone())
        });
        let mut rules: Vec<HostRule> = reached.collect();
        rules.sort();
        rules.dedup();
        rules
    }
}

/// Connections and look-ups of one host and port with one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub host: String,
    /// None for a look-up of a name.
    pub port: Option<u16>,
    /// The rule that decided.
    pub rule: String,
    pub count: u64,
    pub sent: u64,
    pub received: u64,
    /// How many of those received had been downloaded before.
    #[serde(default)]
    pub cached: u64,
    /// Other execs that may have made it.
    #[serde(with = "stored::texts")]
    pub or_by: Vec<ExecId>,
}

/// How it stands with the approval of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalReport {
    /// Somebody has been asked.
    Pending(#[serde(with = "stored::text")] ApprovalId),
    /// The command ran because of it.
    Used(#[serde(with = "stored::text")] ApprovalId),
    /// Nobody could be asked.
    Refused {
        reason: String,
        hint: Option<String>,
    },
}

/// What a command did in a fork that is gone.
#[derive(Debug)]
pub struct SpeculationReport {
    pub status: ExecStatus,
    pub stdout: Captured,
    pub stderr: Captured,
    pub changes: ChangeSet,
    /// What differs and is counted by directory.
    pub ignored: Ignored,
    pub duration: Duration,
}

/// The fork a command ran in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkReport {
    #[serde(with = "stored::text")]
    pub name: VaultName,
    pub kept: bool,
}

/// What a command wrote, when it is kept but not in the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncommitted {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
    /// The checkpoint that holds it; without one, the vault's sandbox still does.
    #[serde(with = "stored::texts")]
    pub checkpoint: Option<CheckpointName>,
}

impl Uncommitted {
    pub(crate) fn because(error: &Error) -> Uncommitted {
        Uncommitted {
            kind: error.kind(),
            message: error.to_string(),
            hint: error.hint(),
            checkpoint: None,
        }
    }

    pub(crate) fn aside(checkpoint: CheckpointName) -> Uncommitted {
        Uncommitted {
            kind: ErrorKind::Quota,
            message: format!(
                "what was written is beyond the vault's quota; checkpoint {checkpoint} holds it"
            ),
            hint: Some(format!(
                "to have it: `avfs checkpoint restore {checkpoint}`"
            )),
            checkpoint: Some(checkpoint),
        }
    }
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecStatus {
    Exited(i32),
    Signaled(i32),
    /// Killed for going beyond a limit.
    LimitExceeded {
        limit: Limit,
        signal: i32,
    },
    TimedOut {
        signal: i32,
    },
    Cancelled,
    Denied,
    NeedsApproval,
    CouldNotStart {
        reason: String,
        not_found: bool,
    },
    /// The sandbox was lost with the command in it.
    Interrupted,
}

impl ExecStatus {
    /// The code that the kernel reported, if the command came to an exit of its own.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            ExecStatus::Exited(code) => Some(*code),
            _ => None,
        }
    }
}

/// What was kept of one output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    #[serde(with = "stored::bytes")]
    pub bytes: Vec<u8>,
    pub total: u64,
    pub truncated: bool,
    /// How many bytes, from the first, are kept on disk.
    pub spilled: u64,
}

/// Where the time went, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    pub decide_us: u64,
    pub view_us: u64,
    pub checkpoint_us: u64,
    pub run_us: u64,
    pub commit_us: u64,
}

impl ExecReport {
    /// The code that the kernel reported, if the command came to an exit of its own.
    pub fn exit_code(&self) -> Option<i32> {
        self.status.exit_code()
    }

    /// Every path that differs; a rename counts with both its names.
    pub fn changed_files(&self) -> Vec<VaultPath> {
        let mut paths = Vec::new();
        for change in &self.changes.listed {
            if let ChangeKind::Renamed { from } = &change.kind {
                paths.push(from.clone());
            }
            paths.push(change.path.clone());
        }
        paths.sort();
        paths.dedup();
        paths
    }
}
