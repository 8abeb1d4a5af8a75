//! Blocking work, on the threads of a pool.

use tokio::task::JoinHandle;

/// Runs it on such a thread. Stack pages that a deep tree has used are freed afterwards.
pub(crate) fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(move || {
        let done = work();
        avfs_runtime::give_back_stack();
        done
    })
}
