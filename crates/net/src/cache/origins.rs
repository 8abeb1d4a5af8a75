//! Connections to registries that can take another request.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use avfs_policy::HostPort;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;

/// How long one is kept, how many of one host, and how many hosts.
const KEPT: Duration = Duration::from_secs(20);
const KEPT_PER_HOST: usize = 32;
const HOSTS_MAX: usize = 64;

/// A connection to a registry, and the address that it is to, if that is known.
pub(crate) struct Origin {
    pub(crate) sender: SendRequest<Empty<Bytes>>,
    pub(crate) address: Option<IpAddr>,
}

/// Over TLS or not, and the host.
type Place = (bool, HostPort);

#[derive(Default)]
pub(crate) struct Origins(Mutex<HashMap<Place, Vec<(Origin, Instant)>>>);

impl Origins {
    /// The one that was used last of those whose address may be dialled.
    pub(crate) fn take(
        &self,
        secure: bool,
        at: &HostPort,
        may: impl Fn(IpAddr) -> bool,
    ) -> Option<Origin> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get_mut(&(secure, at.clone()))?;
        kept.retain(is_usable);
        let place = kept
            .iter()
            .rposition(|(origin, _)| origin.address.is_none_or(&may))?;
        Some(kept.remove(place).0)
    }

    /// Keeps one, as soon as its last answer has been read.
    pub(crate) async fn keep(&self, secure: bool, at: &HostPort, mut origin: Origin) {
        if origin.sender.ready().await.is_err() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, kept| {
            kept.retain(is_usable);
            !kept.is_empty()
        });
        if all.len() < HOSTS_MAX {
            let kept = all.entry((secure, at.clone())).or_default();
            if kept.len() < KEPT_PER_HOST {
                kept.push((origin, Instant::now()));
            }
        }
    }
}

fn is_usable((origin, since): &(Origin, Instant)) -> bool {
    since.elapsed() < KEPT && !origin.sender.is_closed()
}
