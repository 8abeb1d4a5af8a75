//! The limit on open files of this process and its children.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit at the start, if it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit to the hard limit: every live sandbox needs some descriptors.
///
/// Keepers, and with them commands, get the original limit: programs that loop over all descriptors, or use
/// `select`, need it low.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(before) = current.filter(|_| current != maximum) else {
        return;
    };
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    // With the lower limit only very many sandboxes fail, with a clear error.
    if setrlimit(Resource::Nofile, raised).is_ok() {
        BEFORE.get_or_init(|| before);
    }
}

/// The limit that a keeper restores.
pub(crate) fn before() -> Option<u64> {
    BEFORE.get().copied()
}

/// Gives this process a soft limit.
pub(crate) fn set(soft: u64) {
    let limit = Rlimit {
        current: Some(soft),
        ..getrlimit(Resource::Nofile)
    };
    // A soft limit below the hard one is always allowed.
    let _ = setrlimit(Resource::Nofile, limit);
}
