//! What all handlers share: the runtime, the daemon's paths, and the running requests.

use super::calls::Calls;
use super::envelope::Ended;
use super::events::JournalEnd;
use super::lanes::Lanes;
use super::logs::Logs;
use super::memory::Bodies;
use super::metrics::Metrics;
use super::repeats::Repeats;
use super::traces::Traces;
use crate::auth::Auth;
use crate::daemon_paths::DaemonPaths;
use crate::http::Hosts;
use avfs_runtime::{Principal, Runtime};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};

/// The state of one daemon.
pub(crate) struct App {
    pub runtime: Runtime,
    pub place: DaemonPaths,
    pub idle_timeout: Option<Duration>,
    pub started: Instant,
    /// Notified when the daemon shall end.
    pub stop: Notify,
    /// Notified when a request finds that the home was moved.
    pub home_lost: Notify,
    pub calls: Arc<Calls>,
    pub lanes: Lanes,
    pub bodies: Arc<Bodies>,
    pub auth: Auth,
    pub metrics: Arc<Metrics>,
    pub repeats: Repeats,
    pub traces: Traces,
    pub logs: Arc<Logs>,
    pub journal_end: JournalEnd,
    /// The names of this machine on the network.
    pub hosts: Hosts,
    /// Where it listens besides its socket.
    pub listening: OnceLock<SocketAddr>,
    busy: Arc<Mutex<Busyness>>,
    /// Told when connections that would stay open for ever shall end.
    ending: watch::Sender<bool>,
}

struct Busyness {
    requests: usize,
    /// Clients that stay connected between their requests.
    sessions: usize,
    /// When the last request ended.
    since: Instant,
}

impl App {
    pub fn new(
        runtime: Runtime,
        place: DaemonPaths,
        idle_timeout: Option<Duration>,
        auth: Auth,
        hosts: Hosts,
    ) -> App {
        let now = Instant::now();
        let (metrics, logs) = (Arc::<Metrics>::default(), Arc::<Logs>::default());
        observe(&runtime, &metrics, &logs);
        App {
            runtime,
            place,
            idle_timeout,
            started: now,
            stop: Notify::new(),
            home_lost: Notify::new(),
            calls: Arc::default(),
            lanes: Lanes::new(),
            bodies: Arc::new(Bodies::new()),
            auth,
            metrics,
            repeats: Repeats::default(),
            traces: Traces::default(),
            logs,
            journal_end: JournalEnd::default(),
            hosts,
            listening: OnceLock::new(),
            busy: Arc::new(Mutex::new(Busyness {
                requests: 0,
                sessions: 0,
                since: now,
            })),
            ending: watch::Sender::new(false),
        }
    }

    /// Counts and logs a request that was answered, up to the head of its answer.
    pub fn served(
        &self,
        operation: &'static str,
        status: u16,
        took: Duration,
        by: Option<Principal>,
    ) {
        self.metrics.request(operation, status, took);
        self.logs.request(operation, status, took, by);
    }

    /// Marks a client as connected until the guard goes.
    pub fn open_session(&self) -> OpenSession {
        lock(&self.busy).sessions += 1;
        OpenSession(Arc::clone(&self.busy))
    }

    /// Whether somebody would miss the daemon though nothing happens: a client that stays connected, or whoever connects to a
    /// port that is forwarded.
    pub fn is_needed(&self) -> bool {
        lock(&self.busy).sessions > 0 || self.runtime.activity().forwards > 0
    }

    /// Ends when clients that stay connected are to be left.
    pub fn sessions_end(&self) -> impl Future<Output = ()> + use<> {
        let mut ending = self.ending.subscribe();
        async move {
            // An error means that the daemon is gone already.
            let _ = ending.wait_for(|ended| *ended).await;
        }
    }

    /// Becomes true when clients that stay connected are to be left.
    pub(super) fn ending(&self) -> watch::Receiver<bool> {
        self.ending.subscribe()
    }

    /// Leaves the clients that stay connected.
    pub fn end_sessions(&self) {
        self.ending.send_replace(true);
    }

    /// Counts a request as running until the guard is dropped.
    pub fn enter(&self) -> AtWork {
        lock(&self.busy).requests += 1;
        AtWork {
            busy: Arc::clone(&self.busy),
            bodies: Arc::clone(&self.bodies),
            body: Mutex::default(),
        }
    }

    /// How long the daemon has been idle; `None` while a request or exec runs, a job runs, or something is mounted.
    pub fn idle_for(&self) -> Option<Duration> {
        let idle = {
            let busy = lock(&self.busy);
            (busy.requests == 0).then(|| busy.since.elapsed())
        };
        idle.filter(|_| {
            let activity = self.runtime.activity();
            activity.mounts == 0 && activity.running_jobs == 0
        })
    }
}

/// Counts and logs every command that is over, jobs included.
fn observe(runtime: &Runtime, metrics: &Arc<Metrics>, logs: &Arc<Logs>) {
    let (metrics, logs) = (Arc::clone(metrics), Arc::clone(logs));
    runtime.observe_execs(Box::new(move |ended| {
        let report = ended.report;
        let how = Ended::of(&report.status);
        metrics.exec(&report.vault, how.status, ended.took);
        let how = (how.status, &how.ending);
        logs.command(&report.exec.to_string(), how, ended.took, ended.by);
    }));
}

/// One running request.
pub(crate) struct AtWork {
    busy: Arc<Mutex<Busyness>>,
    bodies: Arc<Bodies>,
    /// The memory reserved for its body, if it is large.
    body: Mutex<Option<OwnedSemaphorePermit>>,
}

impl AtWork {
    pub fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    pub fn hold(&self, body: OwnedSemaphorePermit) {
        *lock(&self.body) = Some(body);
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut busy = lock(&self.busy);
        busy.requests -= 1;
        busy.since = Instant::now();
    }
}

/// One client that stays connected.
pub(crate) struct OpenSession(Arc<Mutex<Busyness>>);

impl Drop for OpenSession {
    fn drop(&mut self) {
        let mut busy = lock(&self.0);
        busy.sessions -= 1;
        busy.since = Instant::now();
    }
}

/// The data is consistent even if a holder panicked: every change is one assignment.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
