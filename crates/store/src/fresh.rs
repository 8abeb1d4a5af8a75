//! Names that nobody else has.

use std::time::{SystemTime, UNIX_EPOCH};
use uuid::{ContextV7, Timestamp, Uuid};

/// A fresh id. Later ones sort after earlier ones, as long as the clock tells a time since 1970; if it tells an earlier one,
/// they are still different.
pub fn fresh_uuid() -> Uuid {
    fresh_at(SystemTime::now())
}

#[expect(clippy::disallowed_methods, reason = "the clock was looked at")]
fn fresh_at(now: SystemTime) -> Uuid {
    match now.duration_since(UNIX_EPOCH) {
        Ok(_) => Uuid::now_v7(),
        // What is ordered by this clock is out of order already. A new context has counted for the time 0, and fills the
        // counter with random bits at any other.
        Err(_) => Uuid::new_v7(Timestamp::from_unix(ContextV7::new(), 1, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::time::Duration;

    #[test]
    fn ids_differ_whatever_the_clock_tells() {
        let before = UNIX_EPOCH - Duration::from_secs(86_400);
        let ids: HashSet<Uuid> = (0..10_000).map(|_| fresh_at(before)).collect();
        assert_eq!(ids.len(), 10_000);
        // The upper half is random too, but for the time and the version.
        let upper: HashSet<u64> = ids.iter().map(|id| id.as_u64_pair().0).collect();
        assert!(upper.len() > 1_000, "{}", upper.len());
        let (first, second) = (fresh_uuid(), fresh_uuid());
        assert!(first < second);
    }
}
