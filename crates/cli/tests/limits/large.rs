//! Large files stream through: whatever their size, the daemon's memory stays small.
//!
//! `AVFS_LARGE_GIB=10 cargo test --test limits large` is the long form (sparse, so it needs little disk).

use avfs_testkit::Home;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::AVFS;
const MIB: u64 = 1 << 20;
/// What the daemon may take at most, whatever goes through it.
const MEMORY_MAX: u64 = 128 * MIB;

fn size() -> u64 {
    match std::env::var("AVFS_LARGE_GIB") {
        Ok(asked) => asked.parse::<u64>().expect("a number") << 30,
        Err(_) => 64 * MIB,
    }
}

/// A sparse file with some bytes of its own here and there, and at its end.
fn make(path: &Path, size: u64) {
    let mut file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    let step = size / 17;
    for n in 0..17 {
        file.seek(SeekFrom::Start(n * step)).unwrap();
        let bytes: Vec<u8> = (0..100_000_u64)
            .flat_map(|k| (k * k + n).to_le_bytes())
            .collect();
        file.write_all(&bytes).unwrap();
    }
    file.seek(SeekFrom::Start(size - 3)).unwrap();
    file.write_all(b"end").unwrap();
}

fn are_equal(one: &Path, two: &Path) -> bool {
    let (mut one, mut two) = (File::open(one).unwrap(), File::open(two).unwrap());
    let (mut left, mut right) = (vec![0; MIB as usize], vec![0; MIB as usize]);
    loop {
        let read = one.read(&mut left).unwrap();
        if read == 0 {
            return two.read(&mut right).unwrap() == 0;
        }
        two.read_exact(&mut right[..read]).unwrap();
        if left[..read] != right[..read] {
            return false;
        }
    }
}

#[test]
fn a_large_file_is_never_held_in_memory() {
    let home = Home::new(AVFS);
    let size = size();
    let host = home.path().join("large");
    make(&host, size);
    home.ok(&["vault", "create", "v"]);
    let mut told = Vec::new();
    let mut check = |what: &str| {
        let memory = home.peak_memory();
        told.push(format!("{what}: {} MiB", memory / MIB));
        assert!(memory < MEMORY_MAX, "{told:?}");
    };

    home.ok(&[
        "write",
        "/d/large",
        "--parents",
        "--from-file",
        host.to_str().unwrap(),
    ]);
    assert_eq!(home.json(&["stat", "/d/large"])["size"], size);
    check("written");

    let dir = home.path().join("dir");
    fs::create_dir(&dir).unwrap();
    fs::hard_link(&host, dir.join("large")).unwrap();
    home.ok(&["import", dir.to_str().unwrap()]);
    check("imported");

    // A command reads it through the lens, and its copy is committed.
    let text = "cmp /d/large /workspace/large && cp --sparse=always /d/large /copy";
    let envelope = home.json(&["exec", "--timeout", "0", "--shell", text]);
    assert_eq!(envelope["success"], true, "{envelope}");
    check("copied by a command");

    let out = home.path().join("out");
    home.ok(&["export", "/d", out.to_str().unwrap()]);
    check("exported");
    assert!(are_equal(&host, &out.join("large")));

    let mut cat = home.command(&["cat", "/copy"]);
    let piped = home.path().join("piped");
    cat.stdout(File::create(&piped).unwrap());
    assert!(cat.status().unwrap().success());
    check("printed");
    assert!(are_equal(&host, &piped));

    // All copies are one, and little of it was stored.
    let stats = home.json(&["stats"]);
    assert!(
        stats["stored_bytes"].as_u64().unwrap() < 30 * MIB,
        "{stats}"
    );
    assert_eq!(home.json(&["fsck"])["clean"], true);
    check("checked");
}
