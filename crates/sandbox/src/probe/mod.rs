//! What the host offers, found out by trying it.

use std::path::Path;

use crate::error::Fault;
use crate::keeper;
use crate::protocol::{Duty, Link};

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What it is.
    pub name: &'static str,
    /// Whether it works.
    pub outcome: Outcome,
    /// What was found, for a reader.
    pub detail: String,
}

/// Whether something works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Works,
    /// It does not.
    Missing {
        /// Why.
        reason: String,
        /// The command that mends it, or what to do.
        fix: String,
    },
}

/// A thing tried in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Trial {
    /// The system call filter.
    Seccomp,
}

/// Answers a trial; runs in a process made for it.
pub(crate) fn answer(trial: Trial, control: &Link) {
    let outcome: Result<(), Fault> = match trial {
        Trial::Seccomp => crate::seccomp::Filter::compile().and_then(|filter| {
            rustix::thread::set_no_new_privs(true).ok();
            filter.apply()
        }),
    };
    let _ = control.send(&outcome.map_err(|fault| fault.to_string()), &[]);
}

/// Tries everything a sandbox needs. `runtime_dir` is a private directory that exists.
pub fn run(_runtime_dir: &Path, binary: &Path) -> Vec<Probe> {
    let outcome = match keeper::spawn(binary, Duty::Probe(Trial::Seccomp)) {
        Ok(_) => Outcome::Works,
        Err(error) => Outcome::Missing {
            reason: error.to_string(),
            fix: String::new(),
        },
    };
    vec![Probe {
        name: "seccomp",
        outcome,
        detail: String::new(),
    }]
}
