//! The name of an object: the BLAKE3 hash of its bytes.

use std::fmt;
use std::str::FromStr;

#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash)]
pub struct ObjectId([u8; 32]);

impl ObjectId {
    /// The id of these bytes, whether they are stored or not.
    pub fn of(bytes: &[u8]) -> ObjectId {
        ObjectId(*blake3::hash(bytes).as_bytes())
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> ObjectId {
        ObjectId(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is no object id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an object id (64 hexadecimal digits)")]
pub struct InvalidId {
    pub text: String,
}

impl FromStr for ObjectId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<ObjectId, InvalidId> {
        match blake3::Hash::from_hex(text) {
            Ok(hash) => Ok(ObjectId(*hash.as_bytes())),
            Err(_) => Err(InvalidId {
                text: text.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let id = ObjectId::of(b"hello");
        assert_eq!(id.to_string().len(), 64);
        assert_eq!(id.to_string().parse::<ObjectId>().unwrap(), id);
        assert_eq!(format!("{id:?}"), id.to_string());
        assert!("abc".parse::<ObjectId>().is_err());
        assert!("zz".repeat(32).parse::<ObjectId>().is_err());
    }
}
