//! What is known of a job, and how it is kept on disk: one directory each, with a record and two logs.

use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use avfs_sandbox::WindowSize;
use avfs_vault::{ExecId, Principal, Time, VaultId, VaultName};
use serde::{Deserialize, Serialize};

use crate::command::report::ExecStatus;
use crate::common::{JobId, Stream};
use crate::{Error, Result};

impl FromStr for JobId {
    type Err = Error;

    fn from_str(text: &str) -> Result<JobId> {
        text.parse().map(JobId::new).map_err(|_| Error::Invalid {
            what: "job",
            reason: format!("{text:?} is not a number, as `avfs job list` shows them"),
        })
    }
}

/// For whom a job runs, and so what ends it besides itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// For somebody who asks after it: it is ended when nobody has for so long.
    Client { lease: Duration },
    /// For its vault: it is ended with the vault's sandbox or the daemon.
    #[default]
    Vault,
    /// For itself: the daemon is not stopped while it runs, unless by force.
    Detached,
}

/// How long a job with the lifetime `client` runs on by itself, if nobody says otherwise.
const LEASE: Duration = Duration::from_secs(60);

impl Lifetime {
    /// For somebody who asks after it at least that often.
    pub fn client(lease: Option<Duration>) -> Result<Lifetime> {
        let lease = lease.unwrap_or(LEASE);
        match lease.is_zero() {
            true => Err(Error::Invalid {
                what: "lease",
                reason: "one of no time at all ends the job at once".into(),
            }),
            false => Ok(Lifetime::Client { lease }),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Lifetime::Client { .. } => "client",
            Lifetime::Vault => "vault",
            Lifetime::Detached => "detached",
        }
    }
}

/// How it stands with a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Running,
    /// Its command came to an end, whatever end that was.
    Ended {
        status: ExecStatus,
        /// Why it was ended, if somebody did.
        why: Option<String>,
        /// The version that holds what it changed.
        version: Option<u64>,
    },
    /// avfs failed over it.
    Failed {
        error: String,
    },
    /// The daemon was gone before it, so how it ended is not known.
    Lost {
        why: String,
    },
}

/// Everything that is kept of a job beside its logs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub id: JobId,
    #[serde(with = "text")]
    pub exec: ExecId,
    #[serde(with = "text")]
    pub vault_id: VaultId,
    #[serde(with = "text")]
    pub vault: VaultName,
    #[serde(with = "text")]
    pub by: Principal,
    pub command: String,
    pub lifetime: Lifetime,
    pub terminal: Option<WindowSize>,
    /// Seconds and nanoseconds.
    pub started: (i64, u32),
    pub ended: Option<(i64, u32)>,
    pub state: JobState,
    /// Bytes written to each stream in all, known at the end.
    pub written: Option<[u64; 2]>,
}

pub(super) fn now() -> (i64, u32) {
    let now = Time::now();
    (now.secs, now.nanos)
}

pub(super) fn log_path(dir: &Path, stream: Stream) -> PathBuf {
    dir.join(stream.name())
}

const RECORD: &str = "job.json";
const REPORT: &str = "report.json";

impl Record {
    /// Makes the job's directory.
    pub fn create(&self, dir: &Path) -> Result<()> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(Error::io(format!("creating {}", dir.display())))?;
        self.save(dir)
    }

    pub fn save(&self, dir: &Path) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self).map_err(|error| Error::Io {
            what: format!("writing down job {}", self.id),
            source: error.into(),
        })?;
        replace(&dir.join(RECORD), &bytes)
    }

    /// The record in a directory; none when it holds none that can be read.
    pub fn load(dir: &Path) -> Option<Record> {
        let bytes = fs::read(dir.join(RECORD)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

pub(super) fn save_report(dir: &Path, report: &serde_json::Value) -> Result<()> {
    replace(&dir.join(REPORT), report.to_string().as_bytes())
}

pub(super) fn load_report(dir: &Path) -> Option<serde_json::Value> {
    let bytes = fs::read(dir.join(REPORT)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Writes a file so that whoever is killed meanwhile leaves the old one or the new one.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || Error::io(format!("writing {}", path.display()));
    let new = path.with_extension("new");
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&new).map_err(failed())?;
    file.write_all(bytes).map_err(failed())?;
    fs::rename(&new, path).map_err(failed())
}

/// Ids and names, as text.
mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_has_a_default_and_is_some_time() {
        assert_eq!(
            Lifetime::client(None).unwrap(),
            Lifetime::Client { lease: LEASE }
        );
        assert!(Lifetime::client(Some(Duration::ZERO)).is_err());
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("7");
        let record = Record {
            id: JobId::new(7),
            exec: ExecId::new(),
            vault_id: VaultId::new(),
            vault: "v".parse().unwrap(),
            by: Principal::AGENT,
            command: "sleep 1".into(),
            lifetime: Lifetime::Client {
                lease: Duration::from_secs(60),
            },
            terminal: None,
            started: now(),
            ended: None,
            state: JobState::Ended {
                status: ExecStatus::Signaled(9),
                why: None,
                version: Some(3),
            },
            written: Some([1, 2]),
        };
        assert!(Record::load(&dir).is_none());
        record.create(&dir).unwrap();
        let back = Record::load(&dir).unwrap();
        assert_eq!(format!("{back:?}"), format!("{record:?}"));
        fs::write(dir.join(RECORD), "{").unwrap();
        assert!(Record::load(&dir).is_none());
    }

    #[test]
    fn a_job_is_a_number() {
        assert_eq!("12".parse::<JobId>().unwrap(), JobId::new(12));
        for wrong in ["", "-1", "x", "1.5"] {
            assert!(wrong.parse::<JobId>().is_err(), "{wrong}");
        }
    }
}
