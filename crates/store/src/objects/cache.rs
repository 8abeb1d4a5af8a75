//! A cache bounded by the approximate bytes of what it holds.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Two generations stand in for exact recency: what is used moves to the young one, and when that
/// is full the old one is dropped whole. Cheaper than a linked list, and never above `capacity`.
pub struct Cache<K, V> {
    generations: Mutex<Generations<K, V>>,
    /// Bytes one generation may hold.
    half: usize,
}

struct Generations<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    young_bytes: usize,
}

impl<K: Eq + Hash + Copy, V: Clone> Cache<K, V> {
    pub fn new(capacity: usize) -> Cache<K, V> {
        let generations = Generations {
            young: HashMap::new(),
            old: HashMap::new(),
            young_bytes: 0,
        };
        Cache {
            generations: Mutex::new(generations),
            half: capacity / 2,
        }
    }

    pub fn get(&self, key: K) -> Option<V> {
        let mut generations = self.lock();
        if let Some((value, _)) = generations.young.get(&key) {
            return Some(value.clone());
        }
        let (value, bytes) = generations.old.remove(&key)?;
        self.insert_young(&mut generations, key, value.clone(), bytes);
        Some(value)
    }

    /// Keeps `value`, unless it alone would push out a whole generation.
    pub fn insert(&self, key: K, value: V, bytes: usize) {
        self.remove(key);
        if bytes <= self.half {
            self.insert_young(&mut self.lock(), key, value, bytes);
        }
    }

    pub fn remove(&self, key: K) {
        let mut generations = self.lock();
        generations.old.remove(&key);
        if let Some((_, bytes)) = generations.young.remove(&key) {
            generations.young_bytes -= bytes;
        }
    }

    pub fn clear(&self) {
        let mut generations = self.lock();
        generations.young = HashMap::new();
        generations.old = HashMap::new();
        generations.young_bytes = 0;
    }

    fn insert_young(&self, generations: &mut Generations<K, V>, key: K, value: V, bytes: usize) {
        if generations.young_bytes + bytes > self.half {
            generations.old = std::mem::take(&mut generations.young);
            generations.young_bytes = 0;
        }
        generations.young_bytes += bytes;
        generations.young.insert(key, (value, bytes));
    }

    fn lock(&self) -> MutexGuard<'_, Generations<K, V>> {
        // A panic elsewhere cannot leave a cache half changed in a way that matters.
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_held(cache: &Cache<u32, u32>) -> usize {
        let generations = cache.lock();
        generations
            .young
            .values()
            .chain(generations.old.values())
            .map(|(_, bytes)| bytes)
            .sum()
    }

    #[test]
    fn stays_within_its_bytes_and_keeps_what_is_used() {
        let cache = Cache::new(1000);
        for key in 0..200 {
            cache.insert(key, key, 10);
            assert_eq!(cache.get(0), Some(0), "used all the time, so never dropped");
            assert!(bytes_held(&cache) <= 1000);
        }
        assert_eq!(cache.get(1), None, "never used again");
        assert_eq!(cache.get(199), Some(199));
    }

    #[test]
    fn refuses_giants_and_forgets_on_request() {
        let cache = Cache::new(1000);
        cache.insert(1, 1, 501);
        assert_eq!(cache.get(1), None);
        cache.insert(2, 2, 500);
        cache.insert(2, 3, 400);
        assert_eq!((cache.get(2), bytes_held(&cache)), (Some(3), 400));
        cache.remove(2);
        assert_eq!((cache.get(2), bytes_held(&cache)), (None, 0));
        cache.insert(3, 3, 400);
        cache.clear();
        assert_eq!((cache.get(3), bytes_held(&cache)), (None, 0));
    }
}
