//! The API: types, HTTP and SSE, the daemon and its client.
//!
//! A request goes `client` → socket → `http` → `ops` → `avfs_runtime` and back. [`table`] has a row for every operation,
//! from which the rest is generated. [`wire`] has the request and answer types. `http` makes routes of the rows. `ops` has
//! the handlers, behind one gate, on threads that may block. [`daemon`] owns the socket. [`start`] starts a daemon if a
//! client finds none. [`Embedded`] runs the handlers in this process, without a socket. Async stops here.

mod auth;
pub mod bounds;
pub mod client;
mod crowd;
pub mod daemon;
pub mod daemon_paths;
mod embedded;
pub mod environment;
mod error;
mod heard;
pub mod http;
mod interrupt;
pub mod mcp;
mod ops;
mod outbound;
mod serving;
pub mod start;
pub mod table;
pub mod wire;

pub use client::Client;
pub use daemon_paths::DaemonPaths;
pub use embedded::{Embedded, EmbeddedConfig};
pub use error::{Error, Result};
pub use interrupt::on_interrupt;
