//! A mount of the host for a sandbox: a clone of it, which the sandbox gets as its `/`.
//!
//! Both show one superblock, so the kernel has one page cache and one set of names for both. The clone is private: what is
//! mounted in it shows nowhere else, and what is mounted in the other does not show in it.
//!
//! An ordinary user cannot clone a mount of the host. A process in a user and mount namespace that are newer than the mount can.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, open};
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::confine;
use crate::error::{During, Error, Fault, Result};
use crate::keeper::{self, ANSWER};
use crate::plan::{Confinement, Privilege};
use crate::protocol::{Duty, KeeperReply, Link};
use crate::sys::{self, Forked, MountChange};

/// A clone of the mount at `dir`, not attached, for [`Keeper::open_sandbox_on`](crate::Keeper::open_sandbox_on).
///
/// `binary` is the own executable. Whether `dir` is the expected mount is for the caller to check, on the clone. As root, files
/// of root belong to the sandbox's user in it, unless its commands are not confined.
pub fn clone_mount(binary: &Path, dir: &Path, confinement: Confinement) -> Result<OwnedFd> {
    let duty = Duty::CloneMount {
        dir: dir.to_owned(),
        confinement,
    };
    let (mut child, control) = keeper::spawn(binary, duty, |_| ())?;
    let answer = control.answer_with_descriptors::<KeeperReply>(ANSWER);
    drop(control);
    // It has answered, or will not.
    let _ = child.kill();
    let _ = child.wait();
    match answer {
        Ok((KeeperReply::Spawned, mut fds)) if fds.len() == 1 => Ok(fds.remove(0)),
        Ok((KeeperReply::Failed(fault), _)) => Err(Error::System(fault)),
        Ok(_) => Err(Error::Malformed {
            peer: "helper",
            reason: "not the reply to this request",
        }),
        Err(error) => Err(error.named("helper", Error::SandboxGone, ANSWER)),
    }
}

/// Clones the mount; in a process executed for it.
pub(crate) fn answer(dir: &Path, confinement: Confinement, control: &Link) {
    // The daemon may have ended.
    let _ = match clone(dir, confinement) {
        Ok(mount) => control.send(&KeeperReply::Spawned, &[mount.as_fd()]),
        Err(fault) => control.send(&KeeperReply::Failed(fault), &[]),
    };
}

fn clone(dir: &Path, confinement: Confinement) -> std::result::Result<OwnedFd, Fault> {
    let privilege = confine::privilege()?;
    if privilege == Privilege::User {
        let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS;
        // SAFETY: this process was executed for this and has one thread.
        unsafe { unshare_unsafe(flags) }.during(|| "make namespaces that have the mount")?;
    }
    // Without the mounts of others below it.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let mount = open_tree(CWD, dir, flags).during(|| format!("clone the mount at {dir:?}"))?;
    let nosuid_nodev = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let private = MountChange {
        set: nosuid_nodev.bits().into(),
        private: true,
        users: None,
    };
    sys::change_mount(mount.as_fd(), &private, false).during(|| "make a clone private")?;
    if (privilege, confinement) == (Privilege::Root, Confinement::Full) {
        let users = sandbox_users()?;
        let mapped = MountChange {
            set: MountAttrFlags::MOUNT_ATTR_IDMAP.bits().into(),
            private: false,
            users: Some(users.as_fd()),
        };
        sys::change_mount(mount.as_fd(), &mapped, false)
            .during(|| "give a mount to another user, which takes Linux 6.12")?;
    }
    Ok(mount)
}

/// A user namespace in which root is the sandbox's user.
fn sandbox_users() -> std::result::Result<OwnedFd, Fault> {
    let (ours, theirs) = Link::pair().map_err(|_| Fault {
        what: "make a socket pair".into(),
        errno: libc::EMFILE,
    })?;
    // SAFETY: this process was executed for this and has one thread.
    match unsafe { sys::fork(0) }.during(|| "fork a helper")? {
        Forked::Child => {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let made = confine::leave_root(0).and_then(|()| {
                let opened = open("/proc/self/ns/user", flags, Mode::empty());
                opened.during(|| "open its user namespace")
            });
            let _ = match &made {
                Ok(users) => theirs.send(&KeeperReply::Spawned, &[users.as_fd()]),
                Err(fault) => theirs.send(&KeeperReply::Failed(fault.clone()), &[]),
            };
            sys::leave(0)
        }
        Forked::Parent { .. } => {}
    }
    drop(theirs);
    match ours.answer_with_descriptors::<KeeperReply>(ANSWER) {
        Ok((KeeperReply::Spawned, mut fds)) if fds.len() == 1 => Ok(fds.remove(0)),
        Ok((KeeperReply::Failed(fault), _)) => Err(fault),
        Ok(_) | Err(_) => Err(Fault {
            what: "get a user namespace from a helper".into(),
            errno: libc::EPROTO,
        }),
    }
}
