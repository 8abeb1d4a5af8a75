//! The agent: pid 1 of a sandbox. It builds the sandbox around itself, drops its privileges, and
//! forks one supervisor for each command that the daemon sends.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use crate::confine::{self, Fence};
use crate::error::{During, Fault};
use crate::exits::Exits;
use crate::freeze;
use crate::limits::Mechanism;
use crate::mover::{Mover, Staging};
use crate::network::{self, Born, Family, SOCKETS_MAX, SocketKind};
use crate::notify::Notified;
use crate::plan::{
    Confinement, Event, ExecKey, INNER_UID, IdMap, Isolation, Namespace, Network, Privilege,
    SANDBOX_UID, SandboxPlan, StartFailure, StartStep,
};
use crate::protocol::{
    AgentReply, AgentRequest, DESCRIPTORS_MAX, Link, NetworkReady, Received, unseal,
};
use crate::residue::Residue;
use crate::rootfs;
use crate::seccomp::Filter;
use crate::share;
use crate::supervisor;
use crate::sys::{self, Forked, Waited};

/// Where, in the keeper's directory, every agent mounts its root before `pivot_root`.
pub(crate) const ROOT: &str = "root";

/// How long a supervisor that has reported may take to exit.
const EXIT_TIME: Duration = Duration::from_millis(500);

/// What the keeper passes to a new agent.
pub(crate) struct Birth<'a> {
    pub plan: OwnedFd,
    pub control: Link,
    /// What is `/` inside, if the plan has no overlay.
    pub mount: Option<OwnedFd>,
    pub held: Vec<OwnedFd>,
    pub privilege: Privilege,
    /// What enforces the memory limits of commands.
    pub memory: Mechanism,
    pub host_ids: (u32, u32),
    pub keeper_dir: &'a Path,
    pub filter: &'a Filter,
}

/// The namespaces a new agent is forked into.
///
/// Root enters its user namespace only after the mounts are made, because mounting needs root's rights.
pub(crate) fn namespaces(privilege: Privilege, network: Network, confinement: Confinement) -> i32 {
    let common = libc::CLONE_NEWNS | libc::CLONE_NEWPID;
    let users = match privilege {
        Privilege::Root => 0,
        Privilege::User => libc::CLONE_NEWUSER,
    };
    let net = match network {
        Network::None => libc::CLONE_NEWNET,
        Network::Host => 0,
    };
    match confinement {
        Confinement::Full => common | users | net | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS,
        // A mount namespace for the view, and a PID namespace whose end kills everything in it.
        Confinement::ViewOnly => common | users,
    }
}

/// Runs an agent to its end.
pub(crate) fn live(birth: Birth<'_>) -> ! {
    // Sets the process name, to tell our processes apart in `ps`.
    let _ = rustix::thread::set_name(c"avfs-agent");
    let held: Vec<RawFd> = birth.held.iter().map(AsRawFd::as_raw_fd).collect();
    let own = [
        0,
        1,
        2,
        birth.plan.as_raw_fd(),
        birth.control.as_fd().as_raw_fd(),
    ];
    let mount: Vec<RawFd> = birth.mount.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: everything else belonged to the keeper, whose values are never used again here.
    unsafe { sys::close_all_but(&[&own[..], &held[..], &mount[..]].concat()) };
    let settled = match settle(&birth, &held) {
        Ok(settled) => settled,
        Err(fault) => {
            let _ = birth.control.send(&AgentReply::Failed(fault), &[]);
            sys::leave(1);
        }
    };
    let (Ok(children), Ok(exits)) = (sys::child_events(), Exits::new()) else {
        sys::leave(1);
    };
    drop((birth.plan, birth.mount));
    if !greet(
        &birth.control,
        settled.isolation,
        settled.top,
        settled.network,
    ) {
        sys::leave(1);
    }
    Agent {
        control: birth.control,
        children,
        fence: settled.fence,
        mover: settled.mover,
        terminals: settled.terminals,
        residue: settled.residue,
        exits,
        held,
        supervisors: Vec::new(),
        stopped: Vec::new(),
    }
    .serve()
}

/// Tells the daemon that the sandbox is ready. Only the daemon keeps the descriptors; false if it has ended.
fn greet(control: &Link, isolation: Isolation, top: OwnedFd, network: Option<Born>) -> bool {
    let ready = AgentReply::Ready {
        isolation,
        network: network
            .as_ref()
            .map(|born| NetworkReady { ipv6: born.ipv6 }),
    };
    let mut passed = vec![top.as_fd()];
    if let Some(born) = &network {
        passed.extend([born.routes.as_fd(), born.diag.as_fd()]);
    }
    control.send(&ready, &passed).is_ok()
}

/// What an agent has once its sandbox is set up.
struct Settled {
    /// The view's `/`.
    top: OwnedFd,
    fence: Fence,
    mover: Option<Mover>,
    /// The devpts on which terminals of execs are made; without one, the host's.
    terminals: Option<OwnedFd>,
    residue: Option<Residue>,
    isolation: Isolation,
    /// If it has one of its own.
    network: Option<Born>,
}

/// Builds the sandbox around this process and drops all privileges.
fn settle(birth: &Birth<'_>, held: &[RawFd]) -> Result<Settled, Fault> {
    sys::null_descriptors(&[0, 1, 2]).during(|| "open /dev/null")?;
    let plan: SandboxPlan = unseal(birth.plan.as_fd())?;
    share::die_first()?;
    if birth.privilege == Privilege::User {
        confine::map_ids((INNER_UID, 0), (INNER_UID, 0))?;
    }
    if plan.confinement == Confinement::ViewOnly {
        return settle_beside_the_host(birth, &plan);
    }
    rustix::system::sethostname(plan.name.as_bytes())
        .during(|| format!("call itself {:?}", plan.name))?;
    let network = match plan.network {
        Network::None => Some(network::set_up()?),
        Network::Host => None,
    };
    let at = birth.keeper_dir.join(ROOT);
    let rootfs::Entered {
        terminals,
        queues,
        hidden,
    } = rootfs::enter(
        &plan,
        birth.mount.as_ref(),
        birth.privilege,
        birth.memory,
        &at,
    )?;
    if birth.privilege == Privilege::Root {
        confine::leave_root(INNER_UID)?;
    }
    share::bound_sandbox()?;
    // Mounted by root, overlayfs can rename every directory itself; and so can a file system that is no overlay.
    let by_overlay = plan.overlay.is_some() && !plan.readonly;
    let duty = Notified {
        names: birth.privilege == Privilege::User && by_overlay,
        memory: birth.memory == Mechanism::Poll,
    };
    let staging = Staging::new(hidden, &plan.staging).during(|| "create the staging directory")?;
    let mover = Some(Mover::start(duty, birth.filter, held, staging)?);
    confine::renounce_but(CapabilitySet::empty())?;
    let fence = Fence::new()?;
    birth.filter.apply()?;
    let isolation = isolation(birth, plan.network, &fence)?;
    let top = rootfs::open_mount_point(Path::new("/"))?;
    let residue = Residue::new(queues).during(|| "open /dev/shm")?;
    Ok(Settled {
        top,
        fence,
        mover,
        terminals: Some(terminals),
        residue: Some(residue),
        isolation,
        network,
    })
}

/// For the `process` driver: mounts the view beside the host's files; only `no_new_privs` is set.
fn settle_beside_the_host(birth: &Birth<'_>, plan: &SandboxPlan) -> Result<Settled, Fault> {
    let at = birth.keeper_dir.join(ROOT);
    rootfs::stand_beside(plan, birth.mount.as_ref(), birth.privilege, &at)?;
    // Landlock needs it, which keeps the signals of one exec from the others.
    rustix::thread::set_no_new_privs(true).during(|| "set no_new_privs")?;
    let fence = Fence::new()?;
    let isolation = isolation(birth, plan.network, &fence)?;
    Ok(Settled {
        top: rootfs::open_mount_point(&at)?,
        fence,
        mover: None,
        terminals: None,
        residue: None,
        isolation: Isolation {
            namespaces: vec![Namespace::Mount, Namespace::Pid],
            network: Network::Host,
            ..isolation
        },
        network: None,
    })
}

/// The isolation in force, read back from the kernel where possible.
fn isolation(birth: &Birth<'_>, network: Network, fence: &Fence) -> Result<Isolation, Fault> {
    let (host_uid, host_gid) = match birth.privilege {
        Privilege::Root => (SANDBOX_UID, SANDBOX_UID),
        Privilege::User => birth.host_ids,
    };
    let seccomp = rustix::thread::secure_computing_mode();
    let mut namespaces = Namespace::ALL.to_vec();
    namespaces.retain(|kind| *kind != Namespace::Net || network == Network::None);
    Ok(Isolation {
        namespaces,
        network,
        landlock_abi: fence.abi(),
        signals_scoped: fence.bounds_signals(),
        seccomp: matches!(seccomp, Ok(rustix::thread::SecureComputingMode::Filter)),
        no_new_privs: rustix::thread::no_new_privs().during(|| "read no_new_privs")?,
        nested_user_namespaces: confine::nested_user_namespaces()?,
        ids: IdMap {
            inside_uid: INNER_UID,
            host_uid,
            inside_gid: INNER_UID,
            host_gid,
        },
    })
}

struct Agent {
    control: Link,
    children: OwnedFd,
    fence: Fence,
    mover: Option<Mover>,
    terminals: Option<OwnedFd>,
    residue: Option<Residue>,
    exits: Exits,
    /// Open as long as this process or a supervisor lives.
    held: Vec<RawFd>,
    /// With the keys of their commands.
    supervisors: Vec<(i32, ExecKey)>,
    /// Processes that were stopped by SIGSTOP.
    stopped: Vec<i32>,
}

impl Agent {
    /// Serves until the daemon closes its socket; then everything in the sandbox ends.
    fn serve(mut self) -> ! {
        loop {
            let mut polled = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
            ];
            match poll(&mut polled, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
            let (asked, ended) = (
                !polled[0].revents().is_empty(),
                !polled[1].revents().is_empty(),
            );
            if ended && !self.bury() {
                break;
            }
            if asked && !self.answer() {
                break;
            }
        }
        // Killed processes must be reaped before this process closes the descriptors it holds for them.
        sys::signal_all_reachable(libc::SIGKILL);
        while !matches!(sys::wait_any(true), Waited::NoChildren) {}
        sys::leave(0)
    }

    /// Answers one request; false if there will be no more.
    fn answer(&mut self) -> bool {
        match self.control.receive_with_descriptors() {
            Ok(Received::Frame(AgentRequest::Exec(key), descriptors)) => {
                self.exec(key, descriptors)
            }
            Ok(Received::Frame(AgentRequest::CountProcesses, _)) => {
                let reply = AgentReply::Processes(self.count());
                self.control.send(&reply, &[]).is_ok()
            }
            Ok(Received::Frame(AgentRequest::Freeze, _)) => {
                self.stopped.extend(freeze::stand_still(|| self.commands()));
                let count = u32::try_from(self.stopped.len()).unwrap_or(u32::MAX);
                self.control.send(&AgentReply::Frozen(count), &[]).is_ok()
            }
            Ok(Received::Frame(AgentRequest::Thaw, _)) => {
                freeze::go_on(&std::mem::take(&mut self.stopped));
                self.control.send(&AgentReply::Thawed, &[]).is_ok()
            }
            Ok(Received::Frame(AgentRequest::Sockets(kinds), _)) => self.make_sockets(&kinds),
            Ok(Received::Frame(AgentRequest::Holders(inodes), _)) => self.find_holders(&inodes),
            Ok(Received::Frame(AgentRequest::ConnectUnix(path), _)) => {
                let made = network::connect_inside(&path).map(|socket| vec![socket]);
                self.pass_sockets(made, "connect to a Unix socket")
            }
            Ok(Received::Nothing) => true,
            Ok(Received::Closed) | Err(_) => false,
        }
    }

    fn find_holders(&self, inodes: &[u32]) -> bool {
        let family = Family {
            mover: self.mover.as_ref().map(|mover| mover.pid),
            supervisors: &self.supervisors,
        };
        let inodes = &inodes[..inodes.len().min(SOCKETS_MAX)];
        let owners = network::find_holders(inodes, &family);
        self.control.send(&AgentReply::Holders(owners), &[]).is_ok()
    }

    fn make_sockets(&self, kinds: &[SocketKind]) -> bool {
        let kinds = kinds.iter().take(DESCRIPTORS_MAX);
        let made: Result<Vec<_>, Errno> = kinds.map(|kind| network::make(*kind)).collect();
        self.pass_sockets(made, "make a socket")
    }

    fn pass_sockets(&self, made: Result<Vec<OwnedFd>, Errno>, what: &str) -> bool {
        match made.during(|| what) {
            Ok(made) => {
                let passed: Vec<_> = made.iter().map(AsFd::as_fd).collect();
                self.control.send(&AgentReply::Sockets, &passed).is_ok()
            }
            Err(fault) => self.control.send(&AgentReply::Failed(fault), &[]).is_ok(),
        }
    }

    fn exec(&mut self, key: ExecKey, mut descriptors: Vec<OwnedFd>) -> bool {
        let doors = descriptors.split_off(descriptors.len().min(5));
        let Ok([command, link, stdin, stdout, stderr]) = <[OwnedFd; 5]>::try_from(descriptors)
        else {
            return false;
        };
        if !self.await_exits() {
            return false;
        }
        let job = supervisor::Job {
            command,
            link: Link::from(link),
            stdio: [stdin, stdout, stderr],
            doors,
            fence: &self.fence,
            mover: self.mover.as_ref(),
            terminals: self.terminals.as_ref(),
            held: &self.held,
            exits: &self.exits,
        };
        // SAFETY: the agent has one thread.
        match unsafe { sys::fork(0) } {
            Ok(Forked::Child) => supervisor::live(job),
            Ok(Forked::Parent { pid, .. }) => {
                self.supervisors.push((pid.as_raw_nonzero().get(), key));
            }
            Err(errno) => {
                let failure = StartFailure {
                    step: StartStep::Setup,
                    errno: errno.raw_os_error(),
                };
                let _ = job.link.send(&Event::CouldNotStart(failure), &[]);
            }
        }
        true
    }

    /// Waits for the supervisors that have nothing left to do, so that the next command finds nothing that the last one
    /// left; false like [`Agent::bury`].
    fn await_exits(&mut self) -> bool {
        let exiting = self.exits.said();
        let start = Instant::now();
        while exiting.iter().any(|pid| self.supervises(*pid)) {
            let left = EXIT_TIME.saturating_sub(start.elapsed());
            if left.is_zero() {
                // Stopped, perhaps. It keeps what its command left, and no command.
                break;
            }
            let pause = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut polled = [PollFd::new(&self.children, PollFlags::IN)];
            let _ = poll(&mut polled, Some(&pause));
            if !self.bury() {
                return false;
            }
        }
        true
    }

    /// Reaps supervisors; false if one was killed, or if the mover ended.
    ///
    /// A supervisor exits only when no process of its command is alive. If one was killed, processes of its command
    /// may be left, and the whole sandbox has to end. Without a mover, commands could not rename stored directories.
    fn bury(&mut self) -> bool {
        sys::drain_child_events(self.children.as_fd());
        loop {
            match sys::wait_any(false) {
                Waited::Ended(ended) => {
                    let mover = self.mover.as_ref().map(|mover| mover.pid);
                    if ended.status != 0 || mover == Some(ended.pid) {
                        return false;
                    }
                    self.supervisors.retain(|(pid, _)| *pid != ended.pid);
                    if let Some(residue) = &self.residue
                        && self.supervisors.is_empty()
                    {
                        residue.remove();
                    }
                }
                Waited::None | Waited::NoChildren => return true,
            }
        }
    }

    fn supervises(&self, pid: i32) -> bool {
        self.supervisors.iter().any(|(known, _)| *known == pid)
    }

    fn count(&self) -> u32 {
        u32::try_from(self.commands().len()).unwrap_or(u32::MAX)
    }

    /// Processes in this PID namespace that belong to commands.
    fn commands(&self) -> Vec<i32> {
        let mover = self.mover.as_ref().map(|mover| mover.pid);
        let own = |pid: i32| pid == 1 || self.supervises(pid) || mover == Some(pid);
        let mut commands = sys::process_ids();
        // The mover's children are workers, not commands.
        commands.retain(|pid| !own(*pid) && (mover.is_none() || sys::parent_of(*pid) != mover));
        commands
    }
}
