//! How many files this process may have open, and its children.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit that this process was started with, where it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Lets this process have as many files open as the host allows: every live sandbox takes some.
///
/// Keepers that it starts, and with them commands, have the limit from before: programs that go through all numbers
/// up to it, or use `select`, want it low.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(before) = current.filter(|_| current != maximum) else {
        return;
    };
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    // With the lower limit only very many sandboxes fail, and then with a clear error.
    if setrlimit(Resource::Nofile, raised).is_ok() {
        BEFORE.get_or_init(|| before);
    }
}

/// What a keeper is told to have instead.
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
