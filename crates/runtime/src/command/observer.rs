//! Who is told of every command that is over, however it was started.

use std::sync::OnceLock;
use std::time::Duration;

use avfs_vault::Principal;

use crate::command::report::ExecReport;
use crate::runtime::Runtime;
use crate::session::Session;

/// A command that is over: it ended, did not start, or was refused.
pub struct EndedExec<'a> {
    pub report: &'a ExecReport,
    pub by: Principal,
    /// From the request to the report.
    pub took: Duration,
}

/// Called on the thread that has the report, so it must be quick.
pub type ExecObserver = Box<dyn Fn(&EndedExec<'_>) + Send + Sync>;

/// The observer of a home, once it has one.
#[derive(Default)]
pub(crate) struct Observers(OnceLock<ExecObserver>);

impl Runtime {
    /// Has every command told that is over from now on, jobs included. A home has one observer: a second one is not taken.
    pub fn observe_execs(&self, observer: ExecObserver) {
        let _ = self.inner.observers.0.set(observer);
    }
}

impl Session {
    pub(crate) fn tell_ended(&self, report: &ExecReport, took: Duration) {
        if let Some(observer) = self.inner.observers.0.get() {
            let by = self.principal();
            observer(&EndedExec { report, by, took });
        }
    }
}
