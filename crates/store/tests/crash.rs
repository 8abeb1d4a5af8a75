//! kill -9 at random points while writing: everything acknowledged is there afterwards.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use avfs_store::ledger::Transaction;
use avfs_store::{Durability, ObjectId, Store};

const HOME: &str = "AVFS_STORE_CRASH_HOME";
const OBJECTS: u64 = 30;
/// A key of the home for each transaction.
const DONE: &str = "done.";

/// What the writer stores in transaction `n`; some of it large enough to overflow the buffer.
fn object(n: u64, k: u64) -> Vec<u8> {
    let length = if k == 0 {
        200_000 + (n % 7) as usize * 800_000
    } else {
        100 + 50 * k as usize
    };
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(&n.to_le_bytes())
        .update(&k.to_le_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

/// The rounds that a row tells of, in their order.
fn done(store: &Store) -> Vec<u64> {
    let rows = store.read(|rows| rows.home_settings(DONE)).unwrap();
    rows.iter().map(|(n, _)| n.parse().unwrap()).collect()
}

#[test]
#[ignore = "the process that the crash test kills"]
fn writer() {
    let Some(home) = std::env::var_os(HOME) else {
        panic!("{HOME} is not set")
    };
    let store = Store::open(home.as_ref()).unwrap();
    store.prepare_ledger().unwrap();
    let first = done(&store).last().map_or(0, |last| last + 1);
    for n in first.. {
        std::thread::scope(|scope| {
            for half in 0..2 {
                let store = &store;
                scope.spawn(move || {
                    for k in (half..OBJECTS).step_by(2) {
                        store.put(&object(n, k)).unwrap();
                    }
                });
            }
        });
        let durability = if n % 3 == 0 {
            Durability::Full
        } else {
            Durability::Relaxed
        };
        let key = format!("{DONE}{n:010}");
        let insert = |t: &Transaction<'_>| t.set_home_setting(&key, Some(""));
        store.write(durability, insert).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "acknowledged {n}").unwrap();
        out.flush().unwrap();
    }
}

/// Lets a writer go on until it has acknowledged `until` or more, and kills it a little later.
fn run_writer(home: &std::path::Path, more: usize, pause: u64) -> Option<u64> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "writer", "--ignored", "--nocapture"])
        .env(HOME, home);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let number = |line: String| line.split_once("acknowledged ")?.1.parse::<u64>().ok();
    let mut last = lines.by_ref().filter_map(number).take(more).last();
    std::thread::sleep(std::time::Duration::from_micros(pause));
    child.kill().unwrap();
    child.wait().unwrap();
    // What it still managed to say before it died counts as well.
    last = lines.filter_map(number).last().or(last);
    last
}

#[test]
fn nothing_acknowledged_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..8_u64 {
        let pause = u64::from(ObjectId::of(&round.to_le_bytes()).as_bytes()[0]) * 100;
        let last = run_writer(home.path(), 2 + round as usize % 3, pause).expect("it wrote");
        acknowledged = acknowledged.max(last);

        let store = Store::open(home.path()).unwrap();
        let done = done(&store);
        assert!(
            done.len() as u64 > acknowledged,
            "{acknowledged} was acknowledged"
        );
        for n in done {
            for k in 0..OBJECTS {
                let bytes = object(n, k);
                assert_eq!(&*store.get(ObjectId::of(&bytes)).unwrap(), &bytes[..]);
            }
        }
    }
}
