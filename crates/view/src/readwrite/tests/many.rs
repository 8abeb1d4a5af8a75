//! Many at once: threads that change the same tree, and commits between their changes.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::model::{Side, Step, scene, step};
use super::support::Scene;

const THREADS: u8 = 4;
const STEPS: usize = 400;

/// Steps that depend on the thread alone, and are equal in every run.
pub fn steps(thread: u8) -> Vec<Step> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[thread; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let steps = (0..STEPS).map(|_| step().new_tree(&mut runner).unwrap().current());
    steps.collect()
}

/// The errors that a step may get while others run.
fn is_honest(outcome: &io::Result<()>) -> bool {
    const HONEST: [i32; 9] = [
        libc::ENOENT,
        libc::EEXIST,
        libc::ENOTDIR,
        libc::EISDIR,
        libc::ENOTEMPTY,
        libc::EINVAL,
        libc::ELOOP,
        libc::EPERM,
        libc::EBUSY,
    ];
    match outcome {
        Ok(()) => true,
        Err(error) => error.raw_os_error().is_some_and(|it| HONEST.contains(&it)),
    }
}

#[test]
fn threads_that_change_one_tree_leave_it_whole() {
    let mut scene = scene();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let mut side = Side::new(&scene.top);
            scope.spawn(move || {
                for step in steps(thread) {
                    let outcome = side.run(&step);
                    assert!(is_honest(&outcome), "{step:?}: {outcome:?}");
                }
            });
        }
    });
    let side = Side::new(&scene.top);
    let shown = side.tree();
    let root = scene.commit().root;
    assert_eq!(scene.tree(root), shown);
    scene.remount(scene.base);
    assert_eq!(side.tree(), shown, "after a restart");
}

#[test]
fn a_commit_between_changes_sees_them_in_order() {
    let mut scene = Scene::of(|base| {
        base.file("/first", "0").file("/second", "0");
    });
    let stop = AtomicBool::new(false);
    let (first, second) = (scene.path("/first"), scene.path("/second"));
    let new = scene.path("/new");
    let mut seen = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0u64;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                // One in place, one by the usual way of replacing a file.
                fs::write(&first, format!("{number:020}")).unwrap();
                fs::write(&new, format!("{number:020}")).unwrap();
                fs::rename(&new, &second).unwrap();
            }
        });
        // However frequent the commits, the writer makes progress.
        while seen < 10 {
            let root = scene.commit().root;
            let number = |path| -> u64 {
                let text = String::from_utf8(scene.content(root, path)).unwrap();
                text.parse().unwrap_or(u64::MAX)
            };
            let (one, two) = (number("/first"), number("/second"));
            assert!(two != u64::MAX, "what was renamed into place is whole");
            assert!(
                one == u64::MAX || one == two || one == two + 1,
                "{one} {two}"
            );
            seen = two.max(seen);
        }
        stop.store(true, Ordering::Relaxed);
    });
}
