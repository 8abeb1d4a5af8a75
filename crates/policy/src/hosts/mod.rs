//! Which hosts a command may reach: one parsed host type and one matcher for every way to name a host (DNS, CONNECT,
//! absolute-form HTTP, SOCKS, SNI, Host header).
//!
//! A host is parsed once, where it comes in, into a [`Host`]. Two texts that mean one host are equal afterwards, and a
//! text that programs read differently (an IPv4 address in octal, a zone id, a name with `%`) is no host at all.
//! [`HostList::decide`] says whether a host may be reached on a port. [`HostList::check_resolved`] says whether an address
//! that a name resolved to may be dialled.

mod error;
mod host;
mod list;
mod name;
mod range;
mod rule;
mod special;
#[cfg(test)]
mod tests;

pub use error::HostError;
pub use host::{Host, HostPort};
pub use list::{Denial, Hint, HostList, Verdict};
pub use name::HostName;
pub use range::AddressRange;
pub use rule::{HostPattern, HostRule, Ports};
pub use special::{Special, address_is_special};
