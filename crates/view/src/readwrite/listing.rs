//! Directory listings whose positions are stable while entries come and go.
//!
//! A position is a hash of the name, and entries are listed in this order. So a reader that continues from a position
//! misses no entry that existed all the time, and sees none twice.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use avfs_fuse::{FileAttr, FileHandle};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::files::Handle;
use super::host::{self, Io};
use super::nodes::{Key, Name};
use super::view::{MergedDirectory, View};
use crate::shown::kind_of_stored;

/// The first positions, of `.` and `..`.
pub const DOTS: [(u64, &[u8]); 2] = [(1, b"."), (2, b"..")];

pub struct Item {
    pub position: u64,
    pub name: Vec<u8>,
    pub kind: FileType,
    pub number: u64,
}

pub struct Listing {
    items: Vec<Item>,
}

impl Listing {
    /// The items after `position`.
    pub fn after(&self, position: u64) -> &[Item] {
        let from = self.items.partition_point(|item| item.position <= position);
        &self.items[from..]
    }
}

impl View {
    pub fn open_directory(&self, number: u64) -> Io<FileHandle> {
        self.place(number)?;
        Ok(self.handles.insert(Handle::Directory(Default::default())))
    }

    /// The listing of a handle. Reading from the start makes a new one.
    pub fn listing(&self, number: u64, handle: FileHandle, from: u64) -> Io<Arc<Listing>> {
        if handle.0 == 0 {
            return self.list(number).map(Arc::new);
        }
        let handle = self.handles.get(handle)?;
        let Handle::Directory(kept) = &*handle else {
            return Err(Errno::NOTDIR);
        };
        let mut kept = kept.lock().expect("no holder of this lock panics");
        match &*kept {
            Some(listing) if from != 0 => Ok(listing.clone()),
            _ => {
                let listing = Arc::new(self.list(number)?);
                *kept = Some(listing.clone());
                Ok(listing)
            }
        }
    }

    fn list(&self, number: u64) -> Io<Listing> {
        let place = self.place(number)?;
        let mut items = Vec::new();
        let mut covered = HashSet::new();
        if let Some(upper) = &place.upper {
            for (name, kind, inode) in host::names(upper)? {
                if let Some(item) = self.upper_item(&place, &name, kind, inode)? {
                    items.push(item);
                }
                covered.insert(name);
            }
        }
        if let Some(origin) = &place.origin {
            let stored = self.trees.list(origin.tree).map_err(|_| Errno::IO)?;
            let table = self.table();
            for (name, entry) in stored {
                if covered.contains(&name) || self.is_hidden(&name) {
                    continue;
                }
                let key = match (entry.link(), origin.path.join(&name)) {
                    (Some(link), _) => Key::of_link(link),
                    (None, Ok(path)) => Key::of_path(&path),
                    (None, Err(_)) => continue,
                };
                items.push(Item {
                    position: position(&name),
                    kind: kind_of_stored(&entry),
                    number: table.number(key),
                    name,
                });
            }
        }
        items.sort_unstable_by(|a, b| (a.position, &a.name).cmp(&(b.position, &b.name)));
        // Two names with the same hash: the second gets the next position.
        for index in 1..items.len() {
            if items[index].position <= items[index - 1].position {
                items[index].position = items[index - 1].position + 1;
            }
        }
        Ok(Listing { items })
    }

    fn upper_item(
        &self,
        place: &MergedDirectory,
        name: &[u8],
        kind: FileType,
        inode: u64,
    ) -> Io<Option<Item>> {
        if self.is_hidden(name) {
            return Ok(None);
        }
        let (key, kind) = match kind {
            // A character device may be a whiteout, and a directory's number depends on its origin.
            FileType::CharacterDevice | FileType::Directory | FileType::Unknown => {
                match self.find_in(place, name)? {
                    Some(found) => {
                        let stat = found.stat.as_ref();
                        (found.key, stat.map_or(kind, host::file_type))
                    }
                    None => return Ok(None),
                }
            }
            kind => (Key::Upper(inode), kind),
        };
        Ok(Some(Item {
            position: position(name),
            name: name.to_vec(),
            kind,
            number: self.table().number(key),
        }))
    }

    /// Whether the directory is empty.
    pub fn is_empty(&self, place: &MergedDirectory) -> Io<bool> {
        let mut covered = HashSet::new();
        if let Some(upper) = &place.upper {
            for (name, kind, inode) in host::names(upper)? {
                if self.upper_item(place, &name, kind, inode)?.is_some() {
                    return Ok(false);
                }
                covered.insert(name);
            }
        }
        let Some(origin) = &place.origin else {
            return Ok(true);
        };
        let stored = self.trees.list(origin.tree).map_err(|_| Errno::IO)?;
        Ok(stored.iter().all(|(name, _)| covered.contains(name)))
    }

    /// Looks up one item, if it still exists.
    pub fn hand_out_item(
        &self,
        place: &MergedDirectory,
        parent: u64,
        name: &[u8],
    ) -> Io<Option<FileAttr>> {
        let Some(found) = self.find_in(place, name)? else {
            return Ok(None);
        };
        let name = Name {
            parent,
            name: name.to_vec(),
        };
        let number = self.table().hand_out(&found, name);
        Ok(Some(self.attr_of_found(number, &found)))
    }
}

fn position(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(name);
    // Positive as an offset, and after the dots.
    (hasher.finish() >> 2) + DOTS.len() as u64 + 1
}
