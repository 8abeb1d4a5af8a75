//! What earlier imports of a host directory read, so that the next one reads only what changed.
//!
//! A file is taken over unread when its device, inode, size, mtime and ctime are the same: no
//! change of content, mode or attributes leaves the ctime alone. A file that changed within 20 ms
//! of the scan, or later, may change again without moving its times, and is read again next time.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use avfs_store::ObjectId;
use avfs_vault::{Content, Kind, RootId, Time, Trees, XattrMap};
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// The version of the format, part of the file's name, so that other versions are not opened.
const SHAPE: u32 = 1;
const YOUNG_NANOS: i128 = 20_000_000;
/// Directories whose imports are remembered; the longest unused are forgotten first.
const FILES_KEPT: usize = 64;

/// What says that a file is the same as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Key {
    device: u64,
    inode: u64,
    size: u64,
    mtime: (i64, u32),
    ctime: (i64, u32),
}

impl Key {
    pub fn of(stat: &Stat) -> Key {
        Key {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size as u64,
            mtime: (stat.st_mtime, stat.st_mtime_nsec as u32),
            ctime: (stat.st_ctime, stat.st_ctime_nsec as u32),
        }
    }

    fn is_older_than(&self, time: Time) -> bool {
        let nanos =
            |(secs, nanos): (i64, u32)| i128::from(secs) * 1_000_000_000 + i128::from(nanos);
        let limit = nanos((time.secs, time.nanos)) - YOUNG_NANOS;
        nanos(self.mtime) < limit && nanos(self.ctime) < limit
    }
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    is_chunked: bool,
    object: [u8; 32],
    pub xattrs: XattrMap,
}

impl Known {
    pub fn new(content: Content, xattrs: XattrMap) -> Known {
        let (is_chunked, object) = match content {
            Content::Object(id) => (false, id),
            Content::Chunks(id) => (true, id),
        };
        Known {
            is_chunked,
            object: *object.as_bytes(),
            xattrs,
        }
    }

    pub fn content(&self) -> Content {
        let object = ObjectId::from_bytes(self.object);
        match self.is_chunked {
            true => Content::Chunks(object),
            false => Content::Object(object),
        }
    }
}

/// What one import takes over unread from earlier ones, and what it read itself.
pub struct ImportCache {
    begun: Time,
    known: HashMap<Key, Known>,
    next: Mutex<Next>,
    reused: AtomicU64,
}

#[derive(Default)]
struct Next {
    entries: Vec<(Key, Known)>,
    contents: HashSet<Content>,
}

impl ImportCache {
    /// An empty cache: every file is read.
    pub fn empty() -> ImportCache {
        ImportCache {
            begun: Time::now(),
            known: HashMap::new(),
            next: Mutex::default(),
            reused: AtomicU64::new(0),
        }
    }

    /// What the last import of `host_dir` left in `dir`; nothing when that cannot be read.
    pub fn load(dir: &Path, host_dir: &Path) -> ImportCache {
        let entries = fs::read(file_for(dir, host_dir)).ok();
        let entries = entries.and_then(|bytes| decode(&bytes)).unwrap_or_default();
        ImportCache {
            known: entries.into_iter().collect(),
            ..ImportCache::empty()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What is known of the file, if it is the same as before.
    pub(super) fn find(&self, stat: &Stat) -> Option<&Known> {
        let key = Key::of(stat);
        let known = self.known.get(&key)?;
        self.reused.fetch_add(1, Ordering::Relaxed);
        let mut next = self.next();
        next.contents.insert(known.content());
        next.entries.push((key, known.clone()));
        Some(known)
    }

    /// Remembers what was read of the file whose status was `stat` before and after.
    pub(super) fn learn(&self, stat: &Stat, content: Content, xattrs: &XattrMap) {
        let key = Key::of(stat);
        if key.is_older_than(self.begun) {
            let known = Known::new(content, xattrs.clone());
            self.next().entries.push((key, known));
        }
    }

    /// How many files were taken over unread.
    pub fn reused(&self) -> u64 {
        self.reused.load(Ordering::Relaxed)
    }

    /// Whether `content` was taken over unread.
    fn took_over(&self, content: Content) -> bool {
        self.next().contents.contains(&content)
    }

    /// The objects that `after` needs besides those of `before`, and that this import counted on without writing them:
    /// they may have been collected meanwhile.
    pub fn relied_on(&self, trees: &Trees, before: RootId, after: RootId) -> Result<Vec<ObjectId>> {
        let mut objects = Vec::new();
        if self.reused() == 0 {
            return Ok(objects);
        }
        let mut found = Ok(());
        trees.diff_each(before, after, &mut |change| {
            if let Some(Kind::File { content, .. }) = change.after.map(|entry| entry.kind)
                && self.took_over(content)
            {
                found = trees
                    .content_objects(content)
                    .map(|of_file| objects.extend(of_file));
            }
            found.is_ok()
        })?;
        found?;
        Ok(objects)
    }

    /// Writes the cache for the next import. If it fails, the next import reads everything.
    pub fn save(&self, dir: &Path, host_dir: &Path) -> std::io::Result<()> {
        fs::create_dir_all(dir)?;
        let path = file_for(dir, host_dir);
        let temporary = path.with_extension("new");
        let mut file = fs::File::create(&temporary)?;
        file.write_all(&encode(&self.next().entries))?;
        drop(file);
        fs::rename(&temporary, &path)?;
        forget_oldest(dir)
    }

    fn next(&self) -> MutexGuard<'_, Next> {
        // Every change is a single insertion, so a panic leaves it valid.
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn file_for(dir: &Path, host_dir: &Path) -> PathBuf {
    let name = ObjectId::of(host_dir.as_os_str().as_bytes()).to_string();
    dir.join(format!("{}.{SHAPE}", &name[..32]))
}

fn encode(entries: &[(Key, Known)]) -> Vec<u8> {
    let body = postcard::to_stdvec(entries).expect("plain data in memory");
    [ObjectId::of(&body).as_bytes().as_slice(), &body].concat()
}

/// None if the file is not exactly what was written.
fn decode(bytes: &[u8]) -> Option<Vec<(Key, Known)>> {
    let (hash, body) = bytes.split_at_checked(32)?;
    if ObjectId::of(body).as_bytes() != hash {
        return None;
    }
    postcard::from_bytes(body).ok()
}

fn forget_oldest(dir: &Path) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    files.sort();
    let surplus = files.len().saturating_sub(FILES_KEPT);
    for (_, path) in &files[..surplus] {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(path: &Path) -> Stat {
        rustix::fs::stat(path).unwrap()
    }

    #[test]
    fn what_is_known_is_kept_unless_it_is_young_or_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let (file, host) = (dir.path().join("file"), Path::new("/some/where"));
        let memory = dir.path().join("cache");
        fs::write(&file, "x").unwrap();
        let content = Content::Object(ObjectId::of(b"x"));
        let xattrs = XattrMap::from_iter([("user.a", "b")]);

        let young = ImportCache::load(&memory, host);
        young.learn(&stat(&file), content, &xattrs);
        young.save(&memory, host).unwrap();
        assert!(
            ImportCache::load(&memory, host)
                .find(&stat(&file))
                .is_none()
        );

        std::thread::sleep(std::time::Duration::from_millis(60));
        let first = ImportCache::load(&memory, host);
        first.learn(&stat(&file), content, &xattrs);
        first.save(&memory, host).unwrap();
        let second = ImportCache::load(&memory, host);
        let known = second.find(&stat(&file)).unwrap();
        assert_eq!((known.content(), &known.xattrs), (content, &xattrs));
        assert!(second.took_over(content) && second.reused() == 1);
        assert!(
            ImportCache::load(&memory, Path::new("/else"))
                .known
                .is_empty()
        );
        let mut other = stat(&file);
        other.st_ctime_nsec ^= 1;
        assert!(second.find(&other).is_none());

        let path = file_for(&memory, host);
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(ImportCache::load(&memory, host).known.is_empty());
    }

    #[test]
    fn few_directories_are_remembered() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..FILES_KEPT + 5 {
            let host = PathBuf::from(format!("/{n}"));
            ImportCache::empty().save(dir.path(), &host).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), FILES_KEPT);
    }
}
