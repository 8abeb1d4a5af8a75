//! The ways by which a command names a host: DNS, an HTTP proxy, a SOCKS proxy, and connections to a name's own address.

mod accept;
mod dns;
mod feed;
mod forward;
mod head;
mod hello;
mod http;
mod kept;
mod socks;
mod transparent;
mod tunnel;

pub(crate) use accept::{open_for, open_names, reset};
