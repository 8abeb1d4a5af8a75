//! Limits of the daemon: every body, answer, queue and wait has one.
//!
//! `docs/limits.md` has these numbers; a test compares them.

use std::time::Duration;

pub use avfs_runtime::bounds::*;

/// Bytes of a request in JSON. Larger content is sent as a stream.
pub const BODY_MAX: usize = 2 << 20;
/// Bytes of a request with a command: what the kernel accepts, and space for JSON escapes.
pub const COMMAND_BODY_MAX: usize = 3 << 20;
/// Bodies and answers up to this size are not counted.
pub(crate) const SMALL: usize = 32 << 10;
/// Bytes of all larger bodies together, each held until its request is done.
pub const BODIES_MAX: usize = 4 << 20;
/// Bytes of all larger unread answers together.
pub const ANSWERS_MAX: usize = 16 << 20;
/// Connections at once, and of one process.
pub const CONNECTIONS_MAX: usize = 512;
pub const CONNECTIONS_OF_ONE_MAX: usize = 256;
/// Connections from the network at once, and from one address. Beyond that the one that was idle the longest is closed.
pub const REMOTE_CONNECTIONS_MAX: usize = 256;
pub const REMOTE_CONNECTIONS_OF_ONE_MAX: usize = 128;
/// Requests of one credential in a second, unless it has another rate; twice as many at once after a pause.
pub const REQUESTS_PER_SECOND: u32 = 1000;
/// Requests from one address in a second that show no good credential.
pub const FAILURES_PER_SECOND: u32 = 500;
/// Bytes of a token.
pub const TOKEN_MAX: usize = 16 << 10;
/// API keys of a home, revoked ones included.
pub const KEYS_MAX: usize = 1000;
/// Bytes of a request's headers.
pub const HEAD_MAX: usize = 64 << 10;
/// Headers of a request.
pub const HEADERS_MAX: usize = 100;
/// How long the headers of a request may take, and how long a connection may be idle.
pub const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a request in JSON may take to arrive.
pub const BODY_TIME: Duration = Duration::from_secs(30);
/// How long a stream of bytes may pause.
pub const PAUSE_TIME: Duration = Duration::from_secs(600);
/// How long the rest of a refused request is read, so that its sender reads the answer.
pub const DRAIN_TIME: Duration = Duration::from_secs(30);
/// How long a client may leave an answer unread; events have no such limit.
pub const UNREAD_TIME: Duration = Duration::from_secs(60);
/// How long a request waits for its turn.
pub const TURN_TIME: Duration = Duration::from_secs(30);

/// Answers that are kept for requests with an idempotency key: how many, how many of one caller, for how long, bytes of all
/// together, and of one.
pub const KEPT_ANSWERS_MAX: usize = 4096;
pub const KEPT_ANSWERS_OF_ONE: usize = 256;
pub const KEPT_ANSWERS_TIME: Duration = Duration::from_secs(24 * 3600);
pub const KEPT_ANSWERS_BYTES: usize = 8 << 20;
pub const KEPT_ANSWER_MAX: usize = 64 << 10;

/// Bytes of one message to a terminal.
pub const TERMINAL_MESSAGE_MAX: usize = 64 << 10;
/// Messages with input that wait for a command to read them. With so many, its client is not listened to.
pub const TERMINAL_UNREAD_MAX: usize = 8;

/// Bytes of one message of an MCP client.
pub const MCP_LINE_MAX: usize = 4 << 20;
/// Calls that one MCP client has under way; more are refused at once.
pub const MCP_CALLS_MAX: usize = 64;
/// Messages that wait for an MCP client to read them. With so many, it is not listened to.
pub const MCP_UNSENT_MAX: usize = 32;

/// How many requests of one kind are served at once.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct LaneBound {
    /// The name of the lane.
    pub name: &'static str,
    pub total: usize,
    /// How many of them agents may use: the rest is for the owner.
    pub agents: usize,
    /// How many of them one process may use.
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
/// Fast operations.
pub const SHORT: LaneBound = lane("short", 24, 16, 8);
/// Answers of up to a few MiB.
pub const CONTENT: LaneBound = lane("content", 4, 3, 2);
/// Walks over whole vaults.
pub const WALK: LaneBound = lane("walk", 4, 3, 2);
/// Content of any size, in or out.
pub const STREAM: LaneBound = lane("stream", 32, 24, 8);
/// Waiting for a job, or following it. A full lane answers at once.
pub const WAIT: LaneBound = LaneBound {
    patience: Duration::ZERO,
    ..lane("wait", 128, 96, 32)
};
/// Commands, and long work on the host.
pub const RUN: LaneBound = lane("run", 256, 192, 128);

pub const LANES: [LaneBound; 7] = [CONTROL, SHORT, CONTENT, WALK, STREAM, WAIT, RUN];

/// Threads: one for every place in a lane, and some for the daemon itself.
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
