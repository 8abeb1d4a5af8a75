//! HTTP: every row of the table as a route.

mod bodies;
mod errors;
mod events;
mod guard;
mod retried;
mod routes;
mod streams;
mod telling;
mod uncommitted;
mod watch;

pub(crate) use guard::agent as agent_of;
pub(crate) use routes::router;
