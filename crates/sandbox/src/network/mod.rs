//! The network of a sandbox that has its own: a loopback interface, on which some ranges of addresses are local.
//!
//! A socket belongs to the network namespace in which it was made, whoever holds it. So the agent makes sockets and passes
//! them out, and the daemon binds or connects them: it has all capabilities over the namespace, also without root, because
//! its user made the user namespace that owns it. No process inside serves anything, and commands cannot
//! reach what the daemon holds.

mod birth;
mod diag;
mod holders;
mod listening;
mod namespace;
mod netlink;
mod owners;
mod range;
mod reach;
mod routes;
mod sockets;

pub(crate) use birth::{Born, set_up};
pub(crate) use holders::{Family, SOCKETS_MAX, find as find_holders};
pub(crate) use listening::connect_inside;
pub use listening::{ListenAddress, Listening, Listing};
pub(crate) use namespace::OwnNetwork;
pub use owners::{Owners, Transport};
pub use range::{AddressRange, FAKE_V4, FAKE_V6};
pub use sockets::SocketKind;
pub(crate) use sockets::make;
