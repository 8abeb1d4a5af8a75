//! Callbacks on the caller's own thread: what is told comes from a connection whose event loop must not be blocked by a
//! callback that asks for something itself.

use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use std::thread;

/// What is told may wait so long for a slow caller before the teller has to.
const QUEUE: usize = 16;

/// Does the work on another thread, and calls `each` here with all that it tells. Once `each` breaks off, whoever tells
/// learns that.
pub(crate) fn meanwhile<E: Send, T: Send>(
    each: impl FnMut(E) -> ControlFlow<()>,
    work: impl FnOnce(&dyn Fn(E) -> ControlFlow<()>) -> T + Send,
) -> T {
    thread::scope(|scope| {
        let (teller, told) = sync_channel(QUEUE);
        let worker = scope.spawn(move || {
            work(&|event| match teller.send(event) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        });
        let _ = told.into_iter().try_for_each(each);
        let done = worker.join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
