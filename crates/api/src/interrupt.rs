//! The signals that ask a program to end.

use crate::error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for SIGINT, SIGTERM or SIGHUP; for ever where nobody watches for them.
pub(crate) struct Interrupts(Option<[Signal; 3]>);

impl Interrupts {
    pub fn watch() -> Result<Interrupts> {
        let watch = |kind| signal(kind).map_err(Error::Setup);
        Ok(Interrupts(Some([
            watch(SignalKind::interrupt())?,
            watch(SignalKind::terminate())?,
            watch(SignalKind::hangup())?,
        ])))
    }

    /// Leaves the signals to the program.
    pub fn never() -> Interrupts {
        Interrupts(None)
    }

    pub async fn next(&mut self) -> Interrupt {
        let Some([interrupt, terminate, hangup]) = &mut self.0 else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => Interrupt::CtrlC,
            _ = terminate.recv() => Interrupt::End,
            _ = hangup.recv() => Interrupt::End,
        }
    }
}

/// Which signal arrived.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Interrupt {
    /// Ctrl-C.
    CtrlC,
    End,
}

/// Calls `then` on a separate thread when a signal arrives, instead of ending the program.
pub fn on_interrupt(then: impl FnOnce() + Send + 'static) -> Result<()> {
    let event_loop = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Setup)?;
    let mut interrupts = {
        let _inside = event_loop.enter();
        Interrupts::watch()?
    };
    std::thread::spawn(move || {
        event_loop.block_on(interrupts.next());
        then();
    });
    Ok(())
}
