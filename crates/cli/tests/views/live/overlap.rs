//! File verbs while commands come and go: neither is in the other's way.

use crate::AVFS;
use avfs_testkit::Home;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn verbs_never_meet_a_command_that_came_in_between() {
    for home in Home::of_every_user_with_vault(AVFS).into_iter().take(1) {
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
