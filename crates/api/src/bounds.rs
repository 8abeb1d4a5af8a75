//! What the daemon takes from its clients at once: every body, answer, queue and wait has a bound.
//!
//! `docs/limits.md` has these numbers; a test compares them.

use std::time::Duration;

pub use avfs_runtime::bounds::*;

/// Bytes of a request in JSON. What is larger is sent as a stream of bytes.
pub const BODY_MAX: usize = 2 << 20;
/// Bytes of a request that carries a command: what a kernel takes, and room for escapes.
pub const COMMAND_BODY_MAX: usize = 3 << 20;
/// A body or an answer up to this size is nobody's concern.
pub(crate) const SMALL: usize = 32 << 10;
/// Bytes of all larger bodies together, each held until its request is done.
pub const BODIES_MAX: usize = 4 << 20;
/// Bytes of all larger answers that were not read yet, together.
pub const ANSWERS_MAX: usize = 16 << 20;
/// Connections at once, and of one process.
pub const CONNECTIONS_MAX: usize = 512;
pub const CONNECTIONS_OF_ONE_MAX: usize = 256;
/// Bytes of a request's head.
pub const HEAD_MAX: usize = 64 << 10;
/// How long a request's head may take, which is also how long a connection may lie idle.
pub const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a request in JSON may take to arrive.
pub const BODY_TIME: Duration = Duration::from_secs(30);
/// How long a stream of bytes may pause.
pub const PAUSE_TIME: Duration = Duration::from_secs(600);
/// How long what was refused is still listened to, so that whoever sends it reads why.
pub const DRAIN_TIME: Duration = Duration::from_secs(30);
/// How long a client may leave an answer unread; events may wait for ever.
pub const UNREAD_TIME: Duration = Duration::from_secs(60);
/// How long a request waits for its turn.
pub const TURN_TIME: Duration = Duration::from_secs(30);

/// How many requests of one kind are served at once.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct LaneBound {
    /// What is in it.
    pub name: &'static str,
    pub total: usize,
    /// Of these, what agents may take: the rest is kept for the owner.
    pub agents: usize,
    /// Of these, what one process may take.
    pub one: usize,
    /// How long a request waits for its turn.
    pub patience: Duration,
}

const fn lane(name: &'static str, total: usize, agents: usize, one: usize) -> LaneBound {
    LaneBound {
        name,
        total,
        agents,
        one,
        patience: TURN_TIME,
    }
}

/// Signals, cancelling, the daemon itself.
pub const CONTROL: LaneBound = lane("control", 16, 8, 4);
/// What takes next to no time.
pub const SHORT: LaneBound = lane("short", 24, 16, 8);
/// Answers of up to a few MiB.
pub const CONTENT: LaneBound = lane("content", 4, 3, 2);
/// Walks over whole vaults.
pub const WALK: LaneBound = lane("walk", 4, 3, 2);
/// Content of any size, in or out.
pub const STREAM: LaneBound = lane("stream", 32, 24, 8);
/// Waiting for a job, or following it. Nobody waits in order to wait.
pub const WAIT: LaneBound = LaneBound {
    patience: Duration::ZERO,
    ..lane("wait", 128, 96, 32)
};
/// Commands, and long work on the host.
pub const RUN: LaneBound = lane("run", 256, 192, 128);

pub const LANES: [LaneBound; 7] = [CONTROL, SHORT, CONTENT, WALK, STREAM, WAIT, RUN];

/// Threads that serve: one for every place, and some for the daemon itself.
pub(crate) const THREADS: usize = {
    let mut sum = 16;
    let mut at = 0;
    while at < LANES.len() {
        sum += LANES[at].total;
        at += 1;
    }
    sum
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_client_can_take_every_place() {
        for lane in LANES {
            assert!(
                lane.one < lane.total && lane.agents < lane.total,
                "{lane:?}"
            );
        }
        const { assert!(CONNECTIONS_OF_ONE_MAX < CONNECTIONS_MAX) };
        const { assert!(COMMAND_BODY_MAX < BODIES_MAX) };
    }
}
