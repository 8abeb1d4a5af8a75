//! Why a text is no host, no rule about hosts, or no list of them.

use super::HostList;

/// Why a text is no host, no rule, or no list. Texts are quoted, since they may hold anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("the host is empty")]
    Empty,
    #[error("a host name has at most 253 characters, and each of its labels at most 63")]
    TooLong,
    #[error("{0:?} is no host name: a label is empty")]
    EmptyLabel(String),
    #[error("{0:?} is no host name: {1:?} may not be in one")]
    Character(String, char),
    #[error("{0:?} is no host name: a label begins or ends with a hyphen")]
    Hyphen(String),
    #[error("{0:?} is no valid international name")]
    International(String),
    #[error(
        "{0:?} is neither a name nor an address: write an IPv4 address as four decimal numbers without leading zeros"
    )]
    Numeric(String),
    #[error("{0:?} is no IPv6 address; a zone (`%eth0`) is not accepted")]
    Ipv6(String),
    #[error("{0:?} has no port: write HOST:PORT, and an IPv6 address in brackets")]
    NoPort(String),
    #[error("{0:?} is no port: write a number from 1 to 65535")]
    Port(String),
    #[error("{0:?} is no address range: write ADDRESS/BITS")]
    Range(String),
    #[error("{given:?} has bits set after its prefix: write {meant}")]
    HostBits { given: String, meant: String },
    #[error(
        "{0:?}: `*` stands for whole labels at the front: write *.example.com, or * for every name"
    )]
    Wildcard(String),
    #[error("{0} cannot be allowed: {1}")]
    NeverAllowed(String, &'static str),
    #[error("a list has at most {max} rules", max = HostList::MAX_RULES)]
    TooMany,
}
