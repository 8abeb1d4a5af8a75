//! A base, an empty layer, and a mounted view of both.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use avfs_store::Store;
use avfs_vault::{Entry, Kind, Meta, RootId, Time, Trees, VaultPath};
use rustix::fs::{Mode, OFlags};

use crate::readwrite::{Access, MountPoints, Owners, ReadWrite, ReadWritePlan, Room};
use crate::scan::MarkNames;
use crate::scanner::{Scanner, in_a_thread};
use crate::{Allowance, CommitInput, Committed, HashCache, Owner, Writers, commit};

pub const PREFIX: &[u8] = b".unfinished-";

pub struct Scene {
    pub view: Option<ReadWrite>,
    pub trees: Trees,
    pub base: RootId,
    pub top: PathBuf,
    pub upper: PathBuf,
    scanner: Scanner,
    cache: HashCache,
    is_mounted: bool,
    _directories: [tempfile::TempDir; 2],
}

pub struct Wishes {
    pub access: Access,
    pub owner: Owner,
    pub owners: Owners,
    pub room: Room,
    pub mount_points: MountPoints,
    pub with_upper: bool,
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes {
            access: Access::ReadWrite,
            owner: me(),
            owners: Owners::One,
            room: Room::default(),
            mount_points: MountPoints::default(),
            with_upper: true,
        }
    }
}

pub fn me() -> Owner {
    Owner {
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
    }
}

/// Each kind of user has its own overlayfs attributes.
pub fn marks() -> MarkNames {
    match rustix::process::getuid().is_root() {
        true => MarkNames::Trusted,
        false => MarkNames::User,
    }
}

pub fn time(secs: i64) -> Time {
    Time { secs, nanos: 5 }
}

impl Scene {
    /// A view of what `build` put into the base.
    pub fn of(build: impl FnOnce(&mut Builder)) -> Scene {
        Scene::with(Wishes::default(), build)
    }

    pub fn with(wishes: Wishes, build: impl FnOnce(&mut Builder)) -> Scene {
        let directory = tempfile::tempdir().unwrap();
        // On tmpfs if there is one, unless another directory is wanted: the disk is not what is tested.
        let home = match std::env::var_os("TMPDIR") {
            None => tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()),
            Some(_) => tempfile::tempdir(),
        };
        let home = home.unwrap();
        let trees = Trees::new(Store::open(home.path()).unwrap());
        let edit = trees.edit(trees.empty_root().unwrap()).unwrap();
        let mut builder = Builder {
            trees: trees.clone(),
            edit,
        };
        build(&mut builder);
        let base = builder.edit.finish().unwrap();
        let (upper, top) = (directory.path().join("upper"), directory.path().join("top"));
        std::fs::create_dir(&upper).unwrap();
        std::fs::create_dir(&top).unwrap();
        let mut scene = Scene {
            view: None,
            trees,
            base,
            top,
            upper,
            scanner: in_a_thread(marks()).unwrap(),
            cache: HashCache::default(),
            is_mounted: false,
            _directories: [home, directory],
        };
        scene.mount(wishes);
        scene
    }

    /// Shows base and upper once more, as after a restart.
    pub fn remount(&mut self, base: RootId) {
        self.unmount();
        self.base = base;
        self.mount(Wishes::default());
    }

    fn mount(&mut self, wishes: Wishes) {
        let view = serve(&self.trees, self.base, &self.upper, &self.top, wishes);
        self.is_mounted = true;
        self.view = Some(view);
    }

    /// Lets another process serve the view from now on.
    pub fn hand_over(&mut self) {
        self.unmount();
        self.view = None;
        self.is_mounted = true;
    }

    pub fn view(&self) -> &ReadWrite {
        self.view.as_ref().unwrap()
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.top.join(path.trim_start_matches('/'))
    }

    pub fn unmount(&mut self) {
        if std::mem::take(&mut self.is_mounted) {
            unmount(&self.top);
        }
    }

    pub fn commit(&mut self) -> Committed {
        let quiet = self.view.as_ref().map(|view| view.quiesce().unwrap());
        let skeleton = BTreeSet::new();
        let input = CommitInput {
            trees: &self.trees,
            base: self.base,
            last_commit: self.base,
            skeleton: &skeleton,
            own_work: crate::OwnWork::Names(PREFIX),
            owner: me(),
            writers: Writers::Some,
            allowance: Allowance::default(),
            spool: &std::env::temp_dir(),
            stopped: &|| false,
        };
        let upper = std::fs::File::open(&self.upper).unwrap();
        let committed = commit(&input, &self.scanner, upper.as_fd(), &mut self.cache).unwrap();
        drop(quiet);
        committed
    }

    pub fn paths(&self, root: RootId) -> Vec<String> {
        let paths = self.tree(root).into_keys();
        paths.map(|path| String::from_utf8(path).unwrap()).collect()
    }

    pub fn entry(&self, root: RootId, path: &str) -> Entry {
        let path = path.parse().unwrap();
        self.trees.entry(root, &path).unwrap().unwrap()
    }

    pub fn content(&self, root: RootId, path: &str) -> Vec<u8> {
        match self.entry(root, path).kind {
            Kind::File { content, size, .. } => self.trees.read(content, 0, size as usize).unwrap(),
            _ => panic!("{path} is no file"),
        }
    }

    pub fn mode(&self, path: &str) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::symlink_metadata(self.path(path)).unwrap();
        metadata.permissions().mode() & 0o7777
    }

    /// The content of a root: for each path, everything that is stored.
    pub fn tree(&self, root: RootId) -> BTreeMap<Vec<u8>, String> {
        let mut told = BTreeMap::new();
        let mut links = BTreeMap::new();
        let mut pending = vec![VaultPath::root()];
        while let Some(path) = pending.pop() {
            let entry = self.trees.entry(root, &path).unwrap().unwrap();
            let link = entry.link().map(|link| {
                let next = links.len();
                *links.entry(link).or_insert(next)
            });
            let content = match &entry.kind {
                Kind::Directory { tree, .. } => {
                    let names = self.trees.list(*tree).unwrap().into_iter();
                    pending.extend(names.map(|(name, _)| path.join(&name).unwrap()));
                    "directory".to_owned()
                }
                Kind::File { content, size, .. } => {
                    let bytes = self.trees.read(*content, 0, *size as usize).unwrap();
                    format!(
                        "file {size} {} link {}",
                        blake3::hash(&bytes),
                        link.is_some()
                    )
                }
                Kind::Symlink { target } => format!("symlink {target:?}"),
                Kind::Fifo => "fifo".to_owned(),
            };
            let mode = match entry.kind {
                Kind::Symlink { .. } => 0o777,
                _ => entry.meta.mode,
            };
            let text = format!("{content} {mode:o} {:?}", entry.meta.xattrs);
            told.insert(path.as_bytes().to_vec(), text);
        }
        told
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// Mounts a view of `base` and `upper` at `top`.
pub fn serve(trees: &Trees, base: RootId, upper: &Path, top: &Path, wishes: Wishes) -> ReadWrite {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let upper = rustix::fs::open(upper, flags, Mode::empty()).unwrap();
    let plan = ReadWritePlan {
        trees: trees.clone(),
        base,
        upper: wishes.with_upper.then_some(upper),
        marks: marks(),
        unfinished_prefix: PREFIX.to_vec(),
        owner: wishes.owner,
        owners: wishes.owners,
        access: wishes.access,
        room: wishes.room,
        mount_points: wishes.mount_points,
    };
    ReadWrite::serve(mount(top), plan).unwrap()
}

/// Puts things into a base.
pub struct Builder {
    pub trees: Trees,
    pub edit: avfs_vault::Edit,
}

impl Builder {
    pub fn directory(&mut self, path: &str) -> &mut Builder {
        self.entry(path, Entry::directory(0o755, time(1_000)))
    }

    pub fn file(&mut self, path: &str, text: impl AsRef<[u8]>) -> &mut Builder {
        self.file_with(path, text, Meta::new(0o644, time(2_000)))
    }

    pub fn file_with(&mut self, path: &str, text: impl AsRef<[u8]>, meta: Meta) -> &mut Builder {
        let (content, size) = self.trees.write_content(&mut text.as_ref()).unwrap();
        self.entry(path, Entry::file(content, size, meta))
    }

    pub fn symlink(&mut self, path: &str, target: &str) -> &mut Builder {
        self.entry(path, Entry::symlink(target.as_bytes(), time(3_000)))
    }

    pub fn link(&mut self, from: &str, to: &str) -> &mut Builder {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let mut entry = self.edit.get(&from).unwrap().unwrap();
        let Kind::File { link, .. } = &mut entry.kind else {
            panic!("only files have several names");
        };
        *link = Some(link.unwrap_or(self.edit.fresh_link(&from)));
        self.edit.put(&from, entry.clone()).unwrap();
        self.edit.put(&to, entry).unwrap();
        self
    }

    pub fn entry(&mut self, path: &str, entry: Entry) -> &mut Builder {
        self.edit.put(&path.parse().unwrap(), entry).unwrap();
        self
    }
}

/// Mounts as root does, or as anybody may with the setuid helper.
fn mount(at: &Path) -> OwnedFd {
    if rustix::process::getuid().is_root() {
        return mount_as_root(at);
    }
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty()).unwrap();
    let status = Command::new("fusermount3")
        .args(["-o", &format!("rw,{}", ReadWrite::MOUNT_OPTIONS), "--"])
        .arg(at)
        .env("_FUSE_COMMFD", theirs.as_raw_fd().to_string())
        .status()
        .expect("fusermount3, of the package fuse3, is needed to mount as an ordinary user");
    assert!(status.success());
    receive_descriptor(ours.as_fd())
}

fn receive_descriptor(socket: std::os::fd::BorrowedFd<'_>) -> OwnedFd {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut slices = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC).unwrap();
    let mut messages = ancillary.drain();
    let Some(RecvAncillaryMessage::ScmRights(mut passed)) = messages.next() else {
        panic!("fusermount3 sent no descriptor");
    };
    passed.next().unwrap()
}

fn mount_as_root(at: &Path) -> OwnedFd {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let fuse = rustix::fs::open("/dev/fuse", flags, Mode::empty()).unwrap();
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,{}",
        fuse.as_raw_fd(),
        ReadWrite::MOUNT_OPTIONS
    );
    let options = CString::new(options).unwrap();
    let flags = rustix::mount::MountFlags::NODEV | rustix::mount::MountFlags::NOSUID;
    rustix::mount::mount("avfs", at, "fuse.avfs", flags, options.as_c_str()).unwrap();
    fuse
}

fn unmount(at: &Path) {
    if rustix::process::getuid().is_root() {
        let _ = rustix::mount::unmount(at, rustix::mount::UnmountFlags::DETACH);
    } else {
        let _ = Command::new("fusermount3")
            .args(["-u", "-z", "--"])
            .arg(at)
            .status();
    }
}
