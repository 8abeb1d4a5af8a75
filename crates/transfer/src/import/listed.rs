//! A directory of the host that is being read, and what holds in it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use avfs_vault::VaultPath;

use super::filter::Rules;
use super::tracked::Tracked;

/// A directory whose names are being read.
pub struct Listed {
    pub fd: OwnedFd,
    pub path: VaultPath,
    pub rules: Option<Arc<Rules>>,
    pub ignored: Option<Arc<str>>,
    pub tracked: Option<Arc<Tracked>>,
}

/// What holds in a directory because of those above it.
#[derive(Default)]
pub struct Above {
    pub rules: Option<Arc<Rules>>,
    pub ignored: Option<Arc<str>>,
    pub tracked: Option<Arc<Tracked>>,
}

impl Listed {
    /// Why rules leave out `path`, which is in this directory; none if they do not.
    pub fn ignores(&self, path: &VaultPath, is_dir: bool) -> Option<Arc<str>> {
        self.ignored.clone().or_else(|| {
            let reason = self.rules.as_ref()?.ignores(path, is_dir)?;
            Some(reason.into())
        })
    }

    pub fn tracks(&self, path: &VaultPath, is_dir: bool) -> bool {
        let tracked = self.tracked.as_ref();
        tracked.is_some_and(|tracked| tracked.holds(path, is_dir))
    }
}
