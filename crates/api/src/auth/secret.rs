//! What the holder of a key shows: an id that is no secret, and 256 random bits.

use crate::ops::failure::Failure;
use avfs_runtime::ErrorKind;
use rustix::rand::{GetRandomFlags, getrandom};

/// What a key begins with, so that scanners for leaked secrets find one.
const PREFIX: &str = "avfs_";
/// For what the hash is: no other hash of ours can be mistaken for it.
const CONTEXT: &str = "agentvfs 2026 hash of an api key";

/// The part of a key that is no secret.
pub(crate) type KeyId = [u8; 6];

/// A key as it is shown.
pub(super) struct Secret {
    pub id: KeyId,
    bytes: [u8; 32],
}

impl Secret {
    pub fn fresh() -> Result<Secret, Failure> {
        Ok(Secret {
            id: random()?,
            bytes: random()?,
        })
    }

    /// None for text that is no key.
    pub fn parse(text: &str) -> Option<Secret> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        Some(Secret {
            id: from_hex(id)?,
            bytes: from_hex(secret)?,
        })
    }

    pub fn text(&self) -> String {
        format!("{PREFIX}{}_{}", to_hex(&self.id), to_hex(&self.bytes))
    }

    /// The secret has 256 random bits, so that one quick hash keeps it as well as a slow one would.
    pub fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(&self.id).update(&self.bytes);
        hasher.finalize()
    }
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(length) if length == N => Ok(bytes),
        _ => {
            let problem = "the kernel gives no random numbers";
            Err(Failure::new(ErrorKind::Unavailable, problem))
        }
    }
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
