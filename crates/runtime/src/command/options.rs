//! How a command is to be run: what the caller may choose, and what comes of it and the vault's settings.

use std::fmt;
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::time::Duration;

use avfs_policy::HostList;
use avfs_sandbox::{Defaults, UNLIMITED, UNLIMITED_COUNT};
use avfs_vault::{ApprovalId, CheckpointName, Principal};
use serde::{Deserialize, Serialize};

use crate::command::mode::Mode;
use crate::command::network::{ExecNetwork, NetworkAsk};
use crate::command::settings::Settings;
use crate::command::stored;
use crate::live::shape::{Access, Driver};
use crate::{Error, Result};

/// How long a command may take when nobody says anything else.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
/// How many bytes of each output stream a report keeps when nobody says anything else.
pub const DEFAULT_OUTPUT_LIMIT: usize = 1 << 20;

/// What the caller of an exec may choose. The default leaves everything to the vault.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExecOptions {
    pub timeout: Timeout,
    /// Bytes of each output stream that the report keeps.
    pub output_limit: Option<usize>,
    pub access: Access,
    pub checkpoint: CheckpointMode,
    pub branch: Branch,
    pub limits: Limits,
    pub profile: Option<Profile>,
    pub driver: Driver,
    pub network: NetworkAsk,
    /// Hosts beside those.
    pub allow: HostList,
    pub detail: ExecDetail,
    pub approving: Approving,
}

/// What is done when policy wants the command approved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Approving {
    /// It is asked for, and the report says under which id.
    #[default]
    Ask,
    /// It is asked for, and the command is held until somebody answers.
    Wait,
    /// This approval, given before, is used.
    Use(ApprovalId),
    /// The command is tried in a fork, and what it did goes with the request.
    Speculate,
}

/// How long a command may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Timeout {
    /// As the vault's settings say, else [`DEFAULT_TIMEOUT`].
    #[default]
    Unsaid,
    /// As the vault's settings say, else never: for a job, or somebody at a terminal, who takes the time needed.
    Open,
    Never,
    After(Duration),
}

/// Whether the state before a command gets a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointMode {
    /// As policy decides; dropped when the command changed nothing.
    #[default]
    Auto,
    /// Always, under this name, and kept.
    Named(#[serde(with = "stored::text")] CheckpointName),
    /// Not at all: the owner's choice.
    Never,
}

/// In which vault a command runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// In the vault itself.
    #[default]
    Here,
    /// In a fork made for it, which goes away afterwards.
    Throwaway,
    /// In a fork made for it, which stays if the command exits with 0.
    KeepOnSuccess,
}

/// What a command may use, with all that it starts. What is not said is as [`Limits::of_this_host`] says; the
/// largest number lifts that too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processors, 0.5 being half of one.
    pub cpus: Option<f64>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Bytes by which the vault and its `/tmp` may grow while it runs.
    pub disk: Option<u64>,
}

impl Limits {
    /// These, and where they say nothing, the others.
    pub fn or(self, others: Limits) -> Limits {
        Limits {
            memory: self.memory.or(others.memory),
            cpus: self.cpus.or(others.cpus),
            pids: self.pids.or(others.pids),
            disk: self.disk.or(others.disk),
        }
    }

    /// No limit at all.
    pub const LIFTED: Limits = Limits {
        memory: Some(UNLIMITED),
        cpus: None,
        pids: Some(UNLIMITED_COUNT),
        disk: Some(UNLIMITED),
    };

    /// What protects the host when nobody says anything. Of the disk, a part is left free besides.
    pub fn of_this_host() -> Limits {
        let defaults = Defaults::of_this_host();
        Limits {
            memory: Some(defaults.memory_bytes),
            cpus: None,
            pids: Some(defaults.pids),
            disk: None,
        }
    }
}

/// A named set of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    Restrictive,
    Moderate,
    /// No limit but the sandbox itself.
    Permissive,
}

impl Profile {
    pub const ALL: [Profile; 3] = [Profile::Restrictive, Profile::Moderate, Profile::Permissive];

    pub fn as_str(self) -> &'static str {
        match self {
            Profile::Restrictive => "restrictive",
            Profile::Moderate => "moderate",
            Profile::Permissive => "permissive",
        }
    }

    /// Processors are in none of them: not every host can hold a command to a share of them.
    pub fn limits(self) -> Limits {
        const MIB: u64 = 1 << 20;
        match self {
            Profile::Restrictive => Limits {
                memory: Some(512 * MIB),
                cpus: None,
                pids: Some(128),
                disk: Some(256 * MIB),
            },
            Profile::Moderate => Limits {
                memory: Some(4096 * MIB),
                cpus: None,
                pids: Some(2048),
                disk: Some(8192 * MIB),
            },
            Profile::Permissive => Limits::LIFTED,
        }
    }

    pub(crate) fn timeout(self) -> Option<Duration> {
        match self {
            Profile::Restrictive => Some(Duration::from_secs(60)),
            Profile::Moderate | Profile::Permissive => None,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Profile> {
        let found = Profile::ALL
            .into_iter()
            .find(|profile| profile.as_str() == text);
        found.ok_or_else(|| Error::Invalid {
            what: "profile",
            reason: format!("{text:?} is none of restrictive, moderate, permissive"),
        })
    }
}

/// What a report tells beside the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExecDetail {
    /// The changes as a patch.
    pub patch: bool,
    /// What changed in the home directory, name by name.
    pub home: bool,
    /// So many paths of each list; without it, as many as are short enough to be read.
    pub changes_limit: Option<usize>,
}

/// What a command reads.
#[derive(Debug, Default)]
pub enum Stdin {
    #[default]
    Empty,
    From(OwnedFd),
}

/// What a command runs under once the vault's settings are added to the caller's choices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Terms {
    pub timeout: Option<Duration>,
    pub output_limit: usize,
    /// All that is in force, the host's defaults included.
    pub limits: Limits,
    /// What was said for the command or the vault.
    pub given: Limits,
    /// Open files of each process.
    pub nofile: Option<u32>,
    pub profile: Option<Profile>,
}

impl Terms {
    /// Bytes by which the vault may grow, if that is limited.
    pub fn disk_growth(&self) -> Option<u64> {
        self.limits.disk.filter(|bytes| *bytes != UNLIMITED)
    }

    /// Whether it has to leave a part of the disk free.
    pub fn leaves_reserve(&self) -> bool {
        self.limits.disk != Some(UNLIMITED)
    }

    /// What is said for this command goes before what is said for the vault, and a limit before a profile.
    pub fn new(options: &ExecOptions, settings: &Settings) -> Terms {
        let asked = options.profile.map(Profile::limits).unwrap_or_default();
        let usual = settings.profile().map(Profile::limits).unwrap_or_default();
        // A profile that was asked for replaces the vault's settings where those are weaker or stronger alike.
        let given = match options.profile {
            Some(_) => options.limits.or(asked),
            None => options.limits.or(settings.limits).or(usual),
        };
        let profile = options.profile.or(settings.profile());
        let timeout = match (options.timeout, settings.timeout) {
            (Timeout::After(timeout), _) => Some(timeout),
            (Timeout::Never, _) => None,
            (Timeout::Unsaid | Timeout::Open, Some(timeout)) => Some(timeout),
            (Timeout::Open, None) => profile.and_then(Profile::timeout),
            (Timeout::Unsaid, None) => {
                let usual = settings.mode.map_or(DEFAULT_TIMEOUT, Mode::timeout);
                profile.and_then(Profile::timeout).or(Some(usual))
            }
        };
        Terms {
            timeout,
            output_limit: options.output_limit.unwrap_or(DEFAULT_OUTPUT_LIMIT),
            limits: given.or(Limits::of_this_host()),
            given,
            nofile: settings.nofile,
            profile,
        }
    }
}

impl ExecOptions {
    /// Lifts the limit on time that holds when nobody names one: for who sits at a terminal, and for jobs.
    pub(crate) fn take_time(&mut self) {
        if self.timeout == Timeout::Unsaid {
            self.timeout = Timeout::Open;
        }
    }

    /// The limits that the caller chose, by number or by profile.
    pub(crate) fn asked_limits(&self) -> Limits {
        let named = self.profile.map(Profile::limits).unwrap_or_default();
        self.limits.or(named)
    }

    /// Refuses what only the owner may choose, and what cannot be together.
    pub(crate) fn check(&self, by: Principal, settings: &Settings) -> Result<()> {
        if by.is_agent() {
            let weaker = self.weakening(settings)?;
            if let Some(what) = weaker {
                return Err(Error::OwnerOnly { what });
            }
        }
        if self.access == Access::ReadOnly && self.branch != Branch::Here {
            return Err(Error::Invalid {
                what: "combination",
                reason: "a read-only command changes nothing, so it needs no fork".into(),
            });
        }
        if self.branch == Branch::Throwaway && matches!(self.checkpoint, CheckpointMode::Named(_)) {
            return Err(Error::Invalid {
                what: "combination",
                reason: "a checkpoint of a temporary fork would be deleted with the fork".into(),
            });
        }
        if self.approving == Approving::Speculate
            && ((self.driver, self.branch) != (Driver::Namespace, Branch::Here)
                || self.asks_for_network())
        {
            return Err(Error::Invalid {
                what: "combination",
                reason: "a command is tried in the namespace sandbox, without network, in a fork of \
                         its own, and what it did there is all that can be approved: no other driver, \
                         network or fork goes with --speculate"
                    .into(),
            });
        }
        Ok(())
    }

    /// What in it takes protection away.
    fn weakening(&self, settings: &Settings) -> Result<Option<&'static str>> {
        let limited = Terms::new(&ExecOptions::default(), settings).limits;
        let asked = Terms::new(self, settings).limits;
        let raised = raises(asked.memory, limited.memory)
            || raises(asked.cpus, limited.cpus)
            || raises(asked.pids, limited.pids)
            || raises(asked.disk, limited.disk)
            || raises(Terms::new(self, settings).timeout, settings.longest())
            || asked.disk == Some(UNLIMITED) && limited.disk != asked.disk;
        Ok(if self.driver == Driver::Process {
            Some("a command outside the sandbox")
        } else if let Some(wider) = self.wider_network(settings)? {
            Some(wider)
        } else if self.checkpoint == CheckpointMode::Never {
            Some("a command without a checkpoint")
        } else if raised {
            Some("a limit beyond the vault's settings")
        } else {
            None
        })
    }

    /// What in its network the vault does not give.
    fn wider_network(&self, settings: &Settings) -> Result<Option<&'static str>> {
        let network = ExecNetwork::of(self, settings)?;
        if network.is_within(&settings.network()) {
            return Ok(None);
        }
        Ok(Some(match network {
            ExecNetwork::Listed(_) => "a host that is not on the vault's list",
            ExecNetwork::Host => "the host's network",
            ExecNetwork::Observe => "a command that reaches every host",
        }))
    }

    /// Whether it asks for any network itself.
    fn asks_for_network(&self) -> bool {
        let asked = match &self.network {
            NetworkAsk::Unsaid => false,
            NetworkAsk::Listed(hosts) => !hosts.is_empty(),
            NetworkAsk::Host | NetworkAsk::Observe => true,
        };
        asked || !self.allow.is_empty()
    }
}

/// Whether `asked` allows more than `limited`.
fn raises<T: PartialOrd>(asked: Option<T>, limited: Option<T>) -> bool {
    match (asked, limited) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(asked), Some(limited)) => asked > limited,
    }
}

#[cfg(test)]
mod tests;
