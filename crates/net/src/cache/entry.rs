//! One answer as it is kept: its head and what is known of its body in one file, the body in another.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_cache_semantics::{CacheOptions, CachePolicy};
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED,
    PRAGMA,
};
use hyper::http::{request, response};
use serde::{Deserialize, Serialize};

/// A larger head is no answer of a registry.
pub(super) const HEAD_MAX: u64 = 256 << 10;
pub(super) const VERSION: u32 = 1;

/// How long an answer is good is what its host says, and nothing is guessed: a new release must be seen. The one exception is
/// [`policy_of_release`].
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

impl Stored {
    /// What an answer counts for. The head counts as well, so that many small answers have a bound too.
    pub fn size(&self) -> u64 {
        self.length.saturating_add(4096)
    }
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

    /// Whether the host sent such a header.
    pub(crate) fn has(&self, name: &HeaderName) -> bool {
        self.stored.headers.contains_key(name)
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

/// How a released file is kept whose host says nothing about it.
const RELEASE: HeaderValue = HeaderValue::from_static("max-age=600");
/// What a host can say about it.
const SAID: [HeaderName; 5] = [CACHE_CONTROL, EXPIRES, PRAGMA, ETAG, LAST_MODIFIED];

/// As [`policy`], for a released file, whose address names its version. If its host says nothing at all about keeping it, it is good
/// for ten minutes (RFC 9111 section 4.2.2 leaves that to the cache).
pub(crate) fn policy_of_release(
    request: &request::Parts,
    answer: &response::Parts,
    now: SystemTime,
) -> Option<CachePolicy> {
    let is_said = SAID.iter().any(|name| answer.headers.contains_key(name));
    // A page in its place is a login, or an error.
    let kind = answer.headers.get(CONTENT_TYPE);
    let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/"));
    if is_said || is_page {
        return policy(request, answer, now);
    }
    let mut guessed = answer.clone();
    guessed.headers.insert(CACHE_CONTROL, RELEASE);
    policy(request, &guessed, now)
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
