//! Tests of the network of sandboxes, through real sockets.
//!
//! Each test runs in a process with a user namespace and a network namespace of its own, so that nothing leaves it and no port of
//! the machine is used. There, the servers and the crate under test are in the one network namespace, and each sandbox
//! is a thread in another (`space.rs`). No test needs root.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures are to be read")]

mod attacks;
mod cache;
mod client;
mod doors;
mod forwards;
mod inspect;
mod load;
mod servers;
mod space;
mod speed;
mod terms;
mod upstream;
mod world;
