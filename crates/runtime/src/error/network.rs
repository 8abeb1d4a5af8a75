//! Errors of a sandbox's network.

use avfs_net::Error as Network;

use super::ErrorKind;

pub(super) fn network_kind(error: &Network) -> ErrorKind {
    match error {
        Network::Proxy(..) | Network::RequestRule(..) | Network::Secret(_) => ErrorKind::Invalid,
        Network::TooManyExecs(_) => ErrorKind::Conflict,
        Network::Entered => ErrorKind::Bug,
        Network::Threads(_)
        | Network::Socket(..)
        | Network::Route(..)
        | Network::Stopped
        | Network::Authority(_)
        | Network::NoAuthority => ErrorKind::Unavailable,
    }
}
