//! The extended attributes of an entry: sorted by name, in one piece of memory that all copies of the entry share.
//!
//! A command can give thousands of names the same attributes, and an entry is copied often on its way into a tree. A map of
//! pairs of vectors would be dozens of small allocations for each copy.

use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Attributes by name. A copy costs nothing; a change makes a new piece of memory.
#[derive(Clone, Default, Eq)]
pub struct XattrMap {
    /// For each attribute the lengths of its name and value, 8 bytes each, then both. None are nothing.
    packed: Option<Arc<[u8]>>,
}

const LENGTH: usize = size_of::<u64>();

impl XattrMap {
    pub fn new() -> XattrMap {
        XattrMap::default()
    }

    pub fn is_empty(&self) -> bool {
        self.packed.is_none()
    }

    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Names and values together.
    pub fn bytes(&self) -> usize {
        self.iter()
            .map(|(name, value)| name.len() + value.len())
            .sum()
    }

    /// What it takes in memory, whoever shares it.
    pub(crate) fn weight(&self) -> usize {
        let packed = self.packed.as_ref();
        packed.map_or(0, |packed| packed.len() + 2 * size_of::<usize>())
    }

    pub fn iter(&self) -> Iter<'_> {
        Iter {
            rest: self.packed.as_deref().unwrap_or_default(),
        }
    }

    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.iter().map(|(name, _)| name)
    }

    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let found = self.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    pub fn contains_key(&self, name: &[u8]) -> bool {
        self.get(name).is_some()
    }

    /// Sets one attribute.
    pub fn insert(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let new = (name.as_ref(), value.as_ref());
        *self = self.iter().chain([new]).collect();
    }

    /// Removes one attribute; says whether it was there.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let is_there = self.contains_key(name);
        if is_there {
            *self = self.iter().filter(|(known, _)| *known != name).collect();
        }
        is_there
    }

    pub fn clear(&mut self) {
        self.packed = None;
    }

    /// Uses the memory of `other`, if that says the same.
    pub fn share(&mut self, other: &XattrMap) {
        if self == other {
            self.packed.clone_from(&other.packed);
        }
    }

    /// Whether both are one piece of memory.
    pub fn is_shared_with(&self, other: &XattrMap) -> bool {
        match (&self.packed, &other.packed) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl PartialEq for XattrMap {
    fn eq(&self, other: &XattrMap) -> bool {
        self.is_shared_with(other) || self.packed == other.packed
    }
}

/// The attributes in the order of their names.
#[derive(Clone)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = self.rest.split_first_chunk::<LENGTH>()?;
        let (value, rest) = rest.split_first_chunk::<LENGTH>()?;
        let (name, rest) = rest.split_at_checked(u64::from_le_bytes(*name) as usize)?;
        let (value, rest) = rest.split_at_checked(u64::from_le_bytes(*value) as usize)?;
        self.rest = rest;
        Some((name, value))
    }
}

impl<'a> IntoIterator for &'a XattrMap {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Of two with the same name, the later one counts.
impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for XattrMap {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> XattrMap {
        let mut pairs: Vec<(N, V)> = pairs.into_iter().collect();
        let is_in_order = pairs.is_sorted_by(|a, b| a.0.as_ref() < b.0.as_ref());
        if !is_in_order {
            // The later of two comes first, and so is the one that stays.
            pairs.reverse();
            pairs.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
            pairs.dedup_by(|a, b| a.0.as_ref() == b.0.as_ref());
        }
        pack(&pairs)
    }
}

fn pack<N: AsRef<[u8]>, V: AsRef<[u8]>>(pairs: &[(N, V)]) -> XattrMap {
    if pairs.is_empty() {
        return XattrMap::new();
    }
    let length = |(name, value): &(N, V)| 2 * LENGTH + name.as_ref().len() + value.as_ref().len();
    let mut packed = Vec::with_capacity(pairs.iter().map(length).sum());
    for (name, value) in pairs {
        let (name, value) = (name.as_ref(), value.as_ref());
        for part in [name, value] {
            packed.extend_from_slice(&(part.len() as u64).to_le_bytes());
        }
        packed.extend_from_slice(name);
        packed.extend_from_slice(value);
    }
    XattrMap {
        packed: Some(packed.into()),
    }
}

/// As a map of names to values.
impl fmt::Debug for XattrMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl Serialize for XattrMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (name, value) in self {
            map.serialize_entry(&Bytes(name), &Bytes(value))?;
        }
        map.end()
    }
}

/// Written at once, not as a sequence of numbers.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for XattrMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<XattrMap, D::Error> {
        deserializer.deserialize_map(Pairs)
    }
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = XattrMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names of attributes and their values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<XattrMap, A::Error> {
        let mut pairs: Vec<(&'de [u8], &'de [u8])> = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sample() -> XattrMap {
        let pairs: [(&str, &[u8]); 3] = [("user.b", b"2"), ("user.a", b""), ("user.b", b"\xff3")];
        pairs.into_iter().collect()
    }

    #[test]
    fn it_is_a_map() {
        let mut map = sample();
        let pairs: Vec<_> = map.iter().collect();
        assert_eq!(
            pairs,
            [(&b"user.a"[..], &b""[..]), (&b"user.b"[..], &b"\xff3"[..])]
        );
        assert_eq!((map.len(), map.bytes()), (2, 14));
        map.insert("user.aa", "1");
        assert_eq!(map.get(b"user.aa"), Some(&b"1"[..]));
        assert!(map.remove(b"user.aa") && !map.remove(b"user.aa"));
        assert_eq!(map, sample());
        map.clear();
        assert!(map.is_empty() && map.iter().next().is_none());
        assert_eq!(XattrMap::from_iter(Vec::<(&[u8], &[u8])>::new()), map);
    }

    #[test]
    fn copies_share_their_memory_and_others_can() {
        let map = sample();
        let mut other = sample();
        assert!(map.clone().is_shared_with(&map) && !other.is_shared_with(&map));
        other.share(&map);
        assert!(other.is_shared_with(&map));
        other.insert("user.c", "");
        other.share(&map);
        assert!(!other.is_shared_with(&map) && other != map);
    }

    #[test]
    fn it_is_written_and_printed_as_a_map_of_vectors() {
        let map = sample();
        let plain: BTreeMap<Vec<u8>, Vec<u8>> = map
            .iter()
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .collect();
        let bytes = postcard::to_stdvec(&plain).unwrap();
        assert_eq!(postcard::to_stdvec(&map).unwrap(), bytes);
        assert_eq!(postcard::from_bytes::<XattrMap>(&bytes).unwrap(), map);
        assert_eq!(format!("{map:?}"), format!("{plain:?}"));
        for cut in 0..bytes.len() {
            assert!(postcard::from_bytes::<XattrMap>(&bytes[..cut]).is_err());
        }
    }
}
