//! Descriptors, of which a process has only so many, and every live view takes some.

use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use crate::runtime::Runtime;

/// What opening a view and serving requests meanwhile may take. A descriptor that cannot be received is lost, and with it
/// the sandbox that it stands for, so this is looked at before.
const HEADROOM: u64 = 64;

impl Runtime {
    /// Closes views in which nothing happens, those first that have not been used for longest, while few descriptors are left.
    pub(crate) fn make_room_for_descriptors(&self) {
        if is_roomy() {
            return;
        }
        let mut slots = self.slots();
        // A slot at which somebody is at work, or that is being opened, is not idle.
        slots.retain(|slot| slot.is_idle());
        slots.sort_by_key(|slot| slot.last_used());
        for slot in slots {
            slot.tidy(self, Duration::ZERO);
            if is_roomy() {
                return;
            }
        }
    }
}

fn is_roomy() -> bool {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    count().is_none_or(|open| open.saturating_add(HEADROOM) <= most)
}

/// How many descriptors are open.
fn count() -> Option<u64> {
    let known = std::fs::metadata("/proc/self/fd").ok()?.len();
    if known > 0 {
        return Some(known);
    }
    // Older kernels do not say it in one word.
    let listed = std::fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(listed).ok()
}
