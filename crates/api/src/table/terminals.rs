//! The addresses at which a connection becomes a WebSocket. They are no operations of their own: whoever connects must be
//! allowed every operation that a client at the terminal can ask for.

use super::{Operation, Row};
use crate::wire::{Exec, JobKill, JobLogs, JobResize, JobStdin};

/// One such address.
#[derive(Copy, Clone, Debug)]
pub struct Terminal {
    /// Its name in counters and in the OpenAPI document.
    pub name: &'static str,
    /// Its address; `{vault}` stands for a vault.
    pub route: &'static str,
    /// The operations that a client needs to be allowed.
    pub rows: &'static [Row],
    /// What it does.
    pub sentence: &'static str,
}

impl Terminal {
    /// The scopes that a client needs, each once.
    pub fn scopes(&self) -> Vec<&'static str> {
        let mut scopes: Vec<&str> = self.rows.iter().map(|row| row.scope.as_str()).collect();
        scopes.dedup();
        scopes
    }
}

/// A new command at a terminal.
pub const OPEN: Terminal = Terminal {
    name: "exec_terminal",
    route: "/v1/vaults/{vault}/exec/terminal",
    rows: &[Exec::ROW],
    sentence: "Runs a command at a terminal, over WebSocket.",
};

/// The terminal of a job.
pub const ATTACH: Terminal = Terminal {
    name: "job_terminal",
    route: "/v1/jobs/terminal",
    rows: &[JobLogs::ROW, JobStdin::ROW, JobResize::ROW, JobKill::ROW],
    sentence: "Attaches to the terminal of a job, over WebSocket.",
};

/// All of them.
pub const TERMINALS: [Terminal; 2] = [OPEN, ATTACH];
