//! What things are called, and what can go wrong with them: paths, names, ids, principals, errors.

pub(crate) mod closed;
mod error;
mod ids;
mod names;
pub(crate) mod path;
mod principal;
mod reasons;

pub use error::{Error, Result};
pub use ids::{RootId, TreeId};
pub use names::{ApprovalId, CheckpointName, Description, ExecId, VaultId, VaultName};
pub use path::VaultPath;
pub use principal::{Principal, PrincipalKind, PrincipalName};
pub use reasons::{QuotaLimit, Unfit};
