//! Everything with a wire: wire types, HTTP and SSE, the daemon and its client.
//!
//! A request walks `client` → socket → `http` → `avfs_runtime` and back. [`wire`] is the list of
//! operations and says what each one takes and gives; `http` turns it into runtime calls, each on
//! a thread that may block; [`daemon`] owns the socket; [`start`] brings a daemon up when a
//! client finds none. Async stops here.

pub mod bounds;
pub mod client;
pub mod daemon;
mod error;
mod heard;
mod http;
mod interrupt;
pub mod place;
mod serving;
pub mod start;
pub mod wire;

pub use client::Client;
pub use error::{Error, Result};
pub use interrupt::on_interrupt;
pub use place::Place;
