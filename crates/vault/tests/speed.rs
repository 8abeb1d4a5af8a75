//! Measurements: `cargo test --release -p avfs-vault --test speed -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use avfs_store::{ObjectId, Store};
use avfs_vault::{
    Cause, CheckpointOrigin, Content, Entry, Meta, NewVersion, Principal, Time, Vault, Vaults,
};

/// The median of `times` runs.
fn median(times: usize, mut run: impl FnMut(usize)) -> Duration {
    let mut taken: Vec<Duration> = (0..times)
        .map(|n| {
            let begun = Instant::now();
            run(n);
            begun.elapsed()
        })
        .collect();
    taken.sort_unstable();
    taken[times / 2]
}

fn version() -> NewVersion {
    let (by, cause) = (Principal::Owner, Cause::Write);
    NewVersion {
        by,
        exec: None,
        cause,
        details: serde_json::Value::Null,
    }
}

/// A vault with one large directory, and how long that took to build.
fn scene() -> (tempfile::TempDir, Vaults, Vault, Duration) {
    let home = tempfile::tempdir().unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    let vault = vaults
        .create(&"v".parse().unwrap(), &Principal::Owner)
        .unwrap();
    let mut edit = vaults.trees().edit(vault.head).unwrap();
    let begun = Instant::now();
    for n in 0..50_000_u32 {
        let path = format!("/file-{n}").parse().unwrap();
        let content = Content::Object(ObjectId::of(&n.to_le_bytes()));
        edit.put(
            &path,
            Entry::file(content, 4096, Meta::new(0o644, Time::now())),
        )
        .unwrap();
    }
    let head = edit.finish().unwrap();
    let built = begun.elapsed();
    vaults
        .publish(vault.id, vault.head, head, version())
        .unwrap();
    let vault = vaults.by_id(vault.id).unwrap();
    (home, vaults, vault, built)
}

#[test]
#[ignore = "a measurement, not a check"]
fn reading() {
    let (_home, vaults, vault, built) = scene();
    println!("one directory of 50,000 files, built: {built:?}");
    let trees = vaults.trees();
    let tree = trees.root(vault.head).unwrap().tree();
    let child = median(2000, |n| {
        let name = format!("file-{}", n * 25);
        assert!(trees.child(tree, name.as_bytes()).unwrap().is_some());
    });
    println!("child of it: {child:?}");
    println!(
        "list of it: {:?}",
        median(20, |_| drop(trees.list(tree).unwrap()))
    );
}

#[test]
#[ignore = "a measurement, not a check"]
fn changing() {
    let (_home, vaults, vault, _) = scene();
    let (trees, mut head) = (vaults.trees(), vault.head);
    let one = |n: usize, head| {
        let mut edit = trees.edit(head).unwrap();
        let entry = Entry::file(Content::EMPTY, 0, Meta::new(0o600, Time::now()));
        edit.put(&format!("/file-{n}").parse().unwrap(), entry)
            .unwrap();
        edit.finish().unwrap()
    };
    let change = median(200, |n| {
        let next = one(n, head);
        vaults.publish(vault.id, head, next, version()).unwrap();
        head = next;
    });
    println!("edit one file and publish, with its pack synced: {change:?}");
    let mut edits = (one(0, head), one(1, head));
    vaults.publish(vault.id, head, edits.0, version()).unwrap();
    let publish = median(1000, |_| {
        vaults
            .publish(vault.id, edits.0, edits.1, version())
            .unwrap();
        std::mem::swap(&mut edits.0, &mut edits.1);
    });
    println!("publish without new objects: {publish:?}");
    let diff = median(200, |_| drop(trees.diff(edits.0, edits.1).unwrap()));
    println!("diff of two such: {diff:?}");
    let owner = Principal::Owner;
    let fork = median(200, |n| {
        vaults
            .fork(&vault.name, &format!("f{n}").parse().unwrap(), &owner)
            .unwrap();
    });
    println!("fork: {fork:?}");
    let save = median(200, |_| {
        let origin = CheckpointOrigin::Asked;
        vaults
            .save_checkpoint(vault.id, None, head, origin, &owner)
            .unwrap();
    });
    println!("checkpoint, synced: {save:?}");
}
