//! The daemon's handle on its keeper.

mod process;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio as ChildStdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};

pub use process::keeper_main;
pub(crate) use process::mount_fuse_detached;

use crate::error::{Error, Result};
use crate::limits::{Defaults, Mechanism};
use crate::open_files;
use crate::plan::{OverlayPlan, Privilege, SandboxPlan};
use crate::protocol::{
    Boot, DESCRIPTORS_MAX, Duty, KeeperReply, KeeperRequest, Link, VERSION, readable_within, seal,
};
use crate::sandbox::Sandbox;
use crate::standing::Standing;

/// How long the keeper may take for one answer. It never accesses a served file system, so this
/// passes only on a machine that does not schedule it.
pub(crate) const ANSWER: Duration = Duration::from_secs(20);
/// How long killed processes may take to disappear.
const BURIAL: Duration = Duration::from_secs(10);

/// What a keeper needs to start.
#[derive(Clone, Debug)]
pub struct KeeperConfig {
    /// The own executable; it is run as `<binary> __keeper`.
    pub binary: PathBuf,
    /// A private directory (0700) that exists. One keeper at a time uses it.
    pub runtime_dir: PathBuf,
}

/// The process that mounts file systems and forks sandboxes.
///
/// When the last clone is dropped, the keeper and everything it started die.
#[derive(Clone, Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// One request and its reply at a time.
    control: Mutex<Link>,
    /// The process that waits for the keeper.
    waiter: Mutex<Child>,
    pidfd: OwnedFd,
    pid: u32,
    privilege: Privilege,
    runtime_dir: PathBuf,
    /// Limits the memory of all its sandboxes, if a control group can be made.
    standing: Option<Arc<Standing>>,
}

/// A FUSE file system mounted in the keeper's mount namespace.
#[derive(Debug)]
pub struct FuseMount {
    /// The only copy of its `/dev/fuse` descriptor; FUSE_INIT is waiting to be answered.
    pub fd: OwnedFd,
    /// Where it is mounted, as the keeper and the sandboxes' plans see it.
    pub path: PathBuf,
    /// The uid and gid it must report for files that belong to the commands.
    pub owner: u32,
}

impl Keeper {
    /// Starts the keeper and waits until its namespaces exist.
    ///
    /// Waits for an earlier keeper of the same runtime directory that is still ending. After this returns none of its
    /// processes is alive. Can be called again after a keeper died.
    pub fn start(config: KeeperConfig) -> Result<Keeper> {
        let duty = Duty::Keep {
            runtime_dir: config.runtime_dir.clone(),
        };
        let standing = Standing::make(Defaults::of_this_host().memory_bytes).map(Arc::new);
        let mut entered = false;
        let join = |process| {
            entered = standing.as_ref().is_some_and(|group| group.enter(process));
        };
        let (mut waiter, control) = spawn(&config.binary, duty, join)?;
        let standing = standing.filter(|_| entered);
        let answer = control.answer_with_descriptors::<KeeperReply>(ANSWER);
        let failure = match answer {
            Ok((KeeperReply::Ready { pid, privilege }, mut fds)) if fds.len() == 1 => {
                let pidfd = fds.remove(0);
                let (control, waiter) = (Mutex::new(control), Mutex::new(waiter));
                let shared = Shared {
                    control,
                    waiter,
                    pidfd,
                    pid,
                    privilege,
                    runtime_dir: config.runtime_dir,
                    standing,
                };
                return Ok(Keeper {
                    shared: Arc::new(shared),
                });
            }
            Ok((KeeperReply::Failed(fault), _)) => Error::KeeperSetup(fault),
            Ok(_) => Error::Malformed {
                peer: "keeper",
                reason: "not the reply to this request",
            },
            Err(error) => error.named("keeper", Error::KeeperGone, ANSWER),
        };
        // It ends once the socket is closed; killing it is faster.
        drop(control);
        let _ = waiter.kill();
        let _ = waiter.wait();
        Err(failure)
    }

    /// A keeper that a thread of this process plays; killing `waiter` ends it.
    #[cfg(feature = "testing")]
    pub(crate) fn played(
        control: Link,
        waiter: Child,
        pidfd: OwnedFd,
        privilege: Privilege,
        runtime_dir: PathBuf,
    ) -> Keeper {
        let shared = Shared {
            control: Mutex::new(control),
            pid: waiter.id(),
            waiter: Mutex::new(waiter),
            pidfd,
            privilege,
            runtime_dir,
            standing: None,
        };
        Keeper {
            shared: Arc::new(shared),
        }
    }

    /// With which privilege its sandboxes are made.
    pub fn privilege(&self) -> Privilege {
        self.shared.privilege
    }

    /// Its process id on the host.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// Whether it (or anything in it) is alive.
    pub fn is_alive(&self) -> bool {
        is_alive(self.shared.pidfd.as_fd())
    }

    /// Kills it with everything in it, and waits for their end.
    pub fn kill(&self) {
        self.shared.kill();
    }

    /// Mounts a FUSE file system at `name` below the keeper's own directory.
    ///
    /// Permissions are checked by the kernel, other users allowed, read-only, no set-uid, no
    /// devices. The name can be used once in a keeper's life.
    pub fn mount_fuse(&self, name: &str) -> Result<FuseMount> {
        let request = KeeperRequest::MountFuse {
            name: plain_name("mount name", name)?,
        };
        match self.shared.ask(&request, &[])? {
            (KeeperReply::Mounted { path }, mut fds) if fds.len() == 1 => Ok(FuseMount {
                fd: fds.remove(0),
                path,
                owner: self.shared.privilege.file_owner(),
            }),
            _ => Err(unexpected()),
        }
    }

    /// Runs the own binary as `<binary> <role>` in the keeper's user, pid and mount namespace.
    ///
    /// It has a packet socket as descriptor 3, whose other end is returned, an empty
    /// environment, and dies with the keeper.
    pub fn spawn_helper(&self, role: &str) -> Result<OwnedFd> {
        let request = KeeperRequest::SpawnHelper {
            role: plain_name("role", role)?,
        };
        let (ours, theirs) = Link::pair()?;
        match self.shared.ask(&request, &[theirs.as_fd()])? {
            (KeeperReply::Spawned, _) => Ok(ours.into()),
            _ => Err(unexpected()),
        }
    }

    /// Where a sandbox that is not confined has its overlay.
    pub fn view_of_unconfined(&self) -> PathBuf {
        self.shared
            .runtime_dir
            .join("keeper")
            .join(crate::agent::ROOT)
    }

    /// An overlay over directories that the keeper sees, not attached yet. As root, the caller can attach it in the host's
    /// mount namespace.
    pub fn mount_overlay(&self, plan: &OverlayPlan) -> Result<OwnedFd> {
        let plan = seal(plan)?;
        let (ours, theirs) = Link::pair()?;
        let request = KeeperRequest::MountOverlay;
        self.shared.ask(&request, &[plan.as_fd(), theirs.as_fd()])?;
        drop(theirs);
        match ours.answer_with_descriptors::<KeeperReply>(ANSWER) {
            Ok((KeeperReply::Spawned, mut fds)) if fds.len() == 1 => Ok(fds.remove(0)),
            Ok((KeeperReply::Failed(fault), _)) => Err(Error::Keeper(fault)),
            Ok(_) => Err(unexpected()),
            Err(error) => Err(error.named("keeper", Error::KeeperGone, ANSWER)),
        }
    }

    /// Opens a sandbox. Its first process keeps `held` open as long as anything lives in it.
    pub fn open_sandbox(&self, plan: &SandboxPlan, held: Vec<OwnedFd>) -> Result<Sandbox> {
        self.open(plan, None, held)
    }

    /// Opens a sandbox whose `/` is `mount`, made by [`onhost::clone_mount`](crate::onhost::clone_mount). The plan has no
    /// overlay.
    pub fn open_sandbox_on(
        &self,
        mount: OwnedFd,
        plan: &SandboxPlan,
        held: Vec<OwnedFd>,
    ) -> Result<Sandbox> {
        self.open(plan, Some(mount), held)
    }

    fn open(
        &self,
        plan: &SandboxPlan,
        mount: Option<OwnedFd>,
        held: Vec<OwnedFd>,
    ) -> Result<Sandbox> {
        // Besides the plan, the socket and the mount.
        const HELD_MAX: usize = DESCRIPTORS_MAX - 3;
        if held.len() > HELD_MAX {
            let reason = format!("{} where {HELD_MAX} fit", held.len());
            return Err(Error::Invalid {
                what: "number of held descriptors",
                reason,
            });
        }
        let request = KeeperRequest::OpenSandbox {
            has_mount: mount.is_some(),
            network: plan.network,
            confinement: plan.confinement,
            memory: self.memory_held_by(),
        };
        let confinement = plan.confinement;
        let plan = seal(plan)?;
        let (ours, theirs) = Link::pair()?;
        let mut descriptors = vec![plan.as_fd(), theirs.as_fd()];
        descriptors.extend(mount.iter().chain(&held).map(AsFd::as_fd));
        let pidfd = match self.shared.ask(&request, &descriptors)? {
            (KeeperReply::Opening, mut fds) if fds.len() == 1 => fds.remove(0),
            _ => return Err(unexpected()),
        };
        // Our copies are closed now, so that only the sandbox holds these descriptors.
        drop((theirs, mount, held));
        Sandbox::attach(ours, pidfd, confinement, self.shared.standing.clone())
    }

    /// What enforces the memory limits of its commands.
    pub fn memory_held_by(&self) -> Mechanism {
        let standing = self.shared.standing.as_ref();
        standing.map_or(Mechanism::Poll, |standing| standing.by())
    }
}

impl Shared {
    fn ask(
        &self,
        request: &KeeperRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(KeeperReply, Vec<OwnedFd>)> {
        let control = lock(&self.control);
        let answer = control
            .send(request, descriptors)
            .and_then(|()| control.answer_with_descriptors::<KeeperReply>(ANSWER));
        match answer {
            Ok((KeeperReply::Failed(fault), _)) => Err(Error::Keeper(fault)),
            Ok(reply) => Ok(reply),
            Err(error) => {
                // Its next reply could be the one to this request, so it must be killed.
                let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
                Err(error.named("keeper", Error::KeeperGone, ANSWER))
            }
        }
    }

    fn kill(&self) {
        // An error means that it is dead already.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = readable_within(self.pidfd.as_fd(), BURIAL);
        // It has ended, unless it hangs in the kernel; then nobody waits for it.
        let mut waiter = lock(&self.waiter);
        let _ = waiter.kill();
        let _ = waiter.wait();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Executes our own binary with nothing but a control socket; `placed` gets its process id before it does anything.
pub(crate) fn spawn(
    binary: &std::path::Path,
    duty: Duty,
    placed: impl FnOnce(u32),
) -> Result<(Child, Link)> {
    let (ours, theirs) = Link::pair()?;
    let child = Command::new(binary)
        // Commands can read the command line of their pid 1, which is a fork of this.
        .arg0("avfs")
        .arg("__keeper")
        .env_clear()
        .current_dir("/")
        .stdin(ChildStdio::from(OwnedFd::from(theirs)))
        .stdout(ChildStdio::null())
        .spawn()
        .map_err(|source| Error::KeeperExec {
            binary: binary.to_owned(),
            source,
        })?;
    placed(child.id());
    // If the child is dead already, its answer never arrives.
    let _ = ours.send(
        &Boot {
            version: VERSION,
            duty,
            open_files: open_files::before(),
        },
        &[],
    );
    Ok((child, ours))
}

/// Whether the process behind a pidfd still runs.
pub(crate) fn is_alive(pidfd: BorrowedFd<'_>) -> bool {
    matches!(readable_within(pidfd, Duration::ZERO), Ok(false))
}

/// Locks even if a thread panicked with the lock: a socket has no state to break.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unexpected() -> Error {
    Error::Malformed {
        peer: "keeper",
        reason: "not the reply to this request",
    }
}

/// A name that is one path component and does not begin with `-`.
fn plain_name(what: &'static str, name: &str) -> Result<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let reason = format!("{name:?}: 1 to 64 letters, digits, '-' and '_'");
        return Err(Error::Invalid { what, reason });
    }
    Ok(name.to_owned())
}
