//! Package registries: the hosts that the word `registries` of a network list stands for.
//!
//! They are worked out on the host, from the owner's own configuration of pip, npm and cargo (`pip.rs`, `npm.rs`, `cargo.rs`), and from
//! what these programs use without any, which they are asked for (`ask.rs`): no name of a registry is in this source. What a vault holds
//! is not looked at: a command could have written it. Credentials of the configuration are held in memory, and put into
//! requests on their way out, as secrets are.

mod address;
mod ask;
mod cargo;
mod known;
mod look;
mod npm;
mod pip;
mod recorder;

pub(crate) use known::KnownRegistries;
pub use look::{Origin, RegistryHost, RegistryProblem, RegistryTool};
