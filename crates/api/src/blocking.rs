//! Work that may wait, on threads that serve one request after another.

use tokio::task::JoinHandle;

/// Does it on such a thread. What a deep tree has used of the thread's stack is given back afterwards.
pub(crate) fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(move || {
        let done = work();
        avfs_runtime::give_back_stack();
        done
    })
}
