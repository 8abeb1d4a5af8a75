//! Killing the serving process: what was acknowledged is there, what was running is old or new.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::many::steps;
use super::model::{Side, Step, plain_copy, scene};
use super::support::{Scene, Wishes, serve};

const UPPER: &str = "AVFS_TEST_UPPER";
const TOP: &str = "AVFS_TEST_TOP";
type Tree = BTreeMap<Vec<u8>, String>;

const ROUNDS: u8 = 10;

/// Serves the layer of the test below until it is killed.
#[test]
#[ignore = "a part that the next test plays in a process of its own"]
fn server() {
    let (Some(upper), Some(top)) = (std::env::var_os(UPPER), std::env::var_os(TOP)) else {
        panic!("it is the next test that starts this one");
    };
    // The same base, in a store of its own.
    let mut own = scene();
    own.unmount();
    let (upper, top) = (Path::new(&upper), Path::new(&top));
    let view = serve(&own.trees, own.base, upper, top, Wishes::default());
    eprintln!("serving");
    while view.is_alive() {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn start_server(scene: &Scene) -> Child {
    let role = "readwrite::tests::crash::server";
    let mut server = Command::new("/proc/self/exe")
        .args(["--exact", role, "--ignored", "--nocapture"])
        .env(UPPER, &scene.upper)
        .env(TOP, &scene.top)
        // What it leaves behind goes with the scene.
        .env("TMPDIR", scene.top.parent().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut lines = lines.map(|line| line.unwrap());
    assert!(lines.any(|line| line == "serving"));
    server
}

/// Whether the step is one system call, which is atomic.
fn is_one_call(step: &Step) -> bool {
    !matches!(
        step,
        Step::Write(..) | Step::Overwrite(..) | Step::Append(..) | Step::Truncate(..)
    )
}

fn is_served(outcome: &std::io::Result<()>) -> bool {
    let errno = outcome.as_ref().err().and_then(|it| it.raw_os_error());
    !matches!(errno, Some(libc::ENOTCONN | libc::ECONNABORTED | libc::EIO))
}

/// Hard links of a stored file are copied up one after the other: a crash may separate them, without changing their
/// content.
fn without_links(tree: Tree) -> Tree {
    let part = |text: String| text.replace(" link true", "").replace(" link false", "");
    tree.into_iter()
        .map(|(path, text)| (path, part(text)))
        .collect()
}

/// The number of steps that were done before the server died.
fn round(number: u8) -> usize {
    let mut scene = scene();
    let plain = tempfile::tempdir().unwrap();
    plain_copy(&scene, plain.path());
    scene.hand_over();
    let mut server = start_server(&scene);
    let (mut view, mut model) = (Side::new(&scene.top), Side::new(plain.path()));
    let progress = Arc::new(AtomicUsize::new(0));
    let seen = progress.clone();
    let killer = std::thread::spawn(move || {
        // In the midst of the steps that follow.
        while seen.load(Ordering::Relaxed) < usize::from(number) * 20 {
            std::thread::yield_now();
        }
        server.kill().unwrap();
        server.wait().unwrap();
    });
    let mut in_doubt = None;
    for step in steps(100 + number) {
        if !is_served(&view.run(&step)) {
            in_doubt = Some(step);
            break;
        }
        let _ = model.run(&step);
        progress.fetch_add(1, Ordering::Relaxed);
    }
    let done = progress.swap(usize::MAX, Ordering::Relaxed);
    killer.join().unwrap();
    drop(view);
    scene.unmount();
    let root = scene.commit().root;
    let (committed, before) = (scene.tree(root), model.tree());
    match in_doubt {
        Some(step) if !is_one_call(&step) => {}
        Some(step) => {
            let _ = model.run(&step);
            let (committed, before) = (without_links(committed), without_links(before));
            let after = without_links(model.tree());
            let is_either = committed == before || committed == after;
            assert!(
                is_either,
                "{step:?}:\n{committed:#?}\n{before:#?}\n{after:#?}"
            );
        }
        None => assert_eq!(committed, before),
    }
    done
}

#[test]
fn a_killed_server_loses_nothing_that_was_acknowledged() {
    let done: Vec<usize> = (1..=ROUNDS).map(round).collect();
    assert!(done.iter().any(|&steps| steps > 0), "{done:?}");
}
