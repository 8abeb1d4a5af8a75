//! How fast requests may follow each other: each source has a bucket of tokens that fills up again as time goes by.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sources that are remembered before those whose buckets are full again are forgotten.
const FORGET_ABOVE: usize = 1024;

/// Buckets by source.
pub(crate) struct Rates<K>(Mutex<HashMap<K, Bucket>>);

struct Bucket {
    tokens: f64,
    per_second: f64,
    at: Instant,
}

impl Bucket {
    /// A bucket holds the tokens of two seconds.
    fn most(per_second: f64) -> f64 {
        2.0 * per_second
    }

    fn tokens(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.tokens + since * self.per_second).min(Bucket::most(self.per_second))
    }
}

impl<K> Default for Rates<K> {
    fn default() -> Rates<K> {
        Rates(Mutex::default())
    }
}

impl<K: Eq + Hash> Rates<K> {
    /// Takes a token, or returns how long until there is one.
    pub fn take(&self, source: K, per_second: u32, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let per_second = f64::from(per_second);
        if buckets.len() >= FORGET_ABOVE {
            buckets.retain(|_, it| it.tokens(now) < Bucket::most(it.per_second));
        }
        let bucket = buckets.entry(source).or_insert(Bucket {
            tokens: Bucket::most(per_second),
            per_second,
            at: now,
        });
        bucket.per_second = per_second;
        let tokens = bucket.tokens(now);
        (bucket.tokens, bucket.at) = (tokens, now);
        if tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - tokens) / per_second));
        }
        bucket.tokens -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_taken_and_then_the_rate_holds() {
        let rates = Rates::default();
        let start = Instant::now();
        for _ in 0..20 {
            rates.take("a", 10, start).unwrap();
        }
        let wait = rates.take("a", 10, start).unwrap_err();
        assert!(wait <= Duration::from_millis(101), "{wait:?}");
        rates.take("b", 10, start).unwrap();
        let later = |millis| start + Duration::from_millis(millis);
        rates.take("a", 10, later(101)).unwrap();
        assert!(rates.take("a", 10, later(110)).is_err());
    }

    #[test]
    fn whoever_was_quiet_is_forgotten() {
        let rates = Rates::default();
        let start = Instant::now();
        for source in 0..FORGET_ABOVE {
            rates.take(source, 1000, start).unwrap();
        }
        let later = start + Duration::from_secs(1);
        rates.take(FORGET_ABOVE, 1000, later).unwrap();
        assert_eq!(rates.0.lock().unwrap().len(), 1);
    }
}
