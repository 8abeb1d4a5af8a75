//! File verbs while commands come and go: neither is in the other's way.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::homes;

#[test]
fn verbs_never_meet_a_command_that_came_in_between() {
    for home in homes().into_iter().take(1) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        home.ok(&["exec", "--", "true"]);
                    }
                });
            }
            let verbs = || {
                for turn in 0..40 {
                    for words in [
                        &["write", "/a", "x"][..],
                        &["mv", "/a", "/b"],
                        &["rm", "/b"],
                    ] {
                        let done = home.avfs(words);
                        let said = String::from_utf8_lossy(&done.stderr).into_owned();
                        if !done.status.success() {
                            return Err(format!("turn {turn}, {words:?}: {said}"));
                        }
                    }
                }
                Ok(())
            };
            let outcome = verbs();
            over.store(true, Ordering::Relaxed);
            assert_eq!(outcome, Ok(()));
        });
    }
}
