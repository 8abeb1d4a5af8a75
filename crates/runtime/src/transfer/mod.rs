//! In and out: the verbs that lock a vault, call the crate `avfs-transfer`, and record what was done.

mod apply;
mod directory;
mod export;
mod import;

use std::path::PathBuf;

use crate::runtime::Runtime;

pub use apply::{ApplyMode, ApplyRequest};
pub use export::ExportTo;
pub use import::{Import, ImportFrom, Imported};

/// Where it is noted, in the home, what exports make beside their targets and what is being applied to the host.
const NOTES: &str = "exports";

impl Runtime {
    /// Finishes or undoes what exports of a daemon that died left on the host.
    pub(crate) fn finish_interrupted_exports(&self) {
        avfs_transfer::finish_interrupted(&self.notes());
    }

    fn notes(&self) -> PathBuf {
        self.inner.work.directory.join(NOTES)
    }
}
