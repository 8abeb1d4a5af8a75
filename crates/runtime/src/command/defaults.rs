//! What new vaults begin with, whoever makes them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use avfs_vault::QuotaLimit;

use crate::command::settings::{SettingKey, Settings};
use crate::session::Session;
use crate::{Error, Result};

/// One thing that new vaults begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultKey {
    Setting(SettingKey),
    Quota(QuotaLimit),
}

/// Limits of size, what they are called, and what they count in.
const QUOTAS: [(QuotaLimit, &str, &str, u64); 3] = [
    (QuotaLimit::Bytes, "max_size_mb", "quota.bytes", 1 << 20),
    (QuotaLimit::Files, "max_files", "quota.files", 1),
    (
        QuotaLimit::FileBytes,
        "max_file_size_mb",
        "quota.file_bytes",
        1 << 20,
    ),
];

impl FromStr for DefaultKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<DefaultKey> {
        let quota = QUOTAS.iter().find(|(_, name, ..)| *name == text);
        match quota {
            Some((limit, ..)) => Ok(DefaultKey::Quota(*limit)),
            None => Ok(DefaultKey::Setting(text.parse()?)),
        }
    }
}

impl fmt::Display for DefaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultKey::Setting(key) => key.fmt(f),
            DefaultKey::Quota(limit) => f.write_str(quota_names(*limit).0),
        }
    }
}

impl DefaultKey {
    /// The key it is stored under.
    fn stored(&self) -> String {
        match self {
            DefaultKey::Setting(key) => key.to_string(),
            DefaultKey::Quota(limit) => quota_names(*limit).1.to_owned(),
        }
    }

    /// A value as it is stored: as it is understood.
    fn understood(&self, value: &str) -> Result<String> {
        match self {
            DefaultKey::Setting(key) => {
                if *key == SettingKey::Lend {
                    return Err(Error::Invalid {
                        what: "setting",
                        reason: "lend: directories are lent to a vault, not to all new ones".into(),
                    });
                }
                let mut settings = Settings::default();
                settings.set(key, value)?;
                let mut items = settings.items().into_iter();
                Ok(items.next().map_or(String::new(), |(_, value)| value))
            }
            DefaultKey::Quota(limit) => {
                let number = value.trim().parse::<u64>().ok();
                let number = number.and_then(|number| number.checked_mul(quota_names(*limit).2));
                let number = number.filter(|number| i64::try_from(*number).is_ok());
                let number = number.ok_or_else(|| Error::Invalid {
                    what: "setting",
                    reason: format!("{self}: {value:?} is not a number"),
                })?;
                Ok(number.to_string())
            }
        }
    }
}

fn quota_names(limit: QuotaLimit) -> (&'static str, &'static str, u64) {
    let [bytes, files, file_bytes] = QUOTAS;
    let (_, name, stored, unit) = match limit {
        QuotaLimit::Bytes => bytes,
        QuotaLimit::Files => files,
        QuotaLimit::FileBytes => file_bytes,
    };
    (name, stored, unit)
}

impl Session {
    /// What new vaults begin with, by key.
    pub fn defaults(&self) -> Result<BTreeMap<String, String>> {
        self.govern("what new vaults begin with")?;
        let mut shown = BTreeMap::new();
        for (key, value) in self.inner.vaults.defaults()? {
            match QUOTAS.iter().find(|(_, _, stored, _)| *stored == key) {
                Some((_, name, _, unit)) => {
                    let value = value.parse::<u64>().unwrap_or_default() / unit;
                    shown.insert((*name).to_owned(), value.to_string());
                }
                None => drop(shown.insert(key, value)),
            }
        }
        Ok(shown)
    }

    /// Changes it, all or nothing. Vaults that are there stay as they are.
    pub fn set_defaults(
        &self,
        changes: &[(DefaultKey, Option<String>)],
    ) -> Result<BTreeMap<String, String>> {
        self.govern("what new vaults begin with")?;
        let mut stored = Vec::new();
        for (key, value) in changes {
            let value = value.as_deref().map(|value| key.understood(value));
            stored.push((key.stored(), value.transpose()?));
        }
        self.inner
            .vaults
            .change_defaults(&stored, &self.principal())?;
        self.defaults()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_read_as_people_write_them() {
        let understood = |key: &str, value: &str| key.parse::<DefaultKey>()?.understood(value);
        assert_eq!(
            understood("memory", "2g").unwrap(),
            (2_u64 << 30).to_string()
        );
        assert_eq!(understood("env.A", "x=y").unwrap(), "x=y");
        assert_eq!(
            understood("max_size_mb", "3").unwrap(),
            (3 << 20).to_string()
        );
        assert_eq!(understood("max_files", "3").unwrap(), "3");
        for (key, value) in [
            ("memory", "much"),
            ("max_files", "-1"),
            ("max_size_mb", "99999999999999999"),
            ("own.throwaway", "x"),
            ("quota.bytes", "1"),
        ] {
            assert!(understood(key, value).is_err(), "{key}={value}");
        }
        for key in [
            "env.A",
            "timeout",
            "max_size_mb",
            "max_files",
            "max_file_size_mb",
        ] {
            assert_eq!(key.parse::<DefaultKey>().unwrap().to_string(), key);
        }
    }
}
