//! What went wrong with a network or a port, and what to do about it.

use std::io::ErrorKind as Io;

use avfs_net::Error as Net;

use super::{Error, ErrorKind};

/// Which of the kinds it is.
pub(super) fn network_kind(error: &Net) -> ErrorKind {
    match error {
        Net::Proxy(..) | Net::RequestRule(..) | Net::RequestRules(_) | Net::Secret(_) => {
            ErrorKind::Invalid
        }
        Net::Entered => ErrorKind::Bug,
        Net::TooManyExecs(_) => ErrorKind::Conflict,
        Net::Listen(_, source) => match source.kind() {
            Io::AddrInUse => ErrorKind::Conflict,
            Io::PermissionDenied => ErrorKind::Denied,
            Io::AddrNotAvailable => ErrorKind::Invalid,
            _ => ErrorKind::Unavailable,
        },
        _ => ErrorKind::Unavailable,
    }
}

impl Error {
    pub(super) fn port_hint(&self) -> Option<String> {
        let hint = match self {
            Error::NoForward { .. } => "`avfs port list` shows which do",
            Error::TooManyForwards { .. } => "remove some with `avfs port remove`",
            Error::Network(Net::Listen(_, source)) => match source.kind() {
                Io::AddrInUse => "leave the host's port out, and a free one is picked",
                Io::PermissionDenied => "ports below 1024 are for root; take a higher one",
                Io::AddrNotAvailable => "--listen takes an address that this host has",
                _ => return None,
            },
            _ => return None,
        };
        Some(hint.into())
    }
}
