//! What a vault says about every command that runs in it, until it says something else.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use avfs_vault::Vault;

use crate::gate::Verb;
use crate::options::{Limits, Profile};
use crate::runtime::{Runtime, Select};
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
    Profile,
    Timeout,
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
        Ok(match text {
            "memory" => SettingKey::Memory,
            "cpus" => SettingKey::Cpus,
            "pids" => SettingKey::Pids,
            "disk" => SettingKey::Disk,
            "profile" => SettingKey::Profile,
            "timeout" => SettingKey::Timeout,
            _ => {
                return Err(invalid(format!(
                    "{text:?} is none of env.NAME, memory, cpus, pids, disk, profile, timeout"
                )));
            }
        })
    }
}

impl fmt::Display for SettingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SettingKey::Env(name) => return write!(f, "env.{name}"),
            SettingKey::Memory => "memory",
            SettingKey::Cpus => "cpus",
            SettingKey::Pids => "pids",
            SettingKey::Disk => "disk",
            SettingKey::Profile => "profile",
            SettingKey::Timeout => "timeout",
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
    pub profile: Option<Profile>,
    pub timeout: Option<Duration>,
}

impl Settings {
    /// Takes a value in, if it means something.
    pub(crate) fn set(&mut self, key: &SettingKey, value: &str) -> Result<()> {
        match key {
            SettingKey::Env(_) if value.contains('\0') => {
                return Err(invalid("a variable cannot hold a NUL byte".into()));
            }
            SettingKey::Env(name) => drop(self.env.insert(name.clone(), value.to_owned())),
            SettingKey::Memory => self.limits.memory = Some(parse_size(value)?),
            SettingKey::Disk => self.limits.disk = Some(parse_size(value)?),
            SettingKey::Cpus => self.limits.cpus = Some(parse_cpus(value)?),
            SettingKey::Pids => self.limits.pids = Some(parse_pids(value)?),
            SettingKey::Profile => self.profile = Some(value.parse()?),
            SettingKey::Timeout => self.timeout = Some(parse_duration(value)?),
        }
        Ok(())
    }

    /// How long a command may take at most, if the vault says so itself.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.timeout
            .or_else(|| self.profile.and_then(Profile::timeout))
    }

    /// The vault's variables with the caller's over them.
    pub(crate) fn with_environment(&self, extra: &[(Vec<u8>, Vec<u8>)]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let own = self.env.iter();
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
        let Limits {
            memory,
            cpus,
            pids,
            disk,
        } = self.limits;
        let timeout = self
            .timeout
            .map(|timeout| format!("{}ms", timeout.as_millis()));
        let said = [
            (SettingKey::Memory, memory.map(|bytes| bytes.to_string())),
            (SettingKey::Cpus, cpus.map(|cpus| cpus.to_string())),
            (SettingKey::Pids, pids.map(|pids| pids.to_string())),
            (SettingKey::Disk, disk.map(|bytes| bytes.to_string())),
            (SettingKey::Profile, self.profile.map(|it| it.to_string())),
            (SettingKey::Timeout, timeout),
        ];
        items.extend(
            said.into_iter()
                .filter_map(|(key, value)| Some((key, value?))),
        );
        items
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
        let mut wanted = Settings::default();
        for (key, value) in changes {
            if let Some(value) = value {
                wanted.set(key, value)?;
            }
        }
        // Stored as they are understood, so that what is shown is what is in force.
        let understood: BTreeMap<_, _> = wanted.items().into_iter().collect();
        let stored: Vec<(String, Option<String>)> = changes
            .iter()
            .map(|(key, _)| (key.to_string(), understood.get(key).cloned()))
            .collect();
        self.inner
            .vaults
            .change_settings(vault.id, &stored, &self.principal())?;
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

/// `90s`, `5m`, `1h`, `1500ms`; a bare number is milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: Option<u64> = match &lower[number.len()..] {
        "" | "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let millis = number.parse::<u64>().ok().zip(factor);
    let millis = millis.and_then(|(number, factor)| number.checked_mul(factor));
    let millis = millis.filter(|millis| *millis > 0);
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| Error::Invalid {
            what: "duration",
            reason: format!("{text:?} is not like 90s, 5m or 1500ms"),
        })
}

fn parse_cpus(text: &str) -> Result<f64> {
    let cpus = text.trim().parse::<f64>().ok();
    cpus.filter(|cpus| (0.01..=10_000.0).contains(cpus))
        .ok_or_else(|| invalid(format!("cpus: {text:?} is not between 0.01 and 10000")))
}

fn parse_pids(text: &str) -> Result<u32> {
    let pids = text.trim().parse::<u32>().ok();
    pids.filter(|pids| *pids > 0)
        .ok_or_else(|| invalid(format!("pids: {text:?} is not a number of processes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_as_people_write_them() {
        assert_eq!(parse_size("512m").unwrap(), 512 << 20);
        assert_eq!(parse_size("2GiB").unwrap(), 2 << 30);
        assert_eq!(parse_size("17").unwrap(), 17);
        for wrong in ["", "m", "0", "-1", "1.5g", "1x", "99999999999999t"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(parse_duration("250").unwrap(), Duration::from_millis(250));
        for wrong in ["", "0", "5d", "s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_are_text_and_back() {
        let mut settings = Settings::default();
        for (key, value) in [
            ("env.A", "b=c"),
            ("memory", "1g"),
            ("cpus", "0.5"),
            ("pids", "9"),
            ("disk", "10m"),
            ("profile", "moderate"),
            ("timeout", "90s"),
        ] {
            settings.set(&key.parse().unwrap(), value).unwrap();
        }
        let mut back = Settings::default();
        for (key, value) in settings.items() {
            let key: SettingKey = key.to_string().parse().unwrap();
            back.set(&key, &value).unwrap();
        }
        assert_eq!(back, settings);
        for wrong in ["env.", "env.A=B", "color", ""] {
            assert!(wrong.parse::<SettingKey>().is_err(), "{wrong}");
        }
        let cpus = SettingKey::Cpus;
        assert!(Settings::default().set(&cpus, "nan").is_err());
    }
}
