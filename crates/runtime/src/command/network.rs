//! The network of a command: what the vault says, what the caller asks for, and what comes of both.
//!
//! Without a word from the owner there is none. A list of hosts is enforced outside the sandbox (`live/network.rs`), so it
//! holds whatever a command does, and a change of it reaches commands that run already.

use std::fmt;
use std::str::FromStr;

use avfs_net::Outcome;
use avfs_policy::{HostList, HostRule};
use avfs_sandbox::Network;
use serde::{Deserialize, Serialize};

use crate::command::options::{ExecOptions, Profile};
use crate::command::report::{Attempt, Attempts};
use crate::command::settings::Settings;
use crate::live::network::Online;
use crate::live::network_teller::{Left, Others};
use crate::live::shape::Driver;
use crate::{Error, Result};

/// How many hosts and ports of each kind a report lists.
const ATTEMPTS_MAX: usize = 100;

/// The network that a vault gives its commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultNetwork {
    /// These hosts; none is no network.
    Listed(HostList),
    /// The host's.
    Host,
}

impl Default for VaultNetwork {
    fn default() -> VaultNetwork {
        VaultNetwork::Listed(HostList::default())
    }
}

impl FromStr for VaultNetwork {
    type Err = Error;

    fn from_str(text: &str) -> Result<VaultNetwork> {
        match text.trim() {
            "none" => Ok(VaultNetwork::default()),
            "host" => Ok(VaultNetwork::Host),
            list => {
                let hosts: HostList = list.parse()?;
                match hosts.is_empty() {
                    true => Err(Error::Invalid {
                        what: "network",
                        reason: "it is empty; `none` is no network".into(),
                    }),
                    false => Ok(VaultNetwork::Listed(hosts)),
                }
            }
        }
    }
}

impl fmt::Display for VaultNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VaultNetwork::Listed(hosts) if hosts.is_empty() => f.write_str("none"),
            VaultNetwork::Listed(hosts) => hosts.fmt(f),
            VaultNetwork::Host => f.write_str("host"),
        }
    }
}

/// The network that a caller asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NetworkAsk {
    /// The vault's.
    #[default]
    Unsaid,
    /// These hosts and no others; none is no network.
    Listed(HostList),
    /// The host's.
    Host,
    /// Every host, to learn which of them the command needs.
    Observe,
}

/// The network that a command has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecNetwork {
    /// These hosts; none is no network.
    Listed(HostList),
    Host,
    Observe,
}

impl Default for ExecNetwork {
    fn default() -> ExecNetwork {
        ExecNetwork::Listed(HostList::default())
    }
}

impl ExecNetwork {
    /// What the caller asks for goes before what the vault says; `allow` is added to either.
    pub(crate) fn of(options: &ExecOptions, settings: &Settings) -> Result<ExecNetwork> {
        // Nothing keeps a command of that driver from the host's network.
        if options.driver == Driver::Process {
            return Ok(ExecNetwork::Host);
        }
        let hosts = match &options.network {
            NetworkAsk::Host => return Ok(ExecNetwork::Host),
            NetworkAsk::Observe => return Ok(ExecNetwork::Observe),
            NetworkAsk::Listed(hosts) => hosts.clone(),
            NetworkAsk::Unsaid if options.profile == Some(Profile::Restrictive) => {
                HostList::default()
            }
            NetworkAsk::Unsaid => match settings.network() {
                VaultNetwork::Host => return Ok(ExecNetwork::Host),
                VaultNetwork::Listed(hosts) => hosts,
            },
        };
        Ok(ExecNetwork::Listed(hosts.union(&options.allow)?))
    }

    /// Whether a command of this vault without any wish reaches everything that this one reaches.
    pub(crate) fn is_within(&self, vault: &VaultNetwork) -> bool {
        match (self, vault) {
            (_, VaultNetwork::Host) => true,
            (ExecNetwork::Listed(own), VaultNetwork::Listed(hosts)) => own.is_within(hosts),
            (ExecNetwork::Host | ExecNetwork::Observe, VaultNetwork::Listed(_)) => false,
        }
    }

    /// This network after the vault's has become `vault`, for a command that may have no more than its vault.
    pub(crate) fn narrowed_to(&self, vault: &VaultNetwork) -> ExecNetwork {
        match (self, vault) {
            (ExecNetwork::Listed(own), VaultNetwork::Listed(hosts)) => {
                let kept = own.rules().iter().filter(|rule| covers(hosts, rule));
                // Fewer rules than before are not too many.
                ExecNetwork::Listed(HostList::new(kept.cloned()).unwrap_or_default())
            }
            (network, VaultNetwork::Host) => network.clone(),
            (_, VaultNetwork::Listed(hosts)) => ExecNetwork::Listed(hosts.clone()),
        }
    }

    /// On which terms it is served.
    pub(crate) fn terms(&self) -> avfs_net::Terms {
        match self {
            ExecNetwork::Listed(hosts) => avfs_net::Terms::of(hosts.clone()),
            ExecNetwork::Observe => avfs_net::Terms {
                observe: true,
                ..avfs_net::Terms::default()
            },
            // Its sandbox has no network of its own to serve.
            ExecNetwork::Host => avfs_net::Terms::default(),
        }
    }

    /// Whether it reaches anything through the proxies of its sandbox.
    pub(crate) fn has_proxies(&self) -> bool {
        match self {
            ExecNetwork::Listed(hosts) => !hosts.is_empty(),
            ExecNetwork::Observe => true,
            ExecNetwork::Host => false,
        }
    }

    /// The namespace that its sandbox needs.
    pub(crate) fn namespace(&self) -> Network {
        match self {
            ExecNetwork::Listed(_) | ExecNetwork::Observe => Network::None,
            ExecNetwork::Host => Network::Host,
        }
    }

    pub(crate) fn policy(&self) -> avfs_policy::Network {
        match self {
            ExecNetwork::Listed(hosts) if hosts.is_empty() => avfs_policy::Network::None,
            // Only the owner can observe, and does it to make a list. Special addresses stay refused.
            ExecNetwork::Listed(_) | ExecNetwork::Observe => avfs_policy::Network::Listed,
            ExecNetwork::Host => avfs_policy::Network::Host,
        }
    }

    /// One word for its kind.
    pub fn mode(&self) -> &'static str {
        match self {
            ExecNetwork::Listed(hosts) if hosts.is_empty() => "none",
            ExecNetwork::Listed(_) => "listed",
            ExecNetwork::Host => "host",
            ExecNetwork::Observe => "observe",
        }
    }

    /// The hosts on its list.
    pub fn hosts(&self) -> &[HostRule] {
        match self {
            ExecNetwork::Listed(hosts) => hosts.rules(),
            ExecNetwork::Host | ExecNetwork::Observe => &[],
        }
    }
}

fn covers(hosts: &HostList, rule: &HostRule) -> bool {
    HostList::new([rule.clone()]).is_ok_and(|one| one.is_within(hosts))
}

impl Attempts {
    /// What an exec tried to reach, and what of it is not in the journal yet; its network ends with that.
    pub(crate) fn of(online: Online) -> (Attempts, Attempts) {
        let Left {
            all,
            untold,
            others,
        } = online.leave();
        (
            Attempts::from(all, &others),
            Attempts::from(untold, &others),
        )
    }

    pub(crate) fn from(tried: avfs_net::Attempts, execs: &Others) -> Attempts {
        let mut attempts = Attempts {
            more: tried.more,
            ..Attempts::default()
        };
        for attempt in tried.list {
            let list = match attempt.outcome {
                Outcome::Allowed | Outcome::Observed => &mut attempts.allowed,
                Outcome::Denied | Outcome::Failed => &mut attempts.denied,
            };
            if list.len() >= ATTEMPTS_MAX {
                attempts.more += 1;
                continue;
            }
            let others = attempt.candidates.iter();
            list.push(Attempt {
                host: attempt.host,
                port: (attempt.port != 0).then_some(attempt.port),
                rule: attempt.rule,
                count: attempt.count,
                sent: attempt.bytes_out,
                received: attempt.bytes_in,
                cached: attempt.bytes_kept,
                or_by: others.filter_map(|key| execs.get(key).copied()).collect(),
            });
        }
        attempts
    }

    /// Adds what the same exec tried at another time.
    pub(crate) fn add(&mut self, other: Attempts) {
        self.more += other.more;
        for (list, new) in [
            (&mut self.allowed, other.allowed),
            (&mut self.denied, other.denied),
        ] {
            for attempt in new {
                let full = list.len() >= ATTEMPTS_MAX;
                let same = |it: &&mut Attempt| {
                    (&it.host, it.port, &it.rule) == (&attempt.host, attempt.port, &attempt.rule)
                };
                match list.iter_mut().find(same) {
                    Some(known) => {
                        known.count += attempt.count;
                        known.sent += attempt.sent;
                        known.cached += attempt.cached;
                        known.received += attempt.received;
                    }
                    None if full => self.more += 1,
                    None => list.push(attempt),
                }
            }
        }
    }
}

/// The kind and, for a list, its hosts.
impl fmt::Display for ExecNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecNetwork::Listed(hosts) if !hosts.is_empty() => hosts.fmt(f),
            other => f.write_str(other.mode()),
        }
    }
}
