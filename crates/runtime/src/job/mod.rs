//! Jobs: execs that outlive their callers. Their output is on disk from the first byte, and what became of them
//! can be asked for as long as they are kept.

mod handle;
mod record;
mod start;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use avfs_sandbox::WindowSize;
use avfs_vault::{ExecId, JournalEvent, Principal, Time, VaultId, VaultName};
use serde_json::json;

pub use self::handle::{Attending, LOG_MAX, LogPart};
pub use self::record::{JobState, KeptReport, Lifetime};

use self::handle::Job;
use self::record::{Record, load_report, replace};
use crate::command::call::ExecRequest;
use crate::command::control::Control;
use crate::command::report::ExecReport;
use crate::common::{JobId, Stream};
use crate::gate::Verb;
use crate::live::slot::IfBusy;
use crate::runtime::{Runtime, lock};
use crate::session::Session;
use crate::{Error, Result};

/// How many jobs that are over are kept.
pub const KEPT_JOBS: usize = 200;
/// How long.
pub const KEPT_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many bytes of their logs.
pub const KEPT_BYTES: u64 = 1 << 30;
/// How many may run at once: each has a thread, and descriptors.
pub const MOST_RUNNING: usize = 100;
/// How long a job that is killed may take to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(15);
/// How long jobs may take to be written down when the daemon ends.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A command that shall outlive its caller.
pub struct JobRequest {
    pub exec: ExecRequest,
    pub lifetime: Lifetime,
    /// Whether its input stays open for [`Session::job_input`].
    pub takes_input: bool,
}

/// What came of asking for a job.
pub enum JobStart {
    Started(Box<JobInfo>),
    /// There is no job: the report says why.
    Reported(Box<ExecReport>),
}

/// What is known of a job.
#[derive(Debug, Clone)]
pub struct JobInfo {
    pub id: JobId,
    pub exec: ExecId,
    pub vault: VaultName,
    pub vault_id: VaultId,
    pub command: String,
    pub by: Principal,
    pub lifetime: Lifetime,
    pub terminal: Option<WindowSize>,
    pub started: Time,
    pub ended: Option<Time>,
    pub state: JobState,
    /// Bytes of stdout and stderr that can be read.
    pub kept: [u64; 2],
    /// Bytes of stdout and stderr in all.
    pub written: [u64; 2],
}

impl JobInfo {
    fn of(job: &Job) -> JobInfo {
        let sight = job.sight();
        let time = |(secs, nanos)| Time { secs, nanos };
        let record = sight.record;
        JobInfo {
            id: record.id,
            exec: record.exec,
            vault: record.vault,
            vault_id: record.vault_id,
            command: record.command,
            by: record.by,
            lifetime: record.lifetime,
            terminal: record
                .terminal
                .map(|first| job.control.size().unwrap_or(first)),
            started: time(record.started),
            ended: record.ended.map(time),
            state: record.state,
            kept: sight.kept,
            written: sight.written,
        }
    }

    pub fn is_running(&self) -> bool {
        self.state == JobState::Running
    }
}

/// The jobs of a home.
pub(crate) struct Jobs {
    dir: PathBuf,
    all: Mutex<BTreeMap<JobId, Arc<Job>>>,
}

const LAST: &str = "last";

impl Jobs {
    /// Finds what earlier daemons left. Those that were running then are still marked so.
    pub fn open(home: &Path) -> Jobs {
        let dir = home.join("jobs");
        let found = fs::read_dir(&dir).into_iter().flatten().flatten();
        let jobs = found.filter_map(|entry| {
            let record = Record::load(&entry.path())?;
            let job = Job::new(entry.path(), record.clone(), Arc::default(), None);
            Some((record.id, Arc::new(job)))
        });
        Jobs {
            all: Mutex::new(jobs.collect()),
            dir,
        }
    }

    /// A new job, written down as running.
    fn add(
        &self,
        input: Option<OwnedFd>,
        control: Arc<Control>,
        record: impl FnOnce(JobId) -> Record,
    ) -> Result<Arc<Job>> {
        let mut all = lock(&self.all);
        if all.values().filter(|job| job.is_running()).count() >= MOST_RUNNING {
            return Err(Error::TooManyJobs { most: MOST_RUNNING });
        }
        let last = fs::read_to_string(self.dir.join(LAST)).ok();
        let last = last.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let known = all.keys().next_back().map_or(0, |id| id.number());
        let id = JobId::new(last.max(known) + 1);
        let dir = self.dir.join(id.to_string());
        let record = record(id);
        record.create(&dir)?;
        replace(&self.dir.join(LAST), format!("{id}\n").as_bytes())?;
        let job = Arc::new(Job::new(dir, record, control, input));
        all.insert(id, job.clone());
        Ok(job)
    }

    fn remove(&self, job: &Job) {
        lock(&self.all).remove(&job.sight().record.id);
        // What stays is found again at the next start, and goes with its age.
        let _ = fs::remove_dir_all(&job.dir);
    }

    fn get(&self, id: JobId) -> Result<Arc<Job>> {
        let found = lock(&self.all).get(&id).cloned();
        found.ok_or(Error::JobNotFound { id })
    }

    fn all(&self) -> Vec<Arc<Job>> {
        lock(&self.all).values().cloned().collect()
    }

    fn running(&self) -> Vec<Arc<Job>> {
        let mut all = self.all();
        all.retain(|job| job.is_running());
        all
    }

    fn running_that(&self, fits: impl Fn(&Record) -> bool) -> Vec<JobId> {
        let running = self.running().into_iter().map(|job| job.sight().record);
        running.filter(fits).map(|record| record.id).collect()
    }

    pub fn count_running(&self) -> usize {
        self.running().len()
    }

    /// Jobs of that vault that were running when their daemon was lost.
    pub fn lost_in(&self, vault: VaultId) -> Vec<ExecId> {
        let running = self.running().into_iter().map(|job| job.sight().record);
        let lost = running.filter(|record| record.vault_id == vault);
        lost.map(|record| record.exec).collect()
    }

    /// Forgets jobs that are over and too many, too old or too large; the oldest first.
    pub fn sweep(&self) {
        self.sweep_older(KEPT_AGE);
    }

    /// Forgets jobs in that way, and those that ended this long ago, if that is less than is usual.
    pub fn sweep_older(&self, age: Duration) {
        let mut over = self.all();
        over.retain(|job| !job.is_running());
        let mut bytes: u64 = over.iter().map(|job| job.size()).sum();
        let too_many = over.len().saturating_sub(KEPT_JOBS);
        let age = i64::try_from(age.min(KEPT_AGE).as_secs()).unwrap_or(i64::MAX);
        let oldest = Time::now().secs.saturating_sub(age);
        for (number, job) in over.iter().enumerate() {
            let ended = job.sight().record.ended.map_or(0, |(secs, _)| secs);
            if number < too_many || ended <= oldest || bytes > KEPT_BYTES {
                bytes -= job.size();
                self.remove(job);
            }
        }
    }
}

impl Session {
    /// The jobs there are, the newest first.
    pub fn job_list(&self, vault: Option<&VaultName>) -> Vec<JobInfo> {
        let all = self.inner.jobs.all();
        let infos = all.iter().rev().map(|job| JobInfo::of(job));
        infos
            .filter(|info| vault.is_none_or(|vault| *vault == info.vault))
            .collect()
    }

    pub fn job(&self, id: JobId) -> Result<JobInfo> {
        let job = self.own_job(id)?;
        Ok(JobInfo::of(&job))
    }

    /// Keeps a job of lifetime `client` alive for as long as the guard lives, and its lease after.
    pub fn job_attend(&self, id: JobId) -> Result<Attending> {
        Ok(self.own_job(id)?.attend())
    }

    /// What a job wrote from an offset on, at most so many bytes of it.
    pub fn job_read(&self, id: JobId, stream: Stream, from: u64, most: u64) -> Result<LogPart> {
        self.own_job(id)?.read(stream, from, most)
    }

    /// Waits until a job is over, or as long as that.
    pub fn job_wait(&self, id: JobId, patience: Duration) -> Result<JobInfo> {
        let job = self.own_job(id)?;
        job.wait(patience);
        Ok(JobInfo::of(&job))
    }

    /// Waits until there is more to read than that, the job is over, or as long as that.
    pub fn job_more(&self, id: JobId, from: [u64; 2], patience: Duration) -> Result<JobInfo> {
        let job = self.own_job(id)?;
        job.wait_for_more(from, patience);
        Ok(JobInfo::of(&job))
    }

    /// The report of a job that is over.
    pub fn job_report(&self, id: JobId) -> Result<Option<KeptReport>> {
        Ok(load_report(&self.own_job(id)?.dir))
    }

    /// Where to write what a job shall read. Journals that input was written, not its content.
    pub fn job_input(&self, id: JobId) -> Result<File> {
        let job = self.own_job(id)?;
        let input = job.input().map_err(Error::io("opening the job's input"))?;
        let input = input.ok_or(Error::NoInput { id })?;
        let record = job.sight().record;
        let by = self.principal();
        self.record_job(
            &Record { by, ..record },
            JournalEvent::JobStdin,
            json!({ "job": id }),
        )?;
        Ok(input)
    }

    /// Says that there is nothing more for a job to read.
    pub fn job_end_input(&self, id: JobId) -> Result<()> {
        self.own_job(id)?.end_input();
        Ok(())
    }

    /// Gives a job's terminal another size.
    pub fn job_resize(&self, id: JobId, size: WindowSize) -> Result<()> {
        let job = self.own_job(id)?;
        match job.sight().record.terminal {
            Some(_) => job.control.resize(size),
            None => Err(Error::NoTerminal { id }),
        }
    }

    /// Sends a signal to every process of a job; without one it is asked to end, and soon ended. Waits for the
    /// end where there is to be one.
    pub fn job_kill(&self, id: JobId, signal: Option<i32>) -> Result<JobInfo> {
        let job = self.own_job(id)?;
        let record = job.sight().record;
        if record.state != JobState::Running {
            return Err(Error::JobOver { id });
        }
        match signal {
            None => job.want_end("somebody ended it with `job kill`"),
            Some(signal) => job.control.signal(signal)?,
        }
        let (by, details) = (self.principal(), json!({ "job": id, "signal": signal }));
        self.record_job(&Record { by, ..record }, JournalEvent::JobKill, details)?;
        if matches!(signal, None | Some(9)) {
            job.wait(KILL_PATIENCE);
        }
        Ok(JobInfo::of(&job))
    }

    /// Sees to it that no job runs in a vault, also none that only reads it.
    pub(crate) fn without_jobs(&self, vault: VaultId, if_busy: IfBusy) -> Result<()> {
        let mut jobs = self.inner.jobs.running();
        jobs.retain(|job| job.sight().record.vault_id == vault);
        if jobs.is_empty() {
            return Ok(());
        }
        if if_busy == IfBusy::Refuse {
            return Err(Error::Busy {
                vault: self.inner.vaults.by_id(vault)?.name.to_string(),
                running: jobs.len(),
                jobs: jobs.iter().map(|job| job.sight().record.id).collect(),
            });
        }
        for job in &jobs {
            let record = job.sight().record;
            self.check(Verb::Own, &record.by, || format!("job {}", record.id))?;
        }
        jobs.iter()
            .for_each(|job| job.want_end("its vault was deleted"));
        let deadline = Instant::now() + KILL_PATIENCE;
        for job in &jobs {
            job.wait(deadline.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    fn own_job(&self, id: JobId) -> Result<Arc<Job>> {
        let job = self.inner.jobs.get(id)?;
        self.check(Verb::Own, &job.sight().record.by, || format!("job {id}"))?;
        Ok(job)
    }
}

impl Runtime {
    /// Says of the jobs of an earlier daemon that nobody knows how they ended.
    pub(crate) fn give_up_lost_jobs(&self) {
        let why = "the daemon was lost while it ran; what it had written is kept, in a version marked \
                   interrupted if it changed the vault";
        for job in self.inner.jobs.running() {
            self.finish_job(&job, JobState::Lost { why: why.into() }, None);
        }
        self.inner.jobs.sweep();
    }

    /// Notes why all jobs are about to end.
    pub(crate) fn announce_end_to_jobs(&self) {
        for job in self.inner.jobs.running() {
            job.note_end("the daemon was stopped");
        }
    }

    /// Waits until what became of the jobs is written down.
    pub(crate) fn await_jobs(&self) {
        let deadline = Instant::now() + LAST_WORDS;
        for job in self.inner.jobs.running() {
            job.wait(deadline.saturating_duration_since(Instant::now()));
        }
    }

    /// Jobs that the daemon may not be stopped under.
    pub fn detached_jobs(&self) -> Vec<JobId> {
        let jobs = &self.inner.jobs;
        jobs.running_that(|record| record.lifetime == Lifetime::Detached)
    }

    /// Notes why an exec is about to end, should it be a job.
    pub(crate) fn note_end_of_job(&self, exec: ExecId, why: &str) {
        let mut running = self.inner.jobs.running().into_iter();
        if let Some(job) = running.find(|job| job.sight().record.exec == exec) {
            job.note_end(why);
        }
    }

    /// The running jobs among these execs.
    pub(crate) fn jobs_among(&self, execs: &[ExecId]) -> Vec<JobId> {
        let jobs = &self.inner.jobs;
        jobs.running_that(|record| execs.contains(&record.exec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(jobs: &Jobs) -> Result<Arc<Job>> {
        jobs.add(None, Arc::default(), |id| Record {
            id,
            exec: ExecId::new(),
            vault_id: VaultId::new(),
            vault: "v".parse().unwrap(),
            by: Principal::OWNER,
            command: "true".into(),
            lifetime: Lifetime::Vault,
            terminal: None,
            started: record::now(),
            ended: None,
            state: JobState::Running,
            written: None,
        })
    }

    fn end(job: &Job) {
        let error = "for the test".into();
        job.conclude(JobState::Failed { error }, None).unwrap();
    }

    #[test]
    fn only_so_many_run_and_only_so_many_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let jobs = Jobs::open(home.path());
        let running: Vec<_> = (0..MOST_RUNNING).map(|_| add(&jobs).unwrap()).collect();
        assert!(matches!(add(&jobs), Err(Error::TooManyJobs { .. })));
        running.iter().for_each(|job| end(job));
        for _ in 0..KEPT_JOBS {
            end(&add(&jobs).unwrap());
        }
        let last = add(&jobs).unwrap();
        jobs.sweep();
        assert_eq!(jobs.all().len(), KEPT_JOBS + 1, "one still runs");
        let id = last.sight().record.id;
        assert_eq!(id.number(), (MOST_RUNNING + KEPT_JOBS + 1) as u64);
        let names = fs::read_dir(home.path().join("jobs")).unwrap().count();
        assert_eq!(names, KEPT_JOBS + 2, "and the number of the last");
        let again = Jobs::open(home.path());
        assert_eq!(again.count_running(), 1, "what it became nobody knows");
        assert_eq!(again.all().len(), KEPT_JOBS + 1);
        again.remove(&again.get(id).unwrap());
        let next = add(&again).unwrap().sight().record.id;
        assert_eq!(next.number(), id.number() + 1, "no number is used twice");
    }
}
