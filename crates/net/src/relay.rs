//! Bytes from one connection to another, until both end or nothing moves.

use std::time::Duration;

use tokio::io::copy_bidirectional_with_sizes;
use tokio::time::sleep;

use crate::dial::Stream;
use crate::execs::Connection;

/// Per direction. Memory is touched only as far as bytes arrive.
const INTO_SANDBOX: usize = 64 * 1024;
const OUT_OF_SANDBOX: usize = 32 * 1024;

/// Copies in both directions. Ends when both ends are closed, one fails, or nothing moves for long.
pub(crate) async fn relay(
    connection: &Connection,
    idle: Duration,
    inside: &mut (impl Stream + ?Sized),
    outside: &mut (impl Stream + ?Sized),
) {
    let mut inside = inside;
    let mut outside = outside;
    tokio::select! {
        _ = copy_bidirectional_with_sizes(&mut inside, &mut outside, OUT_OF_SANDBOX, INTO_SANDBOX) => {}
        () = silence(connection, idle) => {}
    }
}

/// Ends when nothing has moved for a while.
pub(crate) async fn silence(connection: &Connection, idle: Duration) {
    let mut before = connection.meter.moved();
    loop {
        sleep(idle).await;
        let now = connection.meter.moved();
        if now == before {
            return;
        }
        before = now;
    }
}
