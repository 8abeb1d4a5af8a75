//! What a vault says about every command that runs in it, until it says something else.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use avfs_policy::HostPattern;
use avfs_sandbox::{Defaults, Limit, UNLIMITED, UNLIMITED_COUNT};
use avfs_vault::Vault;

use crate::command::inspection::Inspection;
use crate::command::mode::Mode;
use crate::command::network::{ExecNetwork, VaultNetwork};
use crate::command::network_limits::NetworkLimits;
use crate::command::options::{ExecOptions, Limits, Profile, Terms};
use crate::gate::Verb;
use crate::live::lending::LendList;
use crate::live::reserve::reserve_of;
use crate::runtime::{Runtime, Select, lock};
use crate::session::Session;
use crate::{Error, Result};

/// One thing a vault can say.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingKey {
    /// A variable of every command's environment.
    Env(String),
    Memory,
    Cpus,
    Pids,
    Disk,
    /// Open files of each process.
    Nofile,
    Profile,
    Timeout,
    /// Which hosts commands reach.
    Network,
    /// Which requests they may make of a host.
    Inspect(HostPattern),
    /// Connections of all commands at once.
    Connections,
    /// Bytes of all commands in a second.
    Bandwidth,
    /// Bytes that one command moves.
    Traffic,
    /// A named set of the others.
    Mode,
    /// Directories of the host that commands may read.
    Lend,
}

impl FromStr for SettingKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<SettingKey> {
        if let Some(name) = text.strip_prefix("env.") {
            return match name.is_empty() || name.contains(['=', '\0']) {
                true => Err(invalid(format!("{name:?} cannot be a variable"))),
                false => Ok(SettingKey::Env(name.to_owned())),
            };
        }
        if let Some(host) = text.strip_prefix("inspect.") {
            return Ok(SettingKey::Inspect(host.parse()?));
        }
        Ok(match text {
            "memory" => SettingKey::Memory,
            "cpus" => SettingKey::Cpus,
            "pids" => SettingKey::Pids,
            "disk" => SettingKey::Disk,
            "nofile" => SettingKey::Nofile,
            "profile" => SettingKey::Profile,
            "timeout" => SettingKey::Timeout,
            "network" => SettingKey::Network,
            "connections" => SettingKey::Connections,
            "bandwidth" => SettingKey::Bandwidth,
            "traffic" => SettingKey::Traffic,
            "mode" => SettingKey::Mode,
            "lend" => SettingKey::Lend,
            _ => {
                return Err(invalid(format!(
                    "{text:?} is none of env.NAME, memory, cpus, pids, disk, nofile, profile, timeout, network, inspect.HOST, connections, bandwidth, traffic, mode, lend"
                )));
            }
        })
    }
}

impl fmt::Display for SettingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SettingKey::Env(name) => return write!(f, "env.{name}"),
            SettingKey::Inspect(host) => return write!(f, "inspect.{host}"),
            SettingKey::Memory => "memory",
            SettingKey::Cpus => "cpus",
            SettingKey::Pids => "pids",
            SettingKey::Disk => "disk",
            SettingKey::Nofile => "nofile",
            SettingKey::Profile => "profile",
            SettingKey::Timeout => "timeout",
            SettingKey::Network => "network",
            SettingKey::Connections => "connections",
            SettingKey::Bandwidth => "bandwidth",
            SettingKey::Traffic => "traffic",
            SettingKey::Mode => "mode",
            SettingKey::Lend => "lend",
        })
    }
}

/// What an agent sees instead of a variable's value.
pub const HIDDEN: &str = "(hidden)";

/// All that a vault says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    pub env: BTreeMap<String, String>,
    pub limits: Limits,
    /// Open files of each process.
    pub nofile: Option<u32>,
    pub profile: Option<Profile>,
    pub timeout: Option<Duration>,
    pub network: Option<VaultNetwork>,
    pub inspection: Inspection,
    pub network_limits: NetworkLimits,
    pub mode: Option<Mode>,
    pub lend: Option<LendList>,
}

impl Settings {
    /// Takes a value in, if it means something.
    pub(crate) fn set(&mut self, key: &SettingKey, value: &str) -> Result<()> {
        match key {
            SettingKey::Env(_) if value.contains('\0') => {
                return Err(invalid("a variable cannot hold a NUL byte".into()));
            }
            SettingKey::Env(name) => drop(self.env.insert(name.clone(), value.to_owned())),
            SettingKey::Memory => self.limits.memory = Some(parse_limit(value)?),
            SettingKey::Disk => self.limits.disk = Some(parse_limit(value)?),
            SettingKey::Cpus => self.limits.cpus = Some(parse_cpus(value)?),
            SettingKey::Pids => self.limits.pids = Some(parse_count("pids", value, 1)?),
            SettingKey::Nofile => self.nofile = Some(parse_count("nofile", value, 3)?),
            SettingKey::Profile => self.profile = Some(value.parse()?),
            SettingKey::Timeout => self.timeout = Some(parse_duration(value)?),
            SettingKey::Network => self.network = Some(value.parse()?),
            SettingKey::Inspect(host) => self.inspection.set(host.clone(), value.parse()?)?,
            SettingKey::Connections => self.network_limits.connections = Some(value.parse()?),
            SettingKey::Bandwidth => self.network_limits.bandwidth = Some(value.parse()?),
            SettingKey::Traffic => self.network_limits.traffic = Some(value.parse()?),
            SettingKey::Mode => self.mode = Some(value.parse()?),
            SettingKey::Lend => self.lend = Some(value.parse()?),
        }
        Ok(())
    }

    /// How long a command may take at most, if the vault says so itself.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.timeout
            .or_else(|| self.profile().and_then(Profile::timeout))
    }

    /// The profile that it names, or that of its mode.
    pub(crate) fn profile(&self) -> Option<Profile> {
        self.profile.or(self.mode.map(Mode::profile))
    }

    /// The network that it names, or that of its mode; without one, none.
    pub(crate) fn network(&self) -> VaultNetwork {
        let usual = || self.mode.map(Mode::network).unwrap_or_default();
        self.network.clone().unwrap_or_else(usual)
    }

    /// The variables of its mode, the vault's over them, and the caller's over both, for a command with this network.
    pub(crate) fn with_environment(
        &self,
        extra: &[(Vec<u8>, Vec<u8>)],
        network: &ExecNetwork,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let online = *network != ExecNetwork::default();
        let usual = self.mode.map(|mode| mode.env(online));
        let usual = usual.unwrap_or_default().iter();
        let usual = usual.map(|(name, value)| (name.to_string(), value.to_string()));
        let mut all: BTreeMap<String, String> = usual.collect();
        all.extend(self.env.clone());
        let own = all.iter();
        let own = own.filter(|(name, _)| !extra.iter().any(|(given, _)| given == name.as_bytes()));
        own.map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()))
            .chain(extra.iter().cloned())
            .collect()
    }

    /// Each thing said, as text that [`Settings::set`] takes.
    pub fn items(&self) -> Vec<(SettingKey, String)> {
        let env = self.env.iter();
        let mut items: Vec<_> = env
            .map(|(name, value)| (SettingKey::Env(name.clone()), value.clone()))
            .collect();
        let inspected = self.inspection.iter();
        items.extend(
            inspected.map(|(host, rules)| (SettingKey::Inspect(host.clone()), rules.to_string())),
        );
        let Limits {
            memory,
            cpus,
            pids,
            disk,
        } = self.limits;
        let NetworkLimits {
            connections,
            bandwidth,
            traffic,
        } = self.network_limits;
        let timeout = self
            .timeout
            .map(|timeout| format!("{}ms", timeout.as_millis()));
        let said = [
            (SettingKey::Memory, memory.map(bytes_text)),
            (SettingKey::Cpus, cpus.map(|cpus| cpus.to_string())),
            (SettingKey::Pids, pids.map(count_text)),
            (SettingKey::Disk, disk.map(bytes_text)),
            (SettingKey::Nofile, self.nofile.map(count_text)),
            (SettingKey::Profile, self.profile.map(|it| it.to_string())),
            (SettingKey::Timeout, timeout),
            (
                SettingKey::Network,
                self.network.as_ref().map(ToString::to_string),
            ),
            (
                SettingKey::Connections,
                connections.map(|it| it.to_string()),
            ),
            (SettingKey::Bandwidth, bandwidth.map(|it| it.to_string())),
            (SettingKey::Traffic, traffic.map(|it| it.to_string())),
            (SettingKey::Mode, self.mode.map(|it| it.to_string())),
            (
                SettingKey::Lend,
                self.lend.as_ref().map(ToString::to_string),
            ),
        ];
        items.extend(
            said.into_iter()
                .filter_map(|(key, value)| Some((key, value?))),
        );
        items
    }
}

/// A limit of the commands in a vault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VaultLimit {
    pub limit: Limit,
    /// Nothing: it was lifted.
    pub value: Option<f64>,
    pub said_by: SaidBy,
}

/// Who says a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaidBy {
    /// Nobody: it is what protects this host.
    Default,
    Vault,
    Request,
}

impl SaidBy {
    pub fn as_str(self) -> &'static str {
        match self {
            SaidBy::Default => "default",
            SaidBy::Vault => "vault",
            SaidBy::Request => "request",
        }
    }
}

impl Runtime {
    /// What the vault says about its commands.
    pub(crate) fn settings_of(&self, vault: &Vault) -> Result<Settings> {
        let mut settings = Settings::default();
        for (key, value) in self.inner.vaults.settings(vault.id)? {
            // A mark of ours is no setting; a later version may know more than this one.
            if let Ok(key) = key.parse() {
                settings.set(&key, &value)?;
            }
        }
        Ok(settings)
    }

    /// The limits of a command in the vault that says nothing itself, and who says each.
    pub fn vault_limits(&self, vault: &Vault) -> Result<Vec<VaultLimit>> {
        let settings = self.settings_of(vault)?;
        let terms = Terms::new(&ExecOptions::default(), &settings);
        let bytes = |bytes: u64| (bytes != UNLIMITED).then_some(bytes as f64);
        let count = |count: u32| (count != UNLIMITED_COUNT).then(|| f64::from(count));
        let limit = |limit, value, said: bool| VaultLimit {
            limit,
            value,
            said_by: if said { SaidBy::Vault } else { SaidBy::Default },
        };
        let (all, given) = (terms.limits, terms.given);
        let nofile = settings
            .nofile
            .unwrap_or_else(|| Defaults::of_this_host().nofile);
        let mut limits = vec![
            limit(
                Limit::Memory,
                all.memory.and_then(bytes),
                given.memory.is_some(),
            ),
            limit(Limit::Pids, all.pids.and_then(count), given.pids.is_some()),
            limit(Limit::OpenFiles, count(nofile), settings.nofile.is_some()),
        ];
        limits.extend(all.cpus.map(|cpus| limit(Limit::Cpus, Some(cpus), true)));
        limits.extend(all.disk.map(|disk| limit(Limit::Disk, bytes(disk), true)));
        if terms.leaves_reserve() {
            let reserve = reserve_of(&self.inner.config.home)?;
            limits.push(limit(Limit::DiskReserve, Some(reserve as f64), false));
        }
        Ok(limits)
    }
}

impl Session {
    /// What the vault says about its commands. Values of variables are for the owner alone.
    pub fn vault_settings(&self, vault: &Vault) -> Result<Settings> {
        let mut settings = self.settings_of(vault)?;
        if self.principal().is_agent() {
            let values = settings.env.values_mut();
            values.for_each(|value| *value = HIDDEN.to_owned());
        }
        Ok(settings)
    }

    /// Says or unsays some of it, all or nothing; gives what is said then.
    pub fn vault_set(
        &self,
        vault: Select,
        changes: &[(SettingKey, Option<String>)],
    ) -> Result<Settings> {
        let vault = self.vault(&vault, Verb::Govern)?;
        let _alone = lock(&self.inner.networks.changing);
        let (mut wanted, mut after) = (Settings::default(), self.settings_of(&vault)?);
        for (key, value) in changes {
            if let Some(value) = value {
                wanted.set(key, value)?;
                // Some of what a vault says has a bound for all of it.
                after.set(key, value)?;
            }
        }
        wanted.lend = self.lendable(wanted.lend)?;
        // Stored as they are understood, so that what is shown is what is in force.
        let understood: BTreeMap<_, _> = wanted.items().into_iter().collect();
        let stored: Vec<(String, Option<String>)> = changes
            .iter()
            .map(|(key, _)| (key.to_string(), understood.get(key).cloned()))
            .collect();
        self.inner
            .vaults
            .change_settings(vault.id, &stored, &self.principal())?;
        self.refresh_networks(&vault)?;
        self.settings_of(&vault)
    }
}

fn invalid(reason: String) -> Error {
    Error::Invalid {
        what: "setting",
        reason,
    }
}

/// `512m`, `2g`, `1048576`: bytes, with binary multiples.
pub fn parse_size(text: &str) -> Result<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &lower[number.len()..] {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => u32::MAX,
    };
    let bytes = number.parse::<u64>().ok().filter(|_| shift != u32::MAX);
    let bytes = bytes.and_then(|bytes| bytes.checked_mul(1 << shift.min(40)));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| Error::Invalid {
            what: "size",
            reason: format!("{text:?} is not like 512m, 2g or 1048576"),
        })
}

/// `90s`, `5m`, `1h`, `2d`, `1500ms`; a bare number is milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: Option<u64> = match &lower[number.len()..] {
        "" | "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let millis = number.parse::<u64>().ok().zip(factor);
    let millis = millis.and_then(|(number, factor)| number.checked_mul(factor));
    let millis = millis.filter(|millis| *millis > 0);
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| Error::Invalid {
            what: "duration",
            reason: format!("{text:?} is not like 90s, 5m, 2d or 1500ms"),
        })
}

fn parse_cpus(text: &str) -> Result<f64> {
    let cpus = text.trim().parse::<f64>().ok();
    cpus.filter(|cpus| (0.01..=10_000.0).contains(cpus))
        .ok_or_else(|| invalid(format!("cpus: {text:?} is not between 0.01 and 10000")))
}

/// The word for no limit, not even the host's default.
const LIFTED: &str = "unlimited";

/// A size, or no limit.
fn parse_limit(text: &str) -> Result<u64> {
    match text.trim() {
        LIFTED => Ok(UNLIMITED),
        text => parse_size(text),
    }
}

/// A number of things, or no limit.
fn parse_count(what: &str, text: &str, least: u32) -> Result<u32> {
    if text.trim() == LIFTED {
        return Ok(UNLIMITED_COUNT);
    }
    let count = text.trim().parse::<u32>().ok();
    count.filter(|count| *count >= least).ok_or_else(|| {
        invalid(format!(
            "{what}: {text:?} is neither a number from {least} on nor {LIFTED:?}"
        ))
    })
}

fn bytes_text(bytes: u64) -> String {
    match bytes {
        UNLIMITED => LIFTED.to_owned(),
        bytes => bytes.to_string(),
    }
}

fn count_text(count: u32) -> String {
    match count {
        UNLIMITED_COUNT => LIFTED.to_owned(),
        count => count.to_string(),
    }
}

#[cfg(test)]
mod tests;
