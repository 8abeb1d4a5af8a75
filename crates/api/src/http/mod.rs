//! HTTP: every row of the table as a route.

mod bodies;
mod conditional;
mod docs;
mod errors;
mod events;
mod files;
mod guard;
mod health;
mod hosts;
mod kernel;
mod listen;
mod repeats;
mod retried;
mod routes;
mod streams;
mod telling;
mod terminals;
mod tls;
mod uncommitted;
mod watch;

pub use crate::auth::jwt::{Issuer, KeySource};
pub use crate::outbound::ServiceUrl;
pub(crate) use bodies::arrive;
pub(crate) use guard::agent as agent_of;
pub use hosts::Hosts;
pub use listen::{Listen, Plaintext};
pub(crate) use routes::router;
pub use tls::TlsFiles;
