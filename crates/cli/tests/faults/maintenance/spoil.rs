//! Damage done to the packs of a home, as a bad disk would.

use avfs_testkit::Home;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const HEADER: usize = 64;

/// A record as it lies in a pack.
pub struct Record {
    pub pack: PathBuf,
    at: usize,
    /// Bytes behind its header.
    pub stored: usize,
    /// In hexadecimal.
    pub id: String,
}

/// Every record in the packs of a home, whose daemon is stopped, as it would know some of them by heart.
pub fn records(home: &Home) -> Vec<Record> {
    home.ok(&["daemon", "stop"]);
    on_disk(home)
}

/// Every record in the packs, with whatever daemon there is.
pub fn on_disk(home: &Home) -> Vec<Record> {
    let mut found = Vec::new();
    for entry in fs::read_dir(home.avfs_home().join("packs")).unwrap() {
        let pack = entry.unwrap().path();
        let bytes = fs::read(&pack).unwrap();
        let starts = bytes.windows(4).enumerate();
        let starts = starts.filter(|(_, window)| window == b"AVO1");
        for (at, _) in starts {
            let Some(header) = bytes.get(at..at + HEADER) else {
                continue;
            };
            let stored = u64::from_le_bytes(*header[8..].first_chunk().unwrap()) as usize;
            let id: String = header[24..56].iter().map(|b| format!("{b:02x}")).collect();
            let pack = pack.clone();
            found.push(Record {
                pack,
                at,
                stored,
                id,
            });
        }
    }
    found
}

impl Record {
    /// Changes a byte in the middle of it.
    pub fn spoil(&self) {
        let pack = fs::File::options().read(true).write(true).open(&self.pack);
        let (pack, at) = (pack.unwrap(), (self.at + HEADER + self.stored / 2) as u64);
        let mut byte = [0];
        pack.read_exact_at(&mut byte, at).unwrap();
        pack.write_all_at(&[byte[0] ^ 1], at).unwrap();
    }
}

/// Damages every record of the objects whose ids begin so.
pub fn spoil(home: &Home, id: &str) {
    let records = records(home);
    let of_it: Vec<&Record> = records.iter().filter(|it| it.id.starts_with(id)).collect();
    assert!(!of_it.is_empty(), "{id} is in no pack");
    for record in of_it {
        record.spoil();
    }
}

/// Brings a pack into a home, as its user.
pub fn copy_pack(home: &Home, from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
    let owner = fs::metadata(home.avfs_home()).unwrap();
    std::os::unix::fs::chown(to, Some(owner.uid()), Some(owner.gid())).unwrap();
}

/// What the object of a path is called, in its beginning: a tree, a file, or the list of a file's parts.
pub fn object_of(home: &Home, path: &str) -> String {
    let log = home.json(&["log", path, "-n", "1"]);
    log[0]["hash"].as_str().unwrap().to_owned()
}

/// The root of the current vault.
pub fn root_of(home: &Home) -> String {
    home.json(&["vault", "info"])["root"]
        .as_str()
        .unwrap()
        .to_owned()
}
