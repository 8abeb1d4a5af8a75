//! Connections to registries that can take another request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use avfs_policy::HostPort;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;

/// How long one is kept, how many of one host, and how many hosts.
const KEPT: Duration = Duration::from_secs(20);
const KEPT_PER_HOST: usize = 8;
const HOSTS_MAX: usize = 64;

pub(crate) type Origin = SendRequest<Empty<Bytes>>;
type Place = (bool, HostPort);

#[derive(Default)]
pub(crate) struct Origins(Mutex<HashMap<Place, Vec<(Origin, Instant)>>>);

impl Origins {
    /// One that was used last.
    pub(crate) fn take(&self, secure: bool, at: &HostPort) -> Option<Origin> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get_mut(&(secure, at.clone()))?;
        kept.retain(|(origin, since)| since.elapsed() < KEPT && !origin.is_closed());
        kept.pop().map(|(origin, _)| origin)
    }

    pub(crate) fn keep(&self, secure: bool, at: &HostPort, origin: Origin) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, kept| {
            kept.retain(|(origin, since)| since.elapsed() < KEPT && !origin.is_closed());
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
