//! One answer as it is kept: its head and what is known of its body in one file, the body in another.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_cache_semantics::{CacheOptions, CachePolicy};
use hyper::header::HeaderMap;
use hyper::http::{request, response};
use serde::{Deserialize, Serialize};

/// A larger head is no answer of a registry.
pub(super) const HEAD_MAX: u64 = 256 << 10;
pub(super) const VERSION: u32 = 1;

/// How long an answer is good is what its host says, and nothing is guessed: a new release must be seen.
const OPTIONS: CacheOptions = CacheOptions {
    shared: true,
    cache_heuristic: 0.0,
    immutable_min_time_to_live: Duration::from_secs(24 * 3600),
    ignore_cargo_cult: false,
};

/// The file of a head.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    pub version: u32,
    /// The key that it is for, so that a renamed file is no answer.
    pub key: String,
    /// The name of the file of the body.
    pub body: String,
    pub length: u64,
    /// BLAKE3, in hexadecimal.
    pub checksum: String,
    #[serde(with = "http_serde::header_map")]
    pub headers: HeaderMap,
    /// When it may be used.
    pub policy: CachePolicy,
}

/// An answer whose body has been read and is whole.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(super) stored: Stored,
    pub(crate) body: Arc<File>,
}

impl Entry {
    pub(crate) fn policy(&self) -> &CachePolicy {
        &self.stored.policy
    }

    /// Its headers as the host sent them.
    pub(crate) fn headers(&self) -> HeaderMap {
        self.stored.headers.clone()
    }

    pub(crate) fn length(&self) -> u64 {
        self.stored.length
    }

    /// This answer after its host has said that it is still the one.
    pub(crate) fn renewed(&self, policy: CachePolicy, headers: HeaderMap) -> Entry {
        let mut entry = self.clone();
        entry.stored.policy = policy;
        entry.stored.headers = headers;
        entry
    }
}

/// When an answer may be used again; none if it may not be kept, or if keeping it would be of no use.
pub(crate) fn policy(
    request: &request::Parts,
    answer: &response::Parts,
    now: SystemTime,
) -> Option<CachePolicy> {
    let policy = CachePolicy::new_options(request, answer, now, OPTIONS);
    let validators = ["etag", "last-modified"];
    let useful = !policy.is_stale(now)
        || validators
            .iter()
            .any(|name| answer.headers.contains_key(*name));
    let whole = answer.status == 200 && !answer.headers.contains_key("content-range");
    (whole && useful && policy.is_storable()).then_some(policy)
}

/// Reads a body to its end, and says whether it is what the head says.
pub(super) fn is_whole(body: &mut File, stored: &Stored) -> io::Result<bool> {
    if body.metadata()?.len() != stored.length {
        return Ok(false);
    }
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match body.read(&mut buffer)? {
            0 => break,
            bytes => hasher.update(&buffer[..bytes]),
        };
    }
    body.rewind()?;
    Ok(hasher.finalize().to_hex().as_str() == stored.checksum)
}
