//! What a sandbox may reach, served from outside of it.
//!
//! A sandbox has a network namespace with only a loopback interface. The sockets that listen there are made inside
//! ([`Sockets`]), and served here, on threads of this crate. So nothing of ours runs inside, and nothing there can be
//! stopped or replaced by a command.
//!
//! A command can name a host in four ways, and each leads to one decision ([`avfs_policy::HostList::decide`]): it asks for the
//! address of a name and connects to it, it sends a request to the HTTP proxy, it asks that proxy for a tunnel, or it asks the SOCKS
//! proxy for one. A name that is listed has an address of its own inside the sandbox, so the address that a
//! connection is made to says which name was meant. Names are resolved here, once for each connection, and dialled as checked.
//!
//! This crate knows no vault and no sandbox. `docs/network.md` says what a list of hosts cannot stop.

#![forbid(unsafe_code)]

mod attempts;
mod authority;
mod cache;
mod config;
mod dial;
mod doors;
mod error;
mod exec_key;
mod execs;
mod fetch;
mod forwards;
mod hosts_file;
mod mask;
mod meter;
mod names;
mod net;
mod refusal;
mod relay;
mod requests;
mod resolve;
mod sandbox;
mod served;
mod service;
mod terms;
mod trust;
mod upstream;

pub use attempts::{Attempt, Attempts, Door, Outcome};
pub use authority::{Authority, AuthorityMaker};
pub use cache::{Cache, CacheHealth, CachePlace, CacheUsage};
pub use config::{Bounds, Config};
pub use error::Error;
pub use exec_key::ExecKey;
pub use fetch::Fetched;
pub use forwards::{Forward, Inside, Way};
pub use hosts_file::HostsFile;
pub use mask::{Masker, Needles};
pub use net::Net;
pub use requests::{Inspect, RequestRule, RequestRules, Secret};
pub use resolve::{HostResolver, Resolve};
pub use sandbox::{Attribution, DNS, Ends, HTTP_PROXY, SOCKS_PROXY, Sink, Sockets, Transport};
pub use served::{Guard, Served};
pub use terms::Terms;
pub use trust::Roots;
pub use upstream::Upstream;
