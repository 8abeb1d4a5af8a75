//! Protects our own processes against commands that would change their scheduling.
//!
//! All processes of a sandbox are of one user, so the kernel lets a command set the priority, the scheduling
//! class and the processors of supervisors and of the agent. A supervisor that gets no processor time enforces no
//! limit. So seccomp notifies the mover of these calls if they name a process, and the mover refuses them if they name
//! one of ours.

use rustix::process::getpid;

use crate::notify::{Notice, PRIORITIES, SCHEDULES};
use crate::sys;

/// Whether a waiting call may proceed; `None` if it is another call.
pub(crate) fn may_schedule(notice: &Notice) -> Option<bool> {
    let word = |index: usize| (notice.arguments[index] as u32).cast_signed();
    let task = if SCHEDULES.contains(&notice.call) {
        word(0)
    } else if PRIORITIES.iter().any(|(call, _)| *call == notice.call) {
        word(1)
    } else {
        return None;
    };
    Some(!is_ours(task))
}

/// Whether a thread is the agent's, a supervisor's or the mover's; this process is the mover.
///
/// Supervisors and the mover are the only children of the agent: orphans of a command become children of its
/// supervisor, which is a subreaper.
pub(crate) fn is_ours(task: i32) -> bool {
    const AGENT: i32 = 1;
    let own = getpid().as_raw_nonzero().get();
    let parent = || sys::parent_of(task);
    task == AGENT || task == own || parent().is_some_and(|pid| pid == AGENT || pid == own)
}
