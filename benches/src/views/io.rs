//! Plain reading and writing that times itself: `avfs-bench __io KIND FILE` runs natively and in views.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

const BLOCK: usize = 4096;
const MEGABYTE: usize = 1 << 20;
const WRITTEN_MB: usize = 256;
/// The file that random writes go to.
const SPREAD_MB: usize = 64;
const RANDOM_READS: usize = 20_000;
const RANDOM_WRITES: usize = 10_000;
const SYNCED_WRITES: usize = 200;

/// Prints the microseconds of one kind of work on `path`.
pub fn run(kind: &str, path: &Path) {
    let micros = match kind {
        "read" => read(path),
        "random-read" => random_read(path),
        "write" => write(path),
        "random-write" => random_write(path),
        "synced-write" => synced_write(path),
        "append" => append(path),
        other => panic!("{other}: no such kind of work"),
    };
    println!("{micros}");
}

fn read(path: &Path) -> u128 {
    let (mut buffer, start) = (vec![0; MEGABYTE], Instant::now());
    let mut file = File::open(path).expect("the file is there");
    while file.read(&mut buffer).expect("it can be read") > 0 {}
    start.elapsed().as_micros()
}

fn random_read(path: &Path) -> u128 {
    let file = File::open(path).expect("the file is there");
    let blocks = file.metadata().expect("it is open").len() / BLOCK as u64;
    let (mut buffer, mut random) = ([0; BLOCK], Random(1));
    let start = Instant::now();
    for _ in 0..RANDOM_READS {
        let offset = random.below(blocks) * BLOCK as u64;
        file.read_exact_at(&mut buffer, offset)
            .expect("it can be read");
    }
    start.elapsed().as_micros()
}

fn write(path: &Path) -> u128 {
    let content = content(MEGABYTE);
    let start = Instant::now();
    let mut file = File::create(path).expect("a new file");
    for _ in 0..WRITTEN_MB {
        file.write_all(&content).expect("it can be written");
    }
    file.sync_all().expect("it can be synced");
    let micros = start.elapsed().as_micros();
    std::fs::remove_file(path).expect("it can be removed");
    micros
}

fn random_write(path: &Path) -> u128 {
    fill(path, SPREAD_MB);
    let file = OpenOptions::new()
        .write(true)
        .open(path)
        .expect("the file is there");
    let (content, mut random) = (content(BLOCK), Random(2));
    let start = Instant::now();
    for _ in 0..RANDOM_WRITES {
        let block = random.below((SPREAD_MB * MEGABYTE / BLOCK) as u64);
        file.write_all_at(&content, block * BLOCK as u64)
            .expect("it can be written");
    }
    file.sync_all().expect("it can be synced");
    let micros = start.elapsed().as_micros();
    std::fs::remove_file(path).expect("it can be removed");
    micros
}

fn synced_write(path: &Path) -> u128 {
    let mut file = File::create(path).expect("a new file");
    let content = content(BLOCK);
    let start = Instant::now();
    for _ in 0..SYNCED_WRITES {
        file.write_all(&content).expect("it can be written");
        file.sync_data().expect("it can be synced");
    }
    let micros = start.elapsed().as_micros();
    std::fs::remove_file(path).expect("it can be removed");
    micros
}

/// Another byte each time: equal content would not be stored again.
fn append(path: &Path) -> u128 {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
    let byte = (now.expect("a clock").subsec_nanos() >> 4) as u8;
    let start = Instant::now();
    let mut file = OpenOptions::new()
        .append(true)
        .open(path)
        .expect("the file is there");
    file.write_all(&[byte]).expect("it can be written");
    drop(file);
    start.elapsed().as_micros()
}

/// An incompressible file of this many megabytes, synced.
pub fn fill(path: &Path, megabytes: usize) {
    let mut file = File::create(path).expect("a new file");
    let mut random = Random(megabytes as u64);
    let mut block = vec![0; MEGABYTE];
    for _ in 0..megabytes {
        for word in block.chunks_exact_mut(8) {
            word.copy_from_slice(&random.next().to_le_bytes());
        }
        file.write_all(&block).expect("it can be written");
    }
    file.sync_all().expect("it can be synced");
}

/// A synced copy.
pub fn copy(from: &Path, to: &Path) {
    std::fs::copy(from, to).expect("a copy");
    File::open(to)
        .and_then(|file| file.sync_all())
        .expect("it can be synced");
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index % 251) as u8).collect()
}

/// A random generator with a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // The lower bits are not random enough.
        let mixed = self.0 ^ (self.0 >> 29);
        mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (mixed >> 32)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
