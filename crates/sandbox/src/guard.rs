//! Our own processes kept from commands that would change how they run.
//!
//! In a sandbox all are one user, so the kernel lets a command set the priority, the scheduling
//! class and the processors of its supervisor, of others' and of the agent. A supervisor that gets
//! no processor holds nobody to a limit. So these calls, where they name a process, are announced to
//! the mover, and refused when they name one of ours.

use rustix::process::getpid;

use crate::notify::{Notice, PRIORITIES, SCHEDULES};
use crate::sys;

/// Whether a call that waits may be carried out; nothing when it is about something else.
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
/// Supervisors and the mover are the agent's children, and nothing else ever is: what a command
/// leaves behind becomes a child of its supervisor.
pub(crate) fn is_ours(task: i32) -> bool {
    const AGENT: i32 = 1;
    let own = getpid().as_raw_nonzero().get();
    let parent = || sys::parent_of(task);
    task == AGENT || task == own || parent().is_some_and(|pid| pid == AGENT || pid == own)
}
