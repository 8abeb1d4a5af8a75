//! The terminal this program is at, as far as its size goes.

use crate::error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Says how large it is: lines, and characters in a line.
pub type Window = Box<dyn Fn() -> Option<(u16, u16)> + Send>;

/// Waits for another size than was told before; for ever where there is no terminal.
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

    /// The next size, as soon as there is a call that can be told it.
    pub async fn next_for<T>(&mut self, call: Option<T>) -> (T, (u16, u16)) {
        match call {
            Some(call) => (call, self.next().await),
            None => std::future::pending().await,
        }
    }

    /// Looks before it waits: a change is no signal to whoever did not listen yet.
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
