//! What an answer is kept under.

use std::fmt;
use std::sync::OnceLock;

use avfs_policy::HostPort;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue};

/// The headers of a client that go to the host. They are part of the key, so that an answer is for those alone who sent the same.
pub(crate) const SENT: [HeaderName; 2] = [ACCEPT, ACCEPT_ENCODING];

/// The hash of everything that an answer depends on: scheme, host, port, path and query as they were written, the headers
/// of [`SENT`], and the credentials that the request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

/// Hashes credentials with a key that is in memory only, so that a file name tells nothing about them. Answers to requests with
/// credentials are found again by this daemon alone.
#[derive(Default)]
pub(crate) struct Credentials(OnceLock<Option<[u8; 32]>>);

impl Credentials {
    /// Nothing where no random key can be had.
    fn hash(&self, secrets: &[(HeaderName, HeaderValue)]) -> Option<[u8; 32]> {
        let key = self.0.get_or_init(|| {
            let mut key = [0; 32];
            let flags = rustix::rand::GetRandomFlags::empty();
            let got = rustix::rand::getrandom(&mut key, flags);
            got.is_ok_and(|bytes| bytes == key.len()).then_some(key)
        });
        let mut hasher = blake3::Hasher::new_keyed(key.as_ref()?);
        for (name, value) in secrets {
            part(&mut hasher, name.as_str().as_bytes());
            part(&mut hasher, value.as_bytes());
        }
        Some(hasher.finalize().into())
    }
}

impl Key {
    /// None if the answer cannot be kept.
    pub(crate) fn of(
        secure: bool,
        at: &HostPort,
        path: &str,
        headers: &HeaderMap,
        credentials: &Credentials,
        secrets: &[(HeaderName, HeaderValue)],
    ) -> Option<Key> {
        let mut hasher = blake3::Hasher::new();
        // Each part with its length, so that no two lists of parts are one text.
        part(&mut hasher, if secure { b"https" } else { b"http" });
        part(&mut hasher, at.host.to_string().as_bytes());
        part(&mut hasher, &at.port.to_be_bytes());
        part(&mut hasher, path.as_bytes());
        for name in &SENT {
            let values: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
            part(&mut hasher, &values.len().to_be_bytes());
            values
                .iter()
                .for_each(|value| part(&mut hasher, value.as_bytes()));
        }
        if !secrets.is_empty() {
            part(&mut hasher, &credentials.hash(secrets)?);
        }
        Some(Key(hasher.finalize().into()))
    }

    /// The key that a file name says.
    pub(crate) fn parse(text: &str) -> Option<Key> {
        let hash = blake3::Hash::from_hex(text).ok()?;
        // The same bytes have one name.
        (hash.to_hex().as_str() == text).then(|| Key(hash.into()))
    }
}

fn part(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::AUTHORIZATION;

    #[test]
    fn every_part_makes_another_key() {
        let credentials = Credentials::default();
        let secret = |text: &'static str| vec![(AUTHORIZATION, HeaderValue::from_static(text))];
        let key = |secure, at: &str, path: &str, accept: &[&'static str], secrets: &[_]| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            let at = HostPort::parse(at).unwrap();
            Key::of(secure, &at, path, &headers, &credentials, secrets).unwrap()
        };
        let all = [
            key(true, "a.test:443", "/x", &[], &[]),
            key(false, "a.test:443", "/x", &[], &[]),
            key(true, "a.test:80", "/x", &[], &[]),
            key(true, "b.test:443", "/x", &[], &[]),
            key(true, "a.test:443", "/X", &[], &[]),
            key(true, "a.test:443", "/x?", &[], &[]),
            key(true, "a.test:443", "/y/../x", &[], &[]),
            key(true, "a.test:443", "/%78", &[], &[]),
            key(true, "a.test:443", "/x", &["a"], &[]),
            key(true, "a.test:443", "/x", &["a", "b"], &[]),
            key(true, "a.test:443", "/x", &["ab"], &[]),
            key(true, "a.test:443", "/x", &[], &secret("one")),
            key(true, "a.test:443", "/x", &[], &secret("two")),
        ];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(Key::parse(&one.to_string()), Some(*one));
            assert!(!all[..at].contains(one), "{at}");
        }
        let again = key(true, "A.test:443", "/x", &[], &[]);
        assert_eq!(again, all[0]);
        for text in ["", "x", &all[0].to_string().to_uppercase(), &"0".repeat(63)] {
            assert!(Key::parse(text).is_none(), "{text}");
        }
    }
}
