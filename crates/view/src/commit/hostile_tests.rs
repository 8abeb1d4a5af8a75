//! Layers that are too large or too deep for a commit.

use super::tests::{STAGING, Scene};
use super::*;
use crate::scanner::tests::make_deep;
use std::path::PathBuf;

/// So little memory that every layer is a large one.
const TINY: Bounds = Bounds {
    names: 3,
    bytes: 1 << 20,
    pending: 4,
};

fn skipped(committed: &Committed) -> Vec<(String, &str)> {
    let skipped = committed.skipped.iter();
    skipped
        .map(|it| (String::from_utf8_lossy(&it.path).into_owned(), it.reason))
        .collect()
}

/// A scene whose upper is on tmpfs, where attributes can be as large as the kernel allows.
fn with_large_attributes() -> (Scene, tempfile::TempDir) {
    let memory = tempfile::tempdir_in("/dev/shm").expect("a filesystem in memory");
    let mut scene = Scene::new();
    scene.upper = memory.path().join("upper");
    std::fs::create_dir(&scene.upper).unwrap();
    (scene, memory)
}

fn set(path: &PathBuf, name: &str, value: &[u8]) {
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(path, name, value, flags).unwrap();
}

#[test]
fn a_large_layer_amounts_to_the_same_root() {
    let mut scene = Scene::new();
    for n in 0..40 {
        scene.write(&format!("new/{}/f{n}", n % 7), &format!("text {n}"));
    }
    scene.write("a/f", "changed");
    scene.mark("a/sub", "opaque", "y");
    scene.mark("moved", "redirect", "/a");
    for (first, second) in [
        ("new/1/f1", "new/zz"),
        ("new/2/f2", "aa"),
        ("a/f", "new/0/l"),
    ] {
        let (first, second) = (scene.upper.join(first), scene.upper.join(second));
        std::fs::hard_link(first, second).unwrap();
    }
    // Two names that are being exchanged.
    scene.write("proc/token/1/to-first/x", "first");
    scene.write("proc/token/1/to-second/x", "second");
    for (name, goal) in [("first", "/new/3"), ("second", "/new/4")] {
        let name = scene.upper.join("proc/token/1").join(name);
        std::os::unix::fs::symlink(goal, name).unwrap();
    }
    let abandoned = OwnWork::Staging(Staging {
        used: StagingUse::Abandoned,
        ..STAGING
    });
    let usual = scene.commit_with(Writers::None, abandoned).unwrap();
    let tiny = scene
        .commit_within(Writers::None, abandoned, Allowance::default(), &TINY)
        .unwrap();
    let exchanged = scene.files(usual.root);
    assert!(exchanged.contains(&("/new/3/x".into(), "first".into())));
    assert_eq!(scene.files(tiny.root), scene.files(usual.root));
    assert_eq!(tiny.root, usual.root);
    let links = scene.trees.root(tiny.root).unwrap().links.len();
    assert_eq!(links, 3, "hard links are known across parts");
}

#[test]
fn what_is_above_the_allowance_is_refused_unread() {
    let mut scene = Scene::new();
    let sparse = std::fs::File::create(scene.upper.join("sparse")).unwrap();
    sparse.set_len(1 << 42).unwrap();
    let bytes = Allowance {
        bytes: Some(1 << 20),
        ..Allowance::default()
    };
    let file_bytes = Allowance {
        file_bytes: Some(1 << 20),
        ..Allowance::default()
    };
    let files = Allowance {
        files: Some(0),
        ..Allowance::default()
    };
    for (allowance, expected) in [
        (bytes, TooMuch::Bytes),
        (file_bytes, TooMuch::FileBytes),
        (files, TooMuch::Files),
    ] {
        let refused = scene.commit_within(
            Writers::None,
            OwnWork::Staging(STAGING),
            allowance,
            &Bounds::USUAL,
        );
        assert!(
            matches!(refused, Err(Error::TooMuch { what, .. }) if what == expected),
            "{refused:?}"
        );
    }
}

#[test]
fn a_file_with_many_names_is_read_once() {
    let mut scene = Scene::new();
    scene.write("f", &"x".repeat(1_000));
    for n in 0..50 {
        std::fs::hard_link(scene.upper.join("f"), scene.upper.join(format!("l{n}"))).unwrap();
    }
    // The listing counts it fifty-one times; bytes that are read are counted separately.
    let allowance = Allowance {
        bytes: Some(51_000),
        ..Allowance::default()
    };
    let committed = scene
        .commit_within(
            Writers::None,
            OwnWork::Staging(STAGING),
            allowance,
            &Bounds::USUAL,
        )
        .unwrap();
    let work = Work::new(&|| false, allowance);
    let upper = std::fs::File::open(&scene.upper).unwrap();
    let reading = Reading {
        trees: &scene.trees,
        scanner: &scene.scanner,
        upper: std::os::fd::AsFd::as_fd(&upper),
        work: &work,
    };
    let entries = scene.scanner.scan(reading.upper).unwrap();
    let nothing = HashCache::default();
    Contents::read(&reading, &entries, &nothing.known(&entries)).unwrap();
    assert_eq!(work.bytes_read(), 1_000);
    assert_eq!(scene.files(committed.root).len(), 3 + 51);
}

#[test]
fn many_names_of_attributes_are_stored() {
    let (mut scene, _memory) = with_large_attributes();
    scene.write("f", "text");
    // The names alone are longer than 4,096 bytes.
    for n in 0..40 {
        set(&scene.upper.join("f"), &format!("user.{n:0>200}"), b"v");
    }
    let committed = scene.commit(Writers::None);
    assert_eq!(skipped(&committed), []);
    let entry = scene.trees.entry(committed.root, &"/f".parse().unwrap());
    assert_eq!(entry.unwrap().unwrap().meta.xattrs.len(), 40);
}

#[test]
fn attributes_that_are_too_large_are_left_out_and_reported() {
    let (mut scene, _memory) = with_large_attributes();
    scene.write("f", "text");
    let reason = "its extended attributes are too large and were left out";
    for n in 0..20 {
        set(&scene.upper.join("f"), &format!("user.{n}"), &[7; 60_000]);
    }
    // A list of names that the kernel refuses to return, on an opaque directory.
    scene.mark("a", "opaque", "y");
    for n in 0..400 {
        set(&scene.upper.join("a"), &format!("user.{n:0>200}"), b"v");
    }
    let committed = scene.commit(Writers::None);
    let mut found = skipped(&committed);
    found.sort();
    assert_eq!(found, [("/a".into(), reason), ("/f".into(), reason)]);
    assert_eq!(scene.files(committed.root), [("/f".into(), "text".into())]);
    // The second, incremental commit reports it, too.
    scene.write("g", "");
    assert_eq!(skipped(&scene.commit(Writers::None)).len(), 2);
}

#[test]
fn attributes_of_all_names_together_have_a_limit() {
    let (mut scene, _memory) = with_large_attributes();
    scene.write("f", "text");
    set(&scene.upper.join("f"), "user.a", &[7; 60_000]);
    for n in 0..400 {
        std::fs::hard_link(scene.upper.join("f"), scene.upper.join(format!("l{n}"))).unwrap();
    }
    let committed = scene.commit(Writers::None);
    // 16 MiB of them are stored.
    assert_eq!(committed.skipped.len(), 401 - (16 << 20) / 60_006);
}

#[test]
fn attributes_of_a_file_with_many_names_are_in_memory_once() {
    for bounds in [&Bounds::USUAL, &TINY] {
        let (mut scene, _memory) = with_large_attributes();
        scene.write("f", "text");
        for n in 0..20 {
            set(&scene.upper.join("f"), &format!("user.{n}"), &[n; 500]);
        }
        for n in 0..100 {
            std::fs::hard_link(scene.upper.join("f"), scene.upper.join(format!("f{n}"))).unwrap();
        }
        let (own_work, allowance) = (OwnWork::Staging(STAGING), Allowance::default());
        let committed = scene.commit_within(Writers::None, own_work, allowance, bounds);
        let root = committed.unwrap().root;
        // As they were stored, and as they are read again.
        for _ in 0..2 {
            let top = scene.trees.root(root).unwrap().tree();
            let listed = scene.trees.list(top).unwrap();
            let xattrs = listed.iter().map(|(_, entry)| &entry.meta.xattrs);
            let xattrs: Vec<_> = xattrs.filter(|xattrs| !xattrs.is_empty()).collect();
            assert_eq!((xattrs.len(), xattrs[0].len()), (101, 20));
            assert!(xattrs.iter().all(|it| it.is_shared_with(xattrs[0])));
            scene.trees.flush().unwrap();
            scene.trees.release_caches().unwrap();
        }
    }
}

#[test]
fn what_cannot_be_stored_is_not_listed_without_end() {
    let mut scene = Scene::new();
    for n in 0..1_500 {
        let path = scene.upper.join(format!("s{n}"));
        std::os::unix::net::UnixListener::bind(path).unwrap();
    }
    let committed = scene.commit(Writers::None);
    assert_eq!(committed.skipped.len(), 1_001);
    let last = skipped(&committed).pop();
    assert_eq!(
        last,
        Some(("/".into(), "more was skipped than is listed here"))
    );
}

#[test]
fn a_tree_too_deep_for_paths_is_committed_as_far_as_they_go() {
    // Not 200 bytes for each of the 2,000 levels that a path can have.
    let thread = std::thread::Builder::new().stack_size(384 << 10);
    thread.spawn(commit_a_deep_tree).unwrap().join().unwrap();
}

fn commit_a_deep_tree() {
    let mut scene = Scene::new();
    scene.write("beside", "text");
    make_deep(&scene.upper, 5_000);
    let committed = scene.commit(Writers::None);
    let [(path, reason)] = &skipped(&committed)[..] else {
        panic!("{:?}", skipped(&committed));
    };
    assert_eq!((path.len(), *reason), (4_096, "its path is too long"));
    let beside = scene
        .trees
        .entry(committed.root, &"/beside".parse().unwrap());
    assert!(beside.unwrap().is_some());
    // What removes the temporary directory would need a deep stack for it.
    let upper = std::fs::File::open(&scene.upper).unwrap();
    crate::remove::remove_contents(&upper).unwrap();
}

#[test]
fn a_commit_can_be_stopped() {
    let mut scene = Scene::new();
    scene.write("f", "text");
    let input = CommitInput {
        trees: &scene.trees,
        base: scene.base,
        last_commit: scene.last_commit,
        skeleton: &BTreeSet::new(),
        own_work: OwnWork::None,
        owner: Owner { uid: 0, gid: 0 },
        writers: Writers::None,
        allowance: Allowance::default(),
        spool: &scene.upper,
        stopped: &|| true,
    };
    let upper = std::fs::File::open(&scene.upper).unwrap();
    let upper = std::os::fd::AsFd::as_fd(&upper);
    let stopped = commit(&input, &scene.scanner, upper, &mut scene.cache);
    assert!(matches!(stopped, Err(Error::Stopped)));
}
