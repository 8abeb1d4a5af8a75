//! The size of this program's terminal.

use crate::error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Returns its size: rows and columns.
pub type Window = Box<dyn Fn() -> Option<(u16, u16)> + Send>;

/// Waits for a change of the size; forever if there is no terminal.
#[derive(Default)]
pub(super) struct Resizes(Option<Watched>);

struct Watched {
    window: Window,
    told: Option<(u16, u16)>,
    changes: Signal,
}

impl Resizes {
    pub fn watch(window: Option<Window>, told: Option<(u16, u16)>) -> Result<Resizes> {
        let Some(window) = window else {
            return Ok(Resizes(None));
        };
        let changes = signal(SignalKind::window_change()).map_err(Error::Setup)?;
        Ok(Resizes(Some(Watched {
            window,
            told,
            changes,
        })))
    }

    /// The next size, once the call can be told.
    pub async fn next_for<T>(&mut self, call: Option<T>) -> (T, (u16, u16)) {
        match call {
            Some(call) => (call, self.next().await),
            None => std::future::pending().await,
        }
    }

    /// Compares before it waits: a change before the signal handler existed sends no signal.
    pub async fn next(&mut self) -> (u16, u16) {
        let Some(watched) = &mut self.0 else {
            return std::future::pending().await;
        };
        loop {
            let size = (watched.window)();
            if let Some(size) = size.filter(|size| watched.told != Some(*size)) {
                watched.told = Some(size);
                return size;
            }
            watched.changes.recv().await;
        }
    }
}
