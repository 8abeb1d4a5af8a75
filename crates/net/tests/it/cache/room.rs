//! A disk without room.

use super::*;

#[test]
fn without_room_answers_are_passed_on() {
    alone("cache::room::without_room_answers_are_passed_on", || {
        let registry = Registry::start(|head| {
            let size = head.split(' ').nth(1).unwrap()[1..].parse().unwrap();
            script(GOOD, &vec![1; size])
        });
        let small = place(MIB);
        // Larger than a part of all may be.
        for _ in 0..2 {
            let (_, body, kept) = small.get("/300000", "");
            assert_eq!((body.len(), kept), (300_000, 0));
        }
        assert_eq!(registry.count(), 2);
        // What was used longest ago goes first.
        for (at, size) in (1..).zip(["/200001", "/200002", "/200003", "/200004", "/200005"]) {
            small.get(size, "");
            small.settled(at);
        }
        small.get("/200001", "");
        small.get("/200006", "");
        // Five fit.
        let newest = Instant::now() + LATE;
        while small.get("/200006", "").2 == 0 && Instant::now() < newest {}
        small.settled(5);
        assert!(small.cache.usage().bytes <= MIB);
        let before = registry.count();
        let (_, _, kept) = small.get("/200001", "");
        assert_eq!((kept, registry.count()), (200_001, before));
        let (_, _, kept) = small.get("/200002", "");
        assert_eq!((kept, registry.count()), (0, before + 1));
        // A file is where the directory should be.
        let blocked = place(MIB);
        std::fs::write(blocked.dir.path().join("downloads"), "").unwrap();
        for _ in 0..2 {
            let (_, body, kept) = blocked.get("/1000", "");
            assert_eq!((body.len(), kept), (1000, 0));
        }
    });
}
