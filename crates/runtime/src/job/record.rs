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

use crate::command::report::{ExecReport, ExecStatus};
use crate::command::stored;
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
    #[serde(with = "stored::text")]
    pub exec: ExecId,
    #[serde(with = "stored::text")]
    pub vault_id: VaultId,
    #[serde(with = "stored::text")]
    pub vault: VaultName,
    #[serde(with = "stored::text")]
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

/// What became of a job's command, as it is kept.
#[derive(Debug)]
pub enum KeptReport {
    Report(Box<ExecReport>),
    /// From before reports were kept as such: the envelope that was told then.
    Envelope(serde_json::Value),
}

/// How a report is written down. Before version 2 there was no version, and it was an envelope.
#[derive(Serialize, Deserialize)]
struct Versioned<R> {
    report_version: u32,
    report: R,
}

const REPORT_VERSION: u32 = 2;

pub(super) fn save_report(dir: &Path, report: &ExecReport) -> Result<()> {
    let versioned = Versioned {
        report_version: REPORT_VERSION,
        report,
    };
    let bytes = serde_json::to_vec(&versioned).map_err(|error| Error::Io {
        what: format!("writing down the report of {}", report.exec),
        source: error.into(),
    })?;
    replace(&dir.join(REPORT), &bytes)
}

/// The report in a directory; none when it holds none that can be read.
pub(super) fn load_report(dir: &Path) -> Option<KeptReport> {
    let bytes = fs::read(dir.join(REPORT)).ok()?;
    match serde_json::from_slice::<Versioned<Box<ExecReport>>>(&bytes) {
        Ok(versioned) => Some(KeptReport::Report(versioned.report)),
        Err(_) => {
            let kept: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
            let is_envelope = kept.get("report_version").is_none();
            is_envelope.then_some(KeptReport::Envelope(kept))
        }
    }
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

#[cfg(test)]
mod tests {
    use avfs_policy::{Action, Category, Decision, Part};
    use avfs_sandbox::{Enforced, Limit, Mechanism, Usage};
    use avfs_transfer::Skipped;
    use avfs_vault::{ApprovalId, VaultPath};

    use super::*;
    use crate::command::call::ExecCommand;
    use crate::command::network::ExecNetwork;
    use crate::command::network_limits::NetworkLimits;
    use crate::command::options::{Branch, CheckpointMode, Limits, Profile};
    use crate::command::report::{
        ApprovalReport, Asked, Attempts, Captured, ExecTerms, ForkReport, Timings, Uncommitted,
    };
    use crate::error::ErrorKind;
    use crate::history::changes::{ChangeSet, Patch};
    use crate::history::ignored::{Counts, Ignored};
    use crate::live::shape::{Access, Driver};
    use crate::retried::Retried;

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

    fn asked() -> Asked {
        Asked {
            command: ExecCommand::Argv(vec![b"a".to_vec(), b"\xff".to_vec()]),
            access: Access::ReadOnly,
            checkpoint: CheckpointMode::Named("before".parse().unwrap()),
            branch: Branch::KeepOnSuccess,
        }
    }

    fn decision() -> Decision {
        Decision {
            action: Action::AllowWithCheckpoint,
            categories: [Category::Mutating, Category::Networked]
                .into_iter()
                .collect(),
            reason: Some("why".into()),
            rule: "default:mutating".into(),
            parts: vec![Part {
                text: "a".into(),
                action: Action::Allow,
                categories: [Category::ReadOnly].into_iter().collect(),
                rule: "default".into(),
            }],
            smallest_rule: Some("[[rule]]".into()),
        }
    }

    fn terms() -> ExecTerms {
        let limits = Limits {
            cpus: Some(0.3),
            ..Limits::LIFTED
        };
        ExecTerms {
            timeout: Some(Duration::from_millis(1)),
            output_limit: 10,
            limits,
            asked: Limits::default(),
            nofile: Some(11),
            profile: Some(Profile::Moderate),
            network: NetworkLimits {
                traffic: "1g".parse().ok(),
                ..NetworkLimits::default()
            },
        }
    }

    fn timings() -> Timings {
        Timings {
            decide_us: 1,
            view_us: 2,
            checkpoint_us: 3,
            run_us: 4,
            commit_us: 5,
        }
    }

    /// Every field differs from what it is when left out.
    fn report() -> ExecReport {
        let limit = Enforced {
            limit: Limit::Disk,
            by: Mechanism::Poll,
        };
        ExecReport {
            exec: ExecId::new(),
            vault: "v".parse().unwrap(),
            cwd: VaultPath::parse(b"/w\xff").unwrap(),
            asked: asked(),
            decision: decision(),
            checkpoint: Some("before".parse().unwrap()),
            status: ExecStatus::Exited(3),
            stdout: Captured {
                bytes: b"\xff\0out".to_vec(),
                total: 9,
                truncated: true,
                spilled: 8,
            },
            stderr: Captured::default(),
            held: Vec::new(),
            duration: Duration::new(1, 500_000_001),
            changes: ChangeSet::read(Vec::new(), 5, true),
            patch: Some(Patch {
                text: "diff".into(),
                truncated: true,
            }),
            ignored: ignored(),
            home_changes: 2,
            home_change_list: Some(Vec::new()),
            version: Some(4),
            uncommitted: Some(Uncommitted {
                kind: ErrorKind::Quota,
                message: "full".into(),
                hint: Some("make room".into()),
                checkpoint: Some("aside".parse().unwrap()),
            }),
            skipped: vec![Skipped {
                path: b"s\xff".to_vec(),
                reason: "a socket".into(),
            }],
            driver: Driver::Process,
            network: ExecNetwork::Host,
            attempts: Attempts::default(),
            masked: 3,
            isolation: None,
            limits: vec![limit],
            default_limits: vec![limit],
            disk_reserve: Some(7),
            limit_hit: Some(limit),
            usage: Some(Usage {
                user_us: 1,
                ..Usage::default()
            }),
            fork: Some(ForkReport {
                name: "f".parse().unwrap(),
                kept: true,
            }),
            leftovers: 6,
            shared_with: vec![ExecId::new(), ExecId::new()],
            shared_with_mount: true,
            retried: vec![Retried::Keeper, Retried::Writer],
            approval: Some(ApprovalReport::Used(ApprovalId::new())),
            approver_set_up: true,
            speculation: None,
            terms: terms(),
            timings: timings(),
        }
    }

    fn ignored() -> Ignored {
        let counts = Counts {
            created: 1,
            bytes: 2,
            ..Counts::default()
        };
        Ignored {
            directories: [(b"/t\xff/".to_vec(), counts)].into(),
            other: counts,
        }
    }

    #[test]
    fn a_report_comes_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        assert!(load_report(dir.path()).is_none());
        let report = report();
        save_report(dir.path(), &report).unwrap();
        let Some(KeptReport::Report(back)) = load_report(dir.path()) else {
            panic!("it is not a report");
        };
        assert_eq!(format!("{back:?}"), format!("{report:?}"));
    }

    #[test]
    fn an_envelope_of_an_older_version_is_still_told_and_nonsense_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let keep = |text: &str| fs::write(dir.path().join(REPORT), text).unwrap();
        let old = r#"{"schema_version":1,"kind":"proxy_exec_result","success":true}"#;
        keep(old);
        let Some(KeptReport::Envelope(kept)) = load_report(dir.path()) else {
            panic!("it is no envelope");
        };
        assert_eq!(kept["kind"], "proxy_exec_result");
        for nonsense in ["", "{", r#"{"report_version":3,"report":{"other":1}}"#] {
            keep(nonsense);
            assert!(load_report(dir.path()).is_none(), "{nonsense}");
        }
    }
}
