//! The root file system of a sandbox: the overlay as `/`, and host and generated directories mounted on it.
//!
//! Everything is attached through descriptors that were opened without following symbolic links, because commands
//! choose the names in a vault.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, mkdirat, open, openat, openat2,
    symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
    mount_change, move_mount, open_tree,
};

use crate::error::{During, Fault};
use crate::lend::check_identity;
use crate::limits::Mechanism;
use crate::mover::STAGING_IN;
use crate::plan::{
    EtcContent, EtcFile, INNER_UID, OverlayPlan, Privilege, SANDBOX_UID, SandboxPlan,
};
use crate::sys::{self, MountChange};

const NOSUID_NODEV: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const READ_ONLY: MountAttrFlags = NOSUID_NODEV.union(MountAttrFlags::MOUNT_ATTR_RDONLY);
/// A device must stay openable; everything else is restricted.
const DEVICE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC)
    .union(MountAttrFlags::MOUNT_ATTR_RDONLY);

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("pts/ptmx", "ptmx"),
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
];

/// Where the terminals of execs are shown. Those that commands make themselves are in `/dev/pts`.
const TERMINALS: &str = "dev/terminals";

/// A root file system being built at an attached mount.
pub(crate) struct Root {
    top: OwnedFd,
    privilege: Privilege,
}

/// Builds the file system of `plan` at `at` and makes it the root of this process.
///
/// The process must be alone in its mount namespace and pid 1 of its pid namespace. `memory` is what enforces the
/// memory limits. A plan without an overlay comes with the mount that is `/`.
pub(crate) fn enter(
    plan: &SandboxPlan,
    mount: Option<&OwnedFd>,
    privilege: Privilege,
    memory: Mechanism,
    at: &Path,
) -> Result<Entered, Fault> {
    let root = Root::with_scratch(plan, mount, privilege, at)?;
    for (inside, mode, size) in [("run", "0755", "64m"), ("var/tmp", "1777", "25%")] {
        match root.memory(inside, mode, size) {
            // The vault has something else there, such as a link to /tmp, which is kept.
            Err(Fault {
                errno: libc::ELOOP | libc::ENOTDIR,
                ..
            }) => {}
            done => done?,
        }
    }
    let hidden = root.directory(Path::new(STAGING_IN))?;
    root.processes()?;
    let terminals = root.devices(memory)?;
    root.etc(&plan.etc)?;
    let mut lent: Vec<_> = plan.lent.iter().collect();
    // Sorted, so that a mount point exists before those inside it.
    lent.sort_by_key(|lent| lent.inside.components().count());
    for lent in lent {
        let tree = clone_tree(&lent.host)?;
        check_identity(tree.as_fd(), lent)?;
        restrict(tree.as_fd(), READ_ONLY, true)?;
        root.put(tree.as_fd(), &lent.inside)?;
    }
    let queues = match new_mount("mqueue", &[("source", "mqueue")], &[], NOSUID_NODEV) {
        // A kernel without message queues.
        Err(fault) if fault.errno == libc::ENODEV => None,
        queues => Some(queues?),
    };
    rustix::process::fchdir(&root.top).during(|| "go to the new root")?;
    sys::enter_root().during(|| "enter the new root")?;
    Ok(Entered {
        terminals,
        queues,
        hidden,
    })
}

/// File systems of a sandbox that its commands do not reach.
pub(crate) struct Entered {
    /// The devpts on which terminals of execs are made ([`Root::terminals`]).
    pub terminals: OwnedFd,
    /// The message queues, if the kernel has any.
    pub queues: Option<OwnedFd>,
    /// The overlay's own directory [`STAGING_IN`], which is then covered by a mount.
    pub hidden: OwnedFd,
}

/// Mounts the view of `plan` at `at`, in the existing root.
pub(crate) fn stand_beside(
    plan: &SandboxPlan,
    mount: Option<&OwnedFd>,
    privilege: Privilege,
    at: &Path,
) -> Result<(), Fault> {
    Root::with_scratch(plan, mount, privilege, at)?;
    // The agent finds its commands in this procfs.
    let attributes = NOSUID_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mount = new_mount("proc", &[("source", "proc")], &[], attributes)?;
    attach(mount.as_fd(), open_mount_point(Path::new("/proc"))?.as_fd())
}

impl Root {
    /// Mounts the view at `at` and the vault's scratch in it, privately.
    fn with_scratch(
        plan: &SandboxPlan,
        mount: Option<&OwnedFd>,
        privilege: Privilege,
        at: &Path,
    ) -> Result<Root, Fault> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).during(|| "detach its mounts from the keeper's")?;
        let root = match (&plan.overlay, mount) {
            (Some(overlay), _) => Root::overlay(overlay, plan.readonly, privilege, at)?,
            (None, Some(mount)) => Root::of(mount.as_fd(), privilege, at)?,
            (None, None) => {
                let (what, errno) = ("mount a view that it was not given".into(), libc::EINVAL);
                return Err(Fault { what, errno });
            }
        };
        let scratch = open_directory(&plan.scratch)?;
        give(scratch.as_fd(), privilege, || {
            format!("own {:?}", plan.scratch)
        })?;
        root.show(scratch.as_fd(), Path::new("tmp"), NOSUID_NODEV)?;
        Ok(root)
    }

    /// Mounts the overlay at `at`.
    fn overlay(
        plan: &OverlayPlan,
        readonly: bool,
        privilege: Privilege,
        at: &Path,
    ) -> Result<Root, Fault> {
        // Overlayfs copies the owner of its root when it is mounted.
        give(open_directory(&plan.upper)?.as_fd(), privilege, || {
            format!("own {:?}", plan.upper)
        })?;
        let mount = new_overlay(plan, readonly, privilege)?;
        Root::of(mount.as_fd(), privilege, at)
    }

    /// Attaches a mount at `at`.
    fn of(mount: BorrowedFd<'_>, privilege: Privilege, at: &Path) -> Result<Root, Fault> {
        attach(mount, open_mount_point(at)?.as_fd())?;
        Ok(Root {
            top: open_mount_point(at)?,
            privilege,
        })
    }

    /// Binds `source` at `inside`.
    fn show(
        &self,
        source: BorrowedFd<'_>,
        inside: &Path,
        attributes: MountAttrFlags,
    ) -> Result<(), Fault> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(source, "", flags).during(|| format!("lend {inside:?}"))?;
        restrict(tree.as_fd(), attributes, true)?;
        self.put(tree.as_fd(), inside)
    }

    /// A tmpfs that belongs to the commands.
    fn memory(&self, inside: &str, mode: &str, size: &str) -> Result<(), Fault> {
        let owner = self.owner();
        let options = [
            ("mode", mode),
            ("size", size),
            // Inodes use memory as well.
            ("nr_inodes", "100k"),
            ("uid", owner.as_str()),
            ("gid", owner.as_str()),
        ];
        self.put(tmpfs(&options, NOSUID_NODEV)?.as_fd(), Path::new(inside))
    }

    fn processes(&self) -> Result<(), Fault> {
        let attributes = NOSUID_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let mount = new_mount("proc", &[("source", "proc")], &[], attributes)?;
        self.put(mount.as_fd(), Path::new(STAGING_IN))
    }

    /// Makes `/dev`; returns the devpts of the execs.
    fn devices(&self, memory: Mechanism) -> Result<OwnedFd, Fault> {
        let owner = self.owner();
        let owned = [
            ("mode", "0755"),
            ("uid", owner.as_str()),
            ("gid", owner.as_str()),
        ];
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        self.put(tmpfs(&owned, attributes)?.as_fd(), Path::new("dev"))?;
        let dev = self.directory(Path::new("dev"))?;
        for device in DEVICES {
            let spot = create_file(dev.as_fd(), device)?;
            let source = match (device, memory) {
                // /dev/full reads like /dev/zero and cannot be mapped: shared mappings of /dev/zero are memory that nothing counts.
                ("zero", Mechanism::Poll) => "full",
                (device, _) => device,
            };
            let tree = clone_tree(&Path::new("/dev").join(source))?;
            restrict(tree.as_fd(), DEVICE, false)?;
            attach(tree.as_fd(), spot.as_fd())?;
        }
        for (target, name) in DEVICE_LINKS {
            symlinkat(target, &dev, name).during(|| format!("link /dev/{name}"))?;
        }
        self.put(devpts()?.as_fd(), Path::new("dev/pts"))?;
        let terminals = self.terminals()?;
        self.memory("dev/shm", "1777", "50%")?;
        restrict(dev.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, false)?;
        Ok(terminals)
    }

    /// Mounts the devpts for terminals of execs, and over it the same devpts with `nodev` and read-only.
    ///
    /// All commands of a sandbox run as one user, so modes do not protect the terminal of one exec from another. By
    /// path, every terminal can be inspected (`ttyname` does) but not opened. A command opens its own by its
    /// descriptors, `/dev/stdin` and `/dev/tty`; Landlock denies it the descriptors of other execs.
    fn terminals(&self) -> Result<OwnedFd, Fault> {
        let terminals = devpts()?;
        self.put(terminals.as_fd(), Path::new(TERMINALS))?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        let shown =
            open_tree(&terminals, "", flags).during(|| format!("show /{TERMINALS} again"))?;
        restrict(shown.as_fd(), READ_ONLY, false)?;
        attach(shown.as_fd(), terminals.as_fd())?;
        Ok(terminals)
    }

    fn etc(&self, files: &[EtcFile]) -> Result<(), Fault> {
        let owner = self.owner();
        let owned = [
            ("mode", "0755"),
            ("uid", owner.as_str()),
            ("gid", owner.as_str()),
        ];
        self.put(tmpfs(&owned, NOSUID_NODEV)?.as_fd(), Path::new("etc"))?;
        let etc = self.directory(Path::new("etc"))?;
        for file in files {
            let inside = Path::new("etc").join(&file.path);
            match &file.content {
                EtcContent::Bytes(bytes) => {
                    let mut spot = File::from(self.file(&inside)?);
                    spot.write_all(bytes)
                        .during(|| format!("write {inside:?}"))?;
                }
                EtcContent::Host(host) => {
                    let tree = clone_tree(host)?;
                    restrict(tree.as_fd(), READ_ONLY, true)?;
                    let kind = rustix::fs::fstat(&tree).during(|| format!("look at {host:?}"))?;
                    if rustix::fs::FileType::from_raw_mode(kind.st_mode).is_dir() {
                        self.put(tree.as_fd(), &inside)?;
                    } else {
                        attach(tree.as_fd(), self.file(&inside)?.as_fd())?;
                    }
                }
            }
        }
        restrict(etc.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, false)
    }

    /// Attaches a mount at the directory `inside`, which is made if it is missing.
    fn put(&self, mount: BorrowedFd<'_>, inside: &Path) -> Result<(), Fault> {
        attach(mount, self.directory(inside)?.as_fd())
    }

    /// The directory `inside`, made with its parents if it is missing.
    fn directory(&self, inside: &Path) -> Result<OwnedFd, Fault> {
        let inside = inside.strip_prefix("/").unwrap_or(inside);
        match beneath(self.top.as_fd(), inside) {
            Err(Errno::NOENT) => {}
            found => return found.during(|| format!("find the directory {inside:?} in the vault")),
        }
        let mut here = beneath(self.top.as_fd(), Path::new(".")).during(|| "find the root")?;
        for part in inside.components() {
            let Component::Normal(name) = part else {
                let what = format!("use {inside:?} as a mount point");
                return Err(Fault {
                    what,
                    errno: libc::EINVAL,
                });
            };
            match mkdirat(&here, name, Mode::from_raw_mode(0o755)) {
                Ok(()) => {
                    let made = beneath(here.as_fd(), Path::new(name))
                        .during(|| format!("find the directory {inside:?}"))?;
                    give(made.as_fd(), self.privilege, || format!("own {inside:?}"))?;
                }
                Err(Errno::EXIST) => {}
                Err(errno) => Err(errno).during(|| format!("make the directory {inside:?}"))?,
            }
            here = beneath(here.as_fd(), Path::new(name))
                .during(|| format!("find the directory {inside:?} in the vault"))?;
        }
        Ok(here)
    }

    /// A new empty file `inside`; its directory is made if it is missing.
    fn file(&self, inside: &Path) -> Result<OwnedFd, Fault> {
        let invalid = || Fault {
            what: format!("make {inside:?}"),
            errno: libc::EINVAL,
        };
        let name = inside.file_name().ok_or_else(invalid)?;
        let dir = self.directory(inside.parent().ok_or_else(invalid)?)?;
        create_file(dir.as_fd(), name.to_str().ok_or_else(invalid)?)
    }

    /// The commands' uid and gid as a mount option.
    fn owner(&self) -> String {
        match self.privilege {
            Privilege::Root => SANDBOX_UID.to_string(),
            Privilege::User => INNER_UID.to_string(),
        }
    }
}

/// The overlay of `plan`, not attached yet.
///
/// Layers are passed as descriptors: no character in a path needs escaping, and the mount table, which commands can
/// read, shows no host path.
pub(crate) fn new_overlay(
    plan: &OverlayPlan,
    readonly: bool,
    privilege: Privilege,
) -> Result<OwnedFd, Fault> {
    let lowers = plan.lowers.iter().map(|path| open_directory(path));
    let lowers = lowers.collect::<Result<Vec<_>, _>>()?;
    let (upper, work) = (open_directory(&plan.upper)?, open_directory(&plan.work)?);
    let name = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let stack = lowers.iter().map(name).collect::<Vec<_>>().join(":");
    let (upper_name, work_name) = (name(&upper), name(&work));
    let mut options = vec![
        ("source", "vault"),
        ("lowerdir", stack.as_str()),
        ("upperdir", upper_name.as_str()),
        ("workdir", work_name.as_str()),
        ("metacopy", "off"),
        ("index", "off"),
        ("nfs_export", "off"),
        ("xino", "on"),
    ];
    let mut flags = Vec::new();
    match privilege {
        Privilege::Root => options.push(("redirect_dir", "on")),
        Privilege::User => {
            options.push(("redirect_dir", "nofollow"));
            flags.push("userxattr");
        }
    }
    let mut attributes = NOSUID_NODEV;
    if readonly {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    new_mount("overlay", &options, &flags, attributes)
}

/// Chowns a host directory to the commands' user; without root it is theirs already.
fn give(
    dir: BorrowedFd<'_>,
    privilege: Privilege,
    what: impl FnOnce() -> String,
) -> Result<(), Fault> {
    match privilege {
        Privilege::User => Ok(()),
        Privilege::Root => {
            let (uid, gid) = (Uid::from_raw(SANDBOX_UID), Gid::from_raw(SANDBOX_UID));
            chownat(dir, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH).during(what)
        }
    }
}

/// A new devpts, not attached yet.
fn devpts() -> Result<OwnedFd, Fault> {
    let options = [("source", "devpts"), ("ptmxmode", "0666"), ("mode", "0620")];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    new_mount("devpts", &options, &[], attributes)
}

/// A new tmpfs, not attached yet.
pub(crate) fn tmpfs(
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Fault> {
    new_mount("tmpfs", options, &[], attributes)
}

/// A new file system, not attached yet.
pub(crate) fn new_mount(
    kind: &str,
    options: &[(&str, &str)],
    flags: &[&str],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Fault> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).during(|| format!("open {kind}"))?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, *value)
            .during(|| format!("set {key}={value} of {kind}"))?;
    }
    for key in flags {
        fsconfig_set_flag(context.as_fd(), *key).during(|| format!("set {key} of {kind}"))?;
    }
    fsconfig_create(context.as_fd()).during(|| format!("create {kind}"))?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
        .during(|| format!("mount {kind}"))
}

/// Attaches a mount at an open directory.
pub(crate) fn attach(mount: BorrowedFd<'_>, place: BorrowedFd<'_>) -> Result<(), Fault> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", place, "", flags).during(|| "attach a mount")
}

/// A directory to mount on; if it is a mount point, the root of the mount.
pub(crate) fn open_mount_point(path: &Path) -> Result<OwnedFd, Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    open(path, flags, Mode::empty()).during(|| format!("open {path:?}"))
}

fn open_directory(path: &Path) -> Result<OwnedFd, Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).during(|| format!("open {path:?}"))
}

fn clone_tree(path: &Path) -> Result<OwnedFd, Fault> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags).during(|| format!("lend {path:?}"))
}

fn restrict(
    mount: BorrowedFd<'_>,
    attributes: MountAttrFlags,
    recursive: bool,
) -> Result<(), Fault> {
    let change = MountChange {
        set: u64::from(attributes.bits()),
        ..MountChange::default()
    };
    sys::change_mount(mount, &change, recursive).during(|| "restrict a mount")
}

/// A directory below `top`, without symbolic links on the way.
fn beneath(top: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(top, path, flags, Mode::empty(), resolve)
}

fn create_file(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Fault> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::from_raw_mode(0o644)).during(|| format!("create {name}"))
}
