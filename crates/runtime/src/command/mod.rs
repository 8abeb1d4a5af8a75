//! One mediated command: `exec.rs` is its walk from request to report, the other files are its steps and their terms.

pub(crate) mod approvals;
pub(crate) mod branch;
pub(crate) mod call;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod control;
pub(crate) mod defaults;
pub(crate) mod exec;
pub(crate) mod inspection;
pub(crate) mod lent;
pub(crate) mod mode;
pub(crate) mod network;
pub(crate) mod network_limits;
pub(crate) mod network_verbs;
pub(crate) mod observer;
pub(crate) mod options;
pub(crate) mod policy;
pub(crate) mod report;
pub(crate) mod rule_files;
pub(crate) mod run;
pub(crate) mod secrets;
pub(crate) mod settings;
pub(crate) mod spill;
pub(crate) mod stored;
