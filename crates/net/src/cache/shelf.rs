//! The directory of answers: found, published, removed when there are too many.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::entry::{Entry, HEAD_MAX, Stored, is_whole};
use super::key::Key;
use super::{CachePlace, CacheUsage};

pub(super) const HEAD: &str = ".head";
const BODY: &str = ".body";
/// Unfinished files, which the next daemon removes.
const UNFINISHED: &str = "tmp-";
/// No answer is larger than this part of all.
const LARGEST_PART: u64 = 4;
/// So many heads are read when a daemon first needs them.
const ANSWERS_MAX: usize = 50_000;
/// The room that an answer needs whose length is not known.
const UNKNOWN: u64 = 64 << 20;

pub(crate) struct Shelf {
    place: CachePlace,
    /// None until somebody asks.
    index: Mutex<Option<Index>>,
}

#[derive(Default)]
struct Index {
    known: HashMap<Key, Known>,
    bytes: u64,
    /// Numbers for the files of bodies, which no two have in common.
    next: u64,
}

struct Known {
    bytes: u64,
    used: SystemTime,
    body: String,
}

impl Shelf {
    pub(super) fn new(place: CachePlace) -> Shelf {
        Shelf {
            place,
            index: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Index>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the index, which is read first if nobody did. A directory that cannot be used has no answers.
    fn with<T>(&self, work: impl FnOnce(&Shelf, &mut Index) -> T) -> T {
        let mut index = self.lock();
        let index = index.get_or_insert_with(|| self.read().unwrap_or_default());
        work(self, index)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.directory.join(name)
    }

    /// Finds what earlier daemons left. Whatever is not whole goes.
    fn read(&self) -> io::Result<Index> {
        let mut index = Index::default();
        let mut bodies = Vec::new();
        for item in fs::read_dir(&self.place.directory)? {
            let item = item?;
            let name = item.file_name().to_string_lossy().into_owned();
            if let Some(key) = name.strip_suffix(HEAD).and_then(Key::parse) {
                match self.read_head(&key) {
                    Ok(stored) => index.add(key, &stored, item.metadata()?.modified()?),
                    Err(_) => drop(fs::remove_file(item.path())),
                }
            } else if name.ends_with(BODY) {
                bodies.push(name);
            } else if name.starts_with(UNFINISHED) {
                let _ = fs::remove_file(item.path());
            }
        }
        let used: HashSet<String> = index.known.values().map(|it| it.body.clone()).collect();
        for name in bodies {
            let number = name
                .strip_suffix(BODY)
                .and_then(|text| text.parse::<u64>().ok());
            index.next = index.next.max(number.map_or(0, |number| number + 1));
            if !used.contains(&name) {
                let _ = fs::remove_file(self.path(&name));
            }
        }
        Ok(index)
    }

    fn read_head(&self, key: &Key) -> io::Result<Stored> {
        let file = File::open(self.path(&format!("{key}{HEAD}")))?;
        let mut text = Vec::new();
        file.take(HEAD_MAX + 1).read_to_end(&mut text)?;
        let stored: Stored = serde_json::from_slice(&text)?;
        let plain = |name: &str| {
            let number = name.strip_suffix(BODY);
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        match stored.key == key.to_string() && plain(&stored.body) {
            true => Ok(stored),
            false => Err(io::Error::other("it is for something else")),
        }
    }

    /// The answer of a key, if it is there and whole. Damage removes it. Blocks.
    pub(crate) fn get(&self, key: &Key) -> Option<Entry> {
        if !self.with(|_, index| index.known.contains_key(key)) {
            return None;
        }
        let opened = self.open(key);
        match opened {
            Ok(entry) => {
                let now = SystemTime::now();
                // So that the next daemon knows too.
                let head = File::open(self.path(&format!("{key}{HEAD}")));
                let _ = head.and_then(|head| head.set_modified(now));
                self.with(|_, index| {
                    if let Some(known) = index.known.get_mut(key) {
                        known.used = now;
                    }
                });
                Some(entry)
            }
            Err(_) => {
                self.with(|shelf, index| shelf.remove(index, key));
                None
            }
        }
    }

    fn open(&self, key: &Key) -> io::Result<Entry> {
        let stored = self.read_head(key)?;
        let mut body = File::open(self.path(&stored.body))?;
        match is_whole(&mut body, &stored)? {
            true => Ok(Entry {
                stored,
                body: Arc::new(body),
            }),
            false => Err(io::Error::other("its body is damaged")),
        }
    }

    /// The bytes of an answer whose body has the length that its head says. The body is not read.
    pub(super) fn looks_whole(&self, key: &Key) -> io::Result<u64> {
        let stored = self.read_head(key)?;
        let length = fs::metadata(self.path(&stored.body))?.len();
        match length == stored.length {
            true => Ok(stored.size()),
            false => Err(io::Error::other("its body has another length")),
        }
    }

    pub(super) fn has_head(&self, key: &Key) -> bool {
        self.path(&format!("{key}{HEAD}")).exists()
    }

    fn remove(&self, index: &mut Index, key: &Key) {
        let Some(known) = index.known.remove(key) else {
            return;
        };
        index.bytes -= known.bytes;
        let _ = fs::remove_file(self.path(&format!("{key}{HEAD}")));
        let _ = fs::remove_file(self.path(&known.body));
    }

    /// The most bytes that one answer may have.
    pub(crate) fn largest(&self) -> u64 {
        self.place.max_bytes / LARGEST_PART
    }

    /// A file for an answer of this many bytes, if that is known; none if there is no room for it, or no way to write. Blocks.
    pub(crate) fn begin(&self, length: Option<u64>) -> Option<(File, PathBuf)> {
        let expected = length.unwrap_or(UNKNOWN.min(self.largest()));
        if expected > self.largest() {
            return None;
        }
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.place.directory)
            .ok()?;
        let free = rustix::fs::statvfs(&self.place.directory).ok()?;
        let free = free.f_bavail.saturating_mul(free.f_frsize);
        if free < expected.saturating_add(self.place.keep_free) {
            return None;
        }
        let number = self.with(|_, index| index.number());
        let path = self.path(&format!("{UNFINISHED}{number}"));
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path).ok()?;
        let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
        let reserved = match length.unwrap_or(0) {
            0 => Ok(()),
            length => rustix::fs::fallocate(&file, flags, 0, length),
        };
        match reserved {
            // Not every filesystem can.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Some((file, path)),
            Err(_) => {
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Makes an answer the one of its key. `file` is a whole body that [`Shelf::begin`] gave. Blocks.
    pub(super) fn publish(&self, key: Key, file: &PathBuf, mut stored: Stored) -> io::Result<()> {
        self.with(|shelf, index| {
            shelf.make_room(index, stored.length);
            stored.body = format!("{}{BODY}", index.number());
            let body = shelf.path(&stored.body);
            fs::rename(file, &body)?;
            let written = shelf.write_head(index, &key, &stored);
            if written.is_err() {
                let _ = fs::remove_file(body);
            }
            written
        })
    }

    /// Notes when an answer may be used from now on. Blocks.
    pub(crate) fn renew(&self, key: Key, entry: &Entry) {
        self.with(|shelf, index| {
            let same = |known: &&Known| known.body == entry.stored.body;
            if index.known.get(&key).filter(same).is_some() {
                let _ = shelf.write_head(index, &key, &entry.stored);
            }
        });
    }

    fn write_head(&self, index: &mut Index, key: &Key, stored: &Stored) -> io::Result<()> {
        let text = serde_json::to_vec(stored)?;
        if text.len() as u64 > HEAD_MAX {
            return Err(io::Error::other("its head is too large"));
        }
        let temporary = self.path(&format!("{UNFINISHED}{}", index.number()));
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary);
        let written = file.and_then(|mut file| file.write_all(&text));
        let head = self.path(&format!("{key}{HEAD}"));
        if let Err(error) = written.and_then(|()| fs::rename(&temporary, head)) {
            let _ = fs::remove_file(temporary);
            return Err(error);
        }
        if let Some(before) = index.known.remove(key) {
            index.bytes -= before.bytes;
            if before.body != stored.body {
                let _ = fs::remove_file(self.path(&before.body));
            }
        }
        index.add(*key, stored, SystemTime::now());
        Ok(())
    }

    /// Removes what was used longest ago until there is room.
    fn make_room(&self, index: &mut Index, bytes: u64) {
        while index.bytes.saturating_add(bytes) > self.place.max_bytes
            || index.known.len() >= ANSWERS_MAX
        {
            let oldest = index.known.iter().min_by_key(|(_, known)| known.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                return;
            };
            self.remove(index, &oldest);
        }
    }

    pub(super) fn usage(&self) -> CacheUsage {
        self.with(|shelf, index| shelf.usage_of(index))
    }

    fn usage_of(&self, index: &Index) -> CacheUsage {
        CacheUsage {
            answers: index.known.len() as u64,
            bytes: index.bytes,
            max_bytes: self.place.max_bytes,
        }
    }

    pub(super) fn clear(&self) -> CacheUsage {
        self.with(|shelf, index| {
            let usage = shelf.usage_of(index);
            let keys: Vec<Key> = index.known.keys().copied().collect();
            keys.iter().for_each(|key| shelf.remove(index, key));
            usage
        })
    }

    pub(super) fn check(&self) -> u64 {
        let keys: Vec<Key> = self.with(|_, index| index.known.keys().copied().collect());
        let damaged = keys.iter().filter(|key| self.open(key).is_err());
        let damaged: Vec<&Key> = damaged.collect();
        self.with(|shelf, index| damaged.iter().for_each(|key| shelf.remove(index, key)));
        damaged.len() as u64
    }
}

impl Index {
    fn add(&mut self, key: Key, stored: &Stored, used: SystemTime) {
        let bytes = stored.size();
        self.bytes += bytes;
        self.known.insert(
            key,
            Known {
                bytes,
                used,
                body: stored.body.clone(),
            },
        );
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
