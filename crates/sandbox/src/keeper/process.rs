//! The keeper itself: pid 1 of its namespaces. It mounts file systems and forks sandboxes.
//!
//! It must never access a mounted FUSE file system: the server may never answer.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, mkdir, open};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, mount_change};
use rustix::process::{
    PidfdFlags, Signal, getpid, pidfd_open, set_parent_process_death_signal, setsid,
};

use crate::agent;
use crate::confine;
use crate::error::{During, Fault};
use crate::limits::Mechanism;
use crate::open_files;
use crate::plan::{OverlayPlan, Privilege};
use crate::probe;
use crate::protocol::{
    Boot, Duty, KeeperReply, KeeperRequest, Link, Received, VERSION, readable_within, unseal,
};
use crate::rootfs::{attach, new_mount, new_overlay, open_mount_point, tmpfs};
use crate::seccomp::Filter;
use crate::share;
use crate::shared_mount;
use crate::sys::{self, Forked};

/// How long a new keeper waits for the processes of the previous one to end.
const PREDECESSOR: Duration = Duration::from_secs(10);

/// Runs a process started as `<binary> __keeper`; its control socket is standard input.
///
/// It stays to wait for the keeper proper, so that its own end means that no process of the keeper is left.
pub fn keeper_main() -> ExitCode {
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else {
        return ExitCode::FAILURE;
    };
    let control = Link::from(control);
    if sys::null_descriptors(&[0, 1]).is_err() {
        return ExitCode::FAILURE;
    }
    // Keeps signals of the terminal away; it fails only for a session leader.
    let _ = setsid();
    let boot = match control.receive::<Boot>(crate::protocol::Wait::Forever) {
        Ok(Received::Frame(boot, _)) => boot,
        _ => return ExitCode::FAILURE,
    };
    if let Some(soft) = boot.open_files {
        open_files::set(soft);
    }
    let outcome = match boot {
        Boot { version, .. } if version != VERSION => Err(Fault {
            what: format!("speak protocol {version}: this program has {VERSION}"),
            errno: libc::EPROTO,
        }),
        Boot {
            duty: Duty::Probe(trial),
            ..
        } => {
            probe::answer(trial, &control);
            return ExitCode::SUCCESS;
        }
        Boot {
            duty: Duty::CloneMount { dir, confinement },
            ..
        } => {
            shared_mount::answer(&dir, confinement, &control);
            return ExitCode::SUCCESS;
        }
        Boot {
            duty: Duty::Keep { runtime_dir },
            ..
        } => keep(&control, runtime_dir),
    };
    if let Err(fault) = outcome {
        // The daemon may have ended.
        let _ = control.send(&KeeperReply::Failed(fault), &[]);
        return ExitCode::FAILURE;
    }
    // Only the keeper may hold the socket, so that the daemon sees its end.
    drop(control);
    while !matches!(sys::wait_any(true), sys::Waited::NoChildren) {}
    ExitCode::SUCCESS
}

/// Forks the keeper proper; returns once it runs.
fn keep(control: &Link, runtime_dir: PathBuf) -> Result<(), Fault> {
    let lock = take_over(&runtime_dir)?;
    let privilege = confine::privilege()?;
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let waiter = pidfd_open(getpid(), PidfdFlags::empty()).during(|| "open its own pidfd")?;
    let flags = match privilege {
        Privilege::Root => libc::CLONE_NEWNS | libc::CLONE_NEWPID,
        Privilege::User => libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID,
    };
    // SAFETY: this process was executed to be the keeper and has started no thread.
    match unsafe { sys::fork(flags) }.during(|| "make its namespaces")? {
        Forked::Parent { .. } => {
            // Held until this process ends, which is after the last process of the keeper.
            std::mem::forget(lock);
            Ok(())
        }
        Forked::Child => {
            let ids = (uid.as_raw(), gid.as_raw());
            let code = match Process::new(control, runtime_dir, privilege, ids, waiter.as_fd()) {
                Ok(process) => process.serve(),
                Err(fault) => {
                    let _ = control.send(&KeeperReply::Failed(fault), &[]);
                    1
                }
            };
            sys::leave(code)
        }
    }
}

/// Waits until no process of an earlier keeper of this directory is left.
fn take_over(runtime_dir: &Path) -> Result<OwnedFd, Fault> {
    let path = runtime_dir.join("keeper.lock");
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let lock =
        open(&path, flags, Mode::from_raw_mode(0o600)).during(|| format!("open {path:?}"))?;
    let deadline = Instant::now() + PREDECESSOR;
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => {
                done.during(|| format!("lock {path:?}, which another keeper holds"))?;
                return Ok(lock);
            }
        }
    }
}

/// The keeper proper.
struct Process<'a> {
    control: &'a Link,
    privilege: Privilege,
    /// The uid and gid of the caller, as the host sees them.
    ids: (u32, u32),
    /// A private file system for mount points.
    dir: PathBuf,
    filter: Filter,
}

impl<'a> Process<'a> {
    fn new(
        control: &'a Link,
        runtime_dir: PathBuf,
        privilege: Privilege,
        ids: (u32, u32),
        waiter: BorrowedFd<'_>,
    ) -> Result<Process<'a>, Fault> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .during(|| "set its parent death signal")?;
        if readable_within(waiter, Duration::ZERO)? {
            sys::leave(1);
        }
        // Sets the process name, to tell our processes apart in `ps`.
        let _ = rustix::thread::set_name(c"avfs-keeper");
        // Commands must be able to read what it creates.
        rustix::process::umask(Mode::WGRP | Mode::WOTH);
        if privilege == Privilege::User {
            confine::map_ids((0, ids.0), (0, ids.1))?;
        }
        share::bound_all(privilege)?;
        let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change("/", propagation).during(|| "detach its mounts from the host's")?;
        let dir = runtime_dir.join("keeper");
        match mkdir(&dir, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => Err(errno).during(|| format!("make {dir:?}"))?,
        }
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let mount = tmpfs(&[("mode", "0700")], attributes)?;
        attach(mount.as_fd(), open_mount_point(&dir)?.as_fd())?;
        mkdir(dir.join(agent::ROOT), Mode::RWXU).during(|| "make the mount point of roots")?;
        sys::ignore_children();
        let filter = Filter::compile()?;
        Ok(Process {
            control,
            privilege,
            ids,
            dir,
            filter,
        })
    }

    /// Answers until the daemon ends; all its children end with this process.
    fn serve(self) -> i32 {
        if self.greet().is_err() {
            return 1;
        }
        loop {
            let (request, descriptors) = match self.control.receive_with_descriptors() {
                Ok(Received::Frame(request, descriptors)) => (request, descriptors),
                Ok(Received::Nothing) => continue,
                Ok(Received::Closed) => break,
                Err(_) => break,
            };
            let (reply, descriptor) = match self.answer(request, descriptors) {
                Ok(done) => done,
                Err(fault) => (KeeperReply::Failed(fault), None),
            };
            let passed: Vec<_> = descriptor.iter().map(AsFd::as_fd).collect();
            if self.control.send(&reply, &passed).is_err() {
                break;
            }
        }
        // Killed children must be reaped before this process releases the lock that it shares with them.
        sys::signal_all_reachable(libc::SIGKILL);
        while !matches!(sys::wait_any(true), sys::Waited::NoChildren) {}
        0
    }

    fn greet(&self) -> Result<(), Fault> {
        let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).during(|| "open its own pidfd")?;
        let reply = KeeperReply::Ready {
            pid: host_pid()?,
            privilege: self.privilege,
        };
        self.control
            .send(&reply, &[pidfd.as_fd()])
            .map_err(|_| Fault {
                what: "greet the daemon".into(),
                errno: libc::EPIPE,
            })
    }

    fn answer(
        &self,
        request: KeeperRequest,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(KeeperReply, Option<OwnedFd>), Fault> {
        match request {
            KeeperRequest::MountFuse { name } => {
                let path = self.dir.join(name);
                let device = mount_fuse(&path)?;
                Ok((KeeperReply::Mounted { path }, Some(device)))
            }
            KeeperRequest::SpawnHelper { role } => {
                let socket = descriptors.into_iter().next().ok_or_else(incomplete)?;
                spawn_helper(&role, socket)?;
                Ok((KeeperReply::Spawned, None))
            }
            KeeperRequest::MountOverlay => {
                self.mount_overlay(descriptors)?;
                Ok((KeeperReply::Spawned, None))
            }
            KeeperRequest::OpenSandbox {
                has_mount,
                network,
                confinement,
                memory,
            } => {
                let flags = agent::namespaces(self.privilege, network, confinement);
                let pidfd = self.open_sandbox(flags, memory, has_mount, descriptors)?;
                Ok((KeeperReply::Opening, Some(pidfd)))
            }
        }
    }

    /// Forks a child that mounts an overlay. The lower layer is served by the daemon, so mounting may block, and the
    /// keeper must not.
    fn mount_overlay(&self, descriptors: Vec<OwnedFd>) -> Result<(), Fault> {
        let mut descriptors = descriptors.into_iter();
        let plan = descriptors.next().ok_or_else(incomplete)?;
        let link = Link::from(descriptors.next().ok_or_else(incomplete)?);
        // SAFETY: the keeper has one thread.
        match unsafe { sys::fork(0) }.during(|| "fork a helper")? {
            Forked::Parent { .. } => Ok(()),
            Forked::Child => {
                let mounted = unseal::<OverlayPlan>(plan.as_fd())
                    .and_then(|plan| new_overlay(&plan, false, self.privilege));
                // The daemon may have ended.
                let _ = match &mounted {
                    Ok(mount) => link.send(&KeeperReply::Spawned, &[mount.as_fd()]),
                    Err(fault) => link.send(&KeeperReply::Failed(fault.clone()), &[]),
                };
                sys::leave(0)
            }
        }
    }

    /// Forks an agent, which sets up its sandbox and talks to the daemon.
    fn open_sandbox(
        &self,
        flags: i32,
        memory: Mechanism,
        has_mount: bool,
        descriptors: Vec<OwnedFd>,
    ) -> Result<OwnedFd, Fault> {
        let mut descriptors = descriptors.into_iter();
        let plan = descriptors.next().ok_or_else(incomplete)?;
        let control = Link::from(descriptors.next().ok_or_else(incomplete)?);
        let mount = match has_mount {
            true => Some(descriptors.next().ok_or_else(incomplete)?),
            false => None,
        };
        let held: Vec<OwnedFd> = descriptors.collect();
        // SAFETY: the keeper has one thread.
        match unsafe { sys::fork(flags) }.during(|| "make a sandbox's namespaces")? {
            Forked::Parent { pidfd, .. } => Ok(pidfd),
            Forked::Child => agent::live(agent::Birth {
                plan,
                control,
                mount,
                held,
                privilege: self.privilege,
                memory,
                host_ids: self.ids,
                keeper_dir: &self.dir,
                filter: &self.filter,
            }),
        }
    }
}

/// This process's id in the namespace of the host's /proc.
fn host_pid() -> Result<u32, Fault> {
    let link = std::fs::read_link("/proc/self").during(|| "read /proc/self")?;
    link.to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Fault {
            what: format!("understand /proc/self: {link:?}"),
            errno: libc::EINVAL,
        })
}

/// Mounts a FUSE file system at a new directory and returns its only descriptor.
fn mount_fuse(path: &Path) -> Result<OwnedFd, Fault> {
    let (device, mount) = mount_fuse_detached()?;
    mkdir(path, Mode::RWXU).during(|| format!("make {path:?}"))?;
    attach(mount.as_fd(), open_mount_point(path)?.as_fd())?;
    Ok(device)
}

/// A FUSE device and its mount, not attached yet.
pub(crate) fn mount_fuse_detached() -> Result<(OwnedFd, OwnedFd), Fault> {
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .during(|| "open /dev/fuse")?;
    let number = device.as_raw_fd().to_string();
    let options = [
        ("source", "avfs"),
        ("fd", &number),
        ("rootmode", "40000"),
        ("user_id", "0"),
        ("group_id", "0"),
    ];
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = new_mount(
        "fuse",
        &options,
        // Read-only as a file system too, not only as a mount: otherwise the kernel assumes that each read changes the access
        // time, and asks for the attributes again.
        &["default_permissions", "allow_other", "ro"],
        attributes,
    )?;
    Ok((device, mount))
}

/// Runs this program as `<binary> <role>` with `socket` as descriptor 3.
fn spawn_helper(role: &str, socket: OwnedFd) -> Result<(), Fault> {
    let role = CString::new(role).map_err(|_| incomplete())?;
    // SAFETY: the keeper has one thread.
    match unsafe { sys::fork(0) }.during(|| "fork a helper")? {
        Forked::Parent { .. } => Ok(()),
        Forked::Child => {
            sys::reset_signals();
            let ready = sys::become_descriptor(socket.as_fd(), 3);
            sys::close_on_exec_from(4);
            if ready.is_ok() {
                let arguments = [c"avfs".as_ptr(), role.as_ptr(), std::ptr::null()];
                let environment = [std::ptr::null()];
                let program = c"/proc/self/exe".as_ptr();
                // SAFETY: C strings and null-terminated arrays that outlive the call.
                unsafe { libc::execve(program, arguments.as_ptr(), environment.as_ptr()) };
            }
            // The daemon sees the end of the socket.
            sys::leave(127)
        }
    }
}

fn incomplete() -> Fault {
    Fault {
        what: "parse an incomplete request".into(),
        errno: libc::EINVAL,
    }
}
