//! What holds for every sandbox that a [`crate::Net`] serves.

use std::sync::Arc;
use std::time::Duration;

use crate::cache::Cache;
use crate::resolve::{HostResolver, Resolve};
use crate::trust::Roots;
use crate::upstream::Upstream;

/// What holds for every sandbox.
#[derive(Clone)]
pub struct Config {
    pub resolver: Arc<dyn Resolve>,
    /// The proxy that the host itself needs.
    pub upstream: Upstream,
    /// Whose certificates are believed where TLS is opened.
    pub roots: Roots,
    /// Where answers of package registries are kept; nowhere when none.
    pub cache: Option<Cache>,
    pub bounds: Bounds,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            resolver: Arc::new(HostResolver),
            upstream: Upstream::default(),
            roots: Roots::default(),
            cache: None,
            bounds: Bounds::default(),
        }
    }
}

/// How much of everything there may be.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub threads: usize,
    /// Connections at once of all sandboxes. Each takes two descriptors.
    pub connections: usize,
    pub connections_per_sandbox: usize,
    /// Connections at once from the host into all sandboxes, beside those above.
    pub forwarded_connections: usize,
    pub connections_per_forward: usize,
    /// Sockets that are being made for such connections, for all forwards and for one. Each blocks a thread.
    pub forward_dials: usize,
    pub dials_per_forward: usize,
    pub execs_per_sandbox: usize,
    /// Names that get an address in one sandbox.
    pub names_per_sandbox: usize,
    /// Sockets that listen in one sandbox.
    pub listeners_per_sandbox: usize,
    /// Different attempts that are kept per command.
    pub attempts_per_exec: usize,
    /// Names that are being resolved on the host at once, for all sandboxes.
    pub resolutions: usize,
    /// Those of one sandbox, so that slow names of one do not keep others waiting.
    pub resolutions_per_sandbox: usize,
    /// DNS questions of one sandbox that are being answered at once.
    pub questions: usize,
    pub header_bytes: usize,
    pub hello_bytes: usize,
    /// For the head of a request, a TLS greeting, or a SOCKS request to arrive.
    pub greeting_time: Duration,
    /// For a name to be resolved and a connection to be made.
    pub dial_time: Duration,
    /// How long a connection may be silent.
    pub idle_time: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            threads: 2,
            connections: 4096,
            connections_per_sandbox: 1024,
            forwarded_connections: 4096,
            connections_per_forward: 1024,
            forward_dials: 16,
            dials_per_forward: 4,
            execs_per_sandbox: 256,
            names_per_sandbox: 32_768,
            listeners_per_sandbox: 512,
            attempts_per_exec: 512,
            resolutions: 32,
            resolutions_per_sandbox: 8,
            questions: 64,
            header_bytes: 64 * 1024,
            hello_bytes: 16 * 1024,
            greeting_time: Duration::from_secs(5),
            dial_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(3600),
        }
    }
}
