//! The signals that ask a program to end.

use crate::error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for SIGINT, SIGTERM or SIGHUP.
pub(crate) struct Interrupts([Signal; 3]);

impl Interrupts {
    pub fn watch() -> Result<Interrupts> {
        let watch = |kind| signal(kind).map_err(Error::Setup);
        Ok(Interrupts([
            watch(SignalKind::interrupt())?,
            watch(SignalKind::terminate())?,
            watch(SignalKind::hangup())?,
        ]))
    }

    pub async fn next(&mut self) -> Interrupt {
        let [interrupt, terminate, hangup] = &mut self.0;
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
