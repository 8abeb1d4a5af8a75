//! Names of stored directories and states.

use avfs_store::ObjectId;

use super::closed::id_text;

/// One directory, as an object.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(ObjectId);

/// A whole vault at one moment, as an object.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootId(ObjectId);

macro_rules! object_id {
    ($type:ident, $what:literal) => {
        impl $type {
            pub const fn new(object: ObjectId) -> $type {
                $type(object)
            }

            pub const fn object(self) -> ObjectId {
                self.0
            }
        }

        id_text!($type, $what);
    };
}

object_id!(TreeId, "tree id");
object_id!(RootId, "root id");

impl TreeId {
    /// The directory without entries. It is known to every store and never stored.
    pub const EMPTY: TreeId = TreeId(ObjectId::from_bytes([0; 32]));

    pub(crate) fn object_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_text_and_back() {
        let id = RootId::new(ObjectId::of(b"x"));
        assert_eq!(id.to_string().parse::<RootId>().unwrap(), id);
        assert!("x".parse::<TreeId>().is_err());
    }
}
