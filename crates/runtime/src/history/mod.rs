//! Vaults and their past: versions, checkpoints, forks, what differs between two states, and what is forgotten.

pub(crate) mod changes;
pub(crate) mod checkpoints;
pub(crate) mod commit;
pub(crate) mod diff;
pub(crate) mod exec_changes;
pub(crate) mod ignored;
pub(crate) mod maintenance;
pub(crate) mod patch;
pub(crate) mod vaults;
pub(crate) mod versions;
