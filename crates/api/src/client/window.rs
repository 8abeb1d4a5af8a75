//! The terminal this program is at, as far as its size goes.

use crate::error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Says how large it is: lines, and characters in a line.
pub type Window = Box<dyn Fn() -> Option<(u16, u16)> + Send>;

/// Waits for another size; for ever where there is no terminal.
#[derive(Default)]
pub(super) struct Resizes(Option<(Signal, Window)>);

impl Resizes {
    pub fn watch(window: Option<Window>) -> Result<Resizes> {
        let Some(window) = window else {
            return Ok(Resizes(None));
        };
        let changes = signal(SignalKind::window_change()).map_err(Error::Setup)?;
        Ok(Resizes(Some((changes, window))))
    }

    pub async fn next(&mut self) -> (u16, u16) {
        let Some((changes, window)) = &mut self.0 else {
            return std::future::pending().await;
        };
        loop {
            changes.recv().await;
            if let Some(size) = window() {
                return size;
            }
        }
    }
}
