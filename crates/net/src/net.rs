//! The threads that serve the networks of all sandboxes.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::authority::AuthorityMaker;
use crate::config::Config;
use crate::error::Error;
use crate::execs::Execs;
use crate::sandbox::{Attribution, Sink, Sockets};
use crate::served::Served;
use crate::service::{Common, Service};
use crate::trust::Trust;

/// Serves the networks of sandboxes, on threads of its own. They are started with the first sandbox or forward. Dropping it ends all
/// connections.
pub struct Net {
    pub(crate) common: Arc<Common>,
    runtime: Mutex<Option<Runtime>>,
    pub(crate) stop: CancellationToken,
}

impl Net {
    /// Starts nothing yet.
    pub fn new(config: Config) -> Net {
        let bounds = config.bounds;
        Net {
            common: Arc::new(Common {
                config,
                trust: Trust::default(),
                connections: Arc::new(Semaphore::new(bounds.connections)),
                resolutions: Arc::new(Semaphore::new(bounds.resolutions)),
                forwarded: Arc::new(Semaphore::new(bounds.forwarded_connections)),
                forward_dials: Arc::new(Semaphore::new(bounds.forward_dials)),
            }),
            runtime: Mutex::default(),
            stop: CancellationToken::new(),
        }
    }

    /// Serves a sandbox until the answer is dropped. Names are answered at once; proxies and ports are opened with the first
    /// command that may reach something, and an authority is made with the first whose terms open TLS. Without a way to make one, no
    /// TLS can be opened.
    pub fn serve(
        &self,
        sockets: Arc<dyn Sockets>,
        attribution: Arc<dyn Attribution>,
        sink: Arc<dyn Sink>,
        authority: Option<AuthorityMaker>,
    ) -> Result<Served, Error> {
        let handle = self.handle()?;
        let bounds = self.common.config.bounds;
        let execs = Arc::new(Execs::new(attribution, sink, bounds));
        let stop = self.stop.child_token();
        let common = Arc::clone(&self.common);
        let service = Service::new(common, execs, authority, sockets, handle, stop);
        Served::open(Arc::new(service))
    }

    pub(crate) fn handle(&self) -> Result<Handle, Error> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }
        let bounds = self.common.config.bounds;
        let started = Builder::new_multi_thread()
            .worker_threads(bounds.threads)
            // Resolutions and forwards have their own bounds. The rest is for sockets made and commands found.
            .max_blocking_threads(bounds.resolutions + bounds.forward_dials + bounds.threads * 8)
            .thread_name("avfs-net")
            .enable_all()
            .build()
            .map_err(Error::Threads)?;
        let handle = started.handle().clone();
        *runtime = Some(started);
        Ok(handle)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.stop.cancel();
        let runtime = self
            .runtime
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // A resolver that hangs is not waited for.
        if let Some(runtime) = runtime.take() {
            runtime.shutdown_background();
        }
    }
}
