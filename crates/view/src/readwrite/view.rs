//! Base and upper as one tree.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use avfs_fuse::Notifier;
use avfs_vault::{Entry, Kind, Root, RootId, Trees, VaultPath};
use rustix::fs::{FileType, Mode, OFlags, Statx};
use rustix::io::Errno;

use super::files::Handles;
use super::gate::Gate;
use super::host::{self, Io, Marks, Reach};
use super::nodes::{Body, Found, Key, Name, Origin, TOP, Table};
use super::points::Points;
use super::{Access, Owners, ReadWritePlan, Room};
use crate::{Owner, Result};

/// How many open directories of the upper are cached.
const DIRECTORIES_MAX: usize = 256;

pub struct View {
    pub trees: Trees,
    pub base: RootId,
    pub root: Arc<Root>,
    pub upper: Option<Arc<OwnedFd>>,
    pub marks: Marks,
    pub prefix: Vec<u8>,
    pub owner: Owner,
    pub owners: Owners,
    pub access: Access,
    pub points: Points,
    pub gate: Gate,
    pub handles: Handles,
    pub room: Mutex<Room>,
    pub notifier: OnceLock<Notifier>,
    /// Set when serving has ended.
    pub stopped: AtomicBool,
    /// Read-locked while names are looked up, write-locked while they change.
    changes: RwLock<()>,
    table: Mutex<Table>,
    directories: Mutex<HashMap<u64, Arc<OwnedFd>>>,
}

/// A directory: its upper, its origin in the base, or both.
#[derive(Clone)]
pub struct MergedDirectory {
    pub upper: Option<Arc<OwnedFd>>,
    pub origin: Option<Arc<Origin>>,
}

impl View {
    pub fn new(plan: ReadWritePlan) -> Result<View> {
        let root = plan.trees.root(plan.base)?;
        let top = Body::Directory {
            in_upper: plan.upper.is_some(),
            origin: Some(Arc::new(origin_at_top(&root))),
        };
        let access = match plan.upper {
            Some(_) => plan.access,
            None => Access::ReadOnly,
        };
        Ok(View {
            trees: plan.trees,
            base: plan.base,
            root,
            upper: plan.upper.map(Arc::new),
            marks: Marks::new(plan.marks),
            prefix: plan.unfinished_prefix,
            owner: plan.owner,
            owners: plan.owners,
            access,
            points: Points::new(&plan.mount_points),
            gate: Gate::default(),
            handles: Handles::default(),
            room: Mutex::new(plan.room),
            notifier: OnceLock::new(),
            stopped: AtomicBool::new(false),
            changes: RwLock::default(),
            table: Mutex::new(Table::new(top)),
            directories: Mutex::default(),
        })
    }

    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no holder of this lock panics")
    }

    /// No name changes while this is held.
    pub fn looking(&self) -> RwLockReadGuard<'_, ()> {
        self.changes.read().expect("no holder of this lock panics")
    }

    /// No name is looked up while this is held.
    pub fn changing(&self) -> RwLockWriteGuard<'_, ()> {
        self.changes.write().expect("no holder of this lock panics")
    }

    /// Whether it shows the base alone, which never changes.
    pub fn is_fixed(&self) -> bool {
        self.upper.is_none()
    }

    pub fn is_hidden(&self, name: &[u8]) -> bool {
        !self.prefix.is_empty() && name.starts_with(&self.prefix)
    }

    pub fn body(&self, number: u64) -> Io<Body> {
        let table = self.table();
        Ok(table.get(number).ok_or(Errno::STALE)?.body.clone())
    }

    pub fn place(&self, number: u64) -> Io<MergedDirectory> {
        match self.body(number)? {
            Body::Directory { in_upper, origin } => Ok(MergedDirectory {
                upper: in_upper.then(|| self.directory(number)).transpose()?,
                origin,
            }),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// The open directory of the upper that `number` is.
    pub fn directory(&self, number: u64) -> Io<Arc<OwnedFd>> {
        // The deepest first. Not recursion: trees may be deeper than a stack.
        let mut closed = Vec::new();
        let mut at = number;
        let mut directory = loop {
            if let Some(open) = self.known_directory(at)? {
                break open;
            }
            let name = self.name_of(at)?;
            let parent = name.parent;
            closed.push((at, name));
            at = parent;
        };
        while let Some((number, name)) = closed.pop() {
            directory = Arc::new(host::open_directory(&*directory, &name.name)?);
            let mut directories = self.lock_directories();
            if directories.len() >= DIRECTORIES_MAX {
                directories.clear();
            }
            directories.insert(number, directory.clone());
        }
        Ok(directory)
    }

    /// The directory of the upper that `number` is, if it is open.
    fn known_directory(&self, number: u64) -> Io<Option<Arc<OwnedFd>>> {
        match number {
            TOP => self.upper.clone().ok_or(Errno::ROFS).map(Some),
            _ => Ok(self.lock_directories().get(&number).cloned()),
        }
    }

    pub fn close_directory(&self, number: u64) {
        self.lock_directories().remove(&number);
    }

    fn lock_directories(&self) -> MutexGuard<'_, HashMap<u64, Arc<OwnedFd>>> {
        self.directories
            .lock()
            .expect("no holder of this lock panics")
    }

    /// One of the node's names.
    pub fn name_of(&self, number: u64) -> Io<Name> {
        let table = self.table();
        let node = table.get(number).ok_or(Errno::STALE)?;
        node.names.first().cloned().ok_or(Errno::STALE)
    }

    /// The node's file in the upper.
    pub fn reach(&self, number: u64) -> Io<Reach> {
        let opened = {
            let table = self.table();
            let node = table.get(number).ok_or(Errno::STALE)?;
            node.opened.upgrade()
        };
        if let Some(file) = opened.and_then(|opened| opened.file.get().cloned()) {
            return Ok(Reach::Open(file));
        }
        if number == TOP {
            let directory = self.directory(TOP)?;
            let name = b".".to_vec();
            return Ok(Reach::Name { directory, name });
        }
        let name = self.name_of(number)?;
        Ok(Reach::Name {
            directory: self.directory(name.parent)?,
            name: name.name,
        })
    }

    /// The entry `name` in the directory `parent`.
    pub fn find(&self, parent: u64, name: &[u8]) -> Io<Option<Found>> {
        self.find_in(&self.place(parent)?, name)
    }

    pub fn find_in(&self, place: &MergedDirectory, name: &[u8]) -> Io<Option<Found>> {
        if self.is_hidden(name) {
            return Ok(None);
        }
        if let Some(upper) = &place.upper {
            match host::stat(upper, name) {
                Ok(stat) if host::is_whiteout(&stat) => return Ok(None),
                Ok(stat) => return self.found_in_upper(place, upper, name, stat).map(Some),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(origin) = &place.origin else {
            return Ok(None);
        };
        match self.stored_child(origin, name)? {
            Some(entry) => self.found_in_base(origin, name, entry).map(Some),
            None => Ok(None),
        }
    }

    /// The base's entry of this name, or a mount point.
    pub fn stored_child(&self, origin: &Origin, name: &[u8]) -> Io<Option<Entry>> {
        let stored = self.trees.child(origin.tree, name);
        let stored = stored.map_err(|_| Errno::IO)?;
        Ok(stored.or_else(|| self.points.entry(origin, name)))
    }

    /// Whether the base would show through if the upper had nothing of this name.
    pub fn shows_through(&self, place: &MergedDirectory, name: &[u8]) -> Io<bool> {
        match &place.origin {
            Some(origin) => Ok(self.stored_child(origin, name)?.is_some()),
            None => Ok(false),
        }
    }

    fn found_in_upper(
        &self,
        place: &MergedDirectory,
        upper: &OwnedFd,
        name: &[u8],
        stat: Statx,
    ) -> Io<Found> {
        let kind = host::file_type(&stat);
        let (key, body) = if kind == FileType::Directory {
            let origin = self.origin_of(place, upper, name)?;
            let key = match &origin {
                Some(origin) => Key::of_path(&origin.path),
                None => Key::Upper(stat.stx_ino),
            };
            let in_upper = true;
            (key, Body::Directory { in_upper, origin })
        } else {
            (Key::Upper(stat.stx_ino), Body::Upper { kind })
        };
        Ok(Found {
            key,
            body,
            stat: Some(stat),
        })
    }

    /// The directory of the base that shows through the upper's directory `name`.
    fn origin_of(
        &self,
        place: &MergedDirectory,
        upper: &OwnedFd,
        name: &[u8],
    ) -> Io<Option<Arc<Origin>>> {
        let opened = host::open(upper, name, OFlags::PATH, Mode::empty())?;
        let path = host::again(&opened);
        // Its mode may forbid its owner, and so us, to read it.
        let read = |name: &str| {
            host::overriding(&opened, || {
                let mut value = vec![0; 4096];
                let length = rustix::fs::getxattr(&path, name, value.as_mut_slice())?;
                value.truncate(length);
                Ok(value)
            })
        };
        let mark = |name: &str| match read(name) {
            Ok(value) => Ok(Some(value)),
            Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
            Err(error) => Err(error),
        };
        if let Some(redirect) = mark(self.marks.redirect)? {
            return self.redirected(place, &redirect).map(Some);
        }
        let Some(origin) = &place.origin else {
            return Ok(None);
        };
        let Some(entry) = self.stored_child(origin, name)?.filter(Entry::is_dir) else {
            return Ok(None);
        };
        match mark(self.marks.opaque)? {
            Some(value) if value == b"y" => Ok(None),
            _ => Ok(Some(Arc::new(origin_below(origin, name, entry)?))),
        }
    }

    /// A redirect is a path from the top, or a name in the directory that the parent was redirected from.
    fn redirected(&self, place: &MergedDirectory, redirect: &[u8]) -> Io<Arc<Origin>> {
        let path = match &place.origin {
            Some(origin) if !redirect.starts_with(b"/") => origin.path.join(redirect),
            _ => VaultPath::parse(redirect),
        };
        let path = path.map_err(|_| Errno::IO)?;
        let mut origin = origin_at_top(&self.root);
        for name in path.components() {
            let entry = self.stored_child(&origin, name)?.ok_or(Errno::IO)?;
            origin = origin_below(&origin, name, entry).map_err(|_| Errno::IO)?;
        }
        Ok(Arc::new(origin))
    }

    fn found_in_base(&self, origin: &Origin, name: &[u8], entry: Entry) -> Io<Found> {
        if entry.is_dir() {
            let origin = origin_below(origin, name, entry)?;
            return Ok(Found {
                key: Key::of_path(&origin.path),
                body: Body::Directory {
                    in_upper: false,
                    origin: Some(Arc::new(origin)),
                },
                stat: None,
            });
        }
        let (key, links) = match entry.link() {
            Some(link) => (Key::of_link(link), self.names_left(link)?),
            None => (Key::of_path(&below(&origin.path, name)?), 1),
        };
        let entry = Arc::new(entry);
        Ok(Found {
            key,
            body: Body::Stored { entry, links },
            stat: None,
        })
    }
}

fn origin_at_top(root: &Root) -> Origin {
    Origin {
        path: VaultPath::root(),
        tree: root.tree(),
        meta: root.top.meta.clone(),
    }
}

fn origin_below(origin: &Origin, name: &[u8], entry: Entry) -> Io<Origin> {
    let Kind::Directory { tree, .. } = entry.kind else {
        return Err(Errno::NOTDIR);
    };
    Ok(Origin {
        path: below(&origin.path, name)?,
        tree,
        meta: entry.meta,
    })
}

fn below(path: &VaultPath, name: &[u8]) -> Io<VaultPath> {
    path.join(name).map_err(|_| Errno::NAMETOOLONG)
}
