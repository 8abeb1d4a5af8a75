//! For tests of what stands on this crate: a keeper and sandboxes that hold nothing, played by threads of the caller.
//!
//! A command is a plain process of the caller's that starts in the directory which would be the overlay's writable layer. There
//! is no namespace, no mount, no limit and no terminal. Only the feature `testing` brings it, which no program has that
//! people use.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getegid, geteuid, kill_process_group, pidfd_open, pidfd_send_signal,
    test_kill_process_group,
};

use crate::error::{Error, Fault, Result};
use crate::keeper::{Keeper, lock};
use crate::limits::Orders;
use crate::plan::{
    Command, Event, ExitStatus, IdMap, Isolation, OverlayPlan, Privilege, SandboxPlan,
    StartFailure, StartStep, Usage,
};
use crate::protocol::{
    AgentReply, AgentRequest, KeeperReply, KeeperRequest, Link, Received, SupervisorRequest, Wait,
    unseal,
};

/// How long what a command left may take to end after it was killed.
const BURIAL: Duration = Duration::from_secs(10);

/// A keeper that opens sandboxes of this kind, and does nothing else.
pub fn keeper(runtime_dir: PathBuf) -> Result<Keeper> {
    let (ours, theirs) = Link::pair()?;
    let (waiter, pidfd) = stand_in()?;
    let watched = copy(pidfd.as_fd())?;
    std::thread::spawn(move || keep(&theirs, watched.as_fd()));
    let privilege = match geteuid().is_root() {
        true => Privilege::Root,
        false => Privilege::User,
    };
    Ok(Keeper::played(ours, waiter, pidfd, privilege, runtime_dir))
}

/// A process that can be killed in the place of one of ours. It ends with this process, too.
fn stand_in() -> Result<(Child, OwnedFd)> {
    let mut command = std::process::Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let child = command.spawn().map_err(|source| Error::KeeperExec {
        binary: "cat".into(),
        source,
    })?;
    let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    Ok((child, pidfd.map_err(fault("look at a stand-in"))?))
}

fn copy(fd: BorrowedFd<'_>) -> Result<OwnedFd> {
    let copied = rustix::io::fcntl_dupfd_cloexec(fd, 0);
    Ok(copied.map_err(fault("copy a descriptor"))?)
}

fn fault(what: &'static str) -> impl Fn(Errno) -> Fault {
    move |errno| Fault {
        what: what.into(),
        errno: errno.raw_os_error(),
    }
}

/// Waits until one of them has something to say; gives which of them have.
fn first_of<const N: usize>(fds: [BorrowedFd<'_>; N]) -> [bool; N] {
    let mut polled = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    // Interrupted or not, what is ready is looked at and the rest waited for again.
    let _ = poll(&mut polled, None);
    polled.map(|fd| !fd.revents().is_empty())
}

/// The life of a keeper: all sandboxes end with it.
fn keep(control: &Link, life: BorrowedFd<'_>) {
    let mut agents: Vec<OwnedFd> = Vec::new();
    loop {
        let [is_dead, is_asked] = first_of([life, control.as_fd()]);
        if is_dead {
            break;
        }
        if !is_asked {
            continue;
        }
        let Ok(Received::Frame(request, descriptors)) = control.receive_with_descriptors() else {
            break;
        };
        let done = match request {
            KeeperRequest::OpenSandbox { .. } => {
                open(descriptors).map(|agent| (KeeperReply::Opening, Some(agent)))
            }
            KeeperRequest::MountOverlay => show(descriptors).map(|()| (KeeperReply::Spawned, None)),
            KeeperRequest::MountFuse { .. } | KeeperRequest::SpawnHelper { .. } => {
                Err(fault("do what only a keeper can")(Errno::NOSYS))
            }
        };
        let (reply, agent) = done.unwrap_or_else(|fault| (KeeperReply::Failed(fault), None));
        let passed: Vec<_> = agent.iter().map(AsFd::as_fd).collect();
        if control.send(&reply, &passed).is_err() {
            break;
        }
        agents.extend(agent);
    }
    for agent in agents {
        // One that has ended already needs no killing.
        let _ = pidfd_send_signal(&agent, Signal::KILL);
    }
}

/// Gives the writable layer itself for the overlay that was asked for.
fn show(descriptors: Vec<OwnedFd>) -> std::result::Result<(), Fault> {
    let Ok([plan, link]) = <[OwnedFd; 2]>::try_from(descriptors) else {
        return Err(fault("read a request")(Errno::INVAL));
    };
    let plan: OverlayPlan = unseal(plan.as_fd())?;
    let upper = open_directory(&plan.upper).map_err(fault("open a layer"))?;
    // Who does not wait for it any more does not need it.
    let _ = Link::from(link).send(&KeeperReply::Spawned, &[upper.as_fd()]);
    Ok(())
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

/// Starts an agent; gives what its life can be watched by.
fn open(descriptors: Vec<OwnedFd>) -> std::result::Result<OwnedFd, Fault> {
    let mut descriptors = descriptors.into_iter();
    let (Some(plan), Some(control)) = (descriptors.next(), descriptors.next()) else {
        return Err(fault("read a request")(Errno::INVAL));
    };
    let plan: SandboxPlan = unseal(plan.as_fd())?;
    let Some(overlay) = &plan.overlay else {
        return Err(fault("show a mount")(Errno::INVAL));
    };
    let top = overlay.upper.clone();
    let failed = |error: Error| Fault {
        what: error.to_string(),
        errno: libc::EIO,
    };
    let (process, pidfd) = stand_in().map_err(failed)?;
    let life = copy(pidfd.as_fd()).map_err(failed)?;
    let agent = Agent {
        top,
        life,
        commands: Arc::default(),
        _held: descriptors.collect(),
    };
    std::thread::spawn(move || agent.live(process, &Link::from(control), &plan));
    Ok(pidfd)
}

/// The process groups of commands.
type Commands = Arc<Mutex<Vec<Pid>>>;

struct Agent {
    top: PathBuf,
    life: OwnedFd,
    commands: Commands,
    /// Held as long as anything of the sandbox lives.
    _held: Vec<OwnedFd>,
}

impl Agent {
    fn live(self, mut process: Child, control: &Link, plan: &SandboxPlan) {
        let _ = match &open_directory(&self.top) {
            Ok(top) => {
                let ready = AgentReply::Ready {
                    isolation: isolation(plan),
                    network: None,
                };
                control.send(&ready, &[top.as_fd()])
            }
            Err(errno) => {
                let fault = fault("open the top of a sandbox")(*errno);
                control.send(&AgentReply::Failed(fault), &[])
            }
        };
        while let [false, is_asked] = first_of([self.life.as_fd(), control.as_fd()]) {
            if is_asked && !self.obey(control) {
                break;
            }
        }
        signal_all(&self.commands, Signal::KILL);
        let _ = process.kill();
        let _ = process.wait();
    }

    /// Carries out a request; false when there will be no more.
    fn obey(&self, control: &Link) -> bool {
        let Ok(Received::Frame(request, descriptors)) = control.receive_with_descriptors() else {
            return false;
        };
        let count = || u32::try_from(lock(&self.commands).len()).unwrap_or(u32::MAX);
        let reply = match request {
            AgentRequest::Exec(_) => {
                self.exec(descriptors);
                return true;
            }
            AgentRequest::CountProcesses => AgentReply::Processes(count()),
            AgentRequest::Freeze => {
                signal_all(&self.commands, Signal::STOP);
                AgentReply::Frozen(count())
            }
            AgentRequest::Thaw => {
                signal_all(&self.commands, Signal::CONT);
                AgentReply::Thawed
            }
            AgentRequest::Sockets(_) | AgentRequest::Holders(_) | AgentRequest::ConnectUnix(_) => {
                AgentReply::Failed(no_network())
            }
        };
        control.send(&reply, &[]).is_ok()
    }

    fn exec(&self, descriptors: Vec<OwnedFd>) {
        let Ok([body, link, stdin, stdout, stderr]) = <[OwnedFd; 5]>::try_from(descriptors) else {
            // Whoever asked hears nothing, as from a sandbox that died.
            return;
        };
        let Ok((command, _)) = unseal::<(Command, Orders)>(body.as_fd()) else {
            return;
        };
        let (top, commands) = (self.top.clone(), self.commands.clone());
        let Ok(life) = copy(self.life.as_fd()) else {
            return;
        };
        let stdio = [stdin, stdout, stderr];
        std::thread::spawn(move || {
            supervise(&top, &command, stdio, &Link::from(link), (&life, &commands));
        });
    }
}

fn no_network() -> Fault {
    fault("use a network that it has not")(Errno::NOSYS)
}

fn isolation(plan: &SandboxPlan) -> Isolation {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    Isolation {
        namespaces: Vec::new(),
        network: plan.network,
        landlock_abi: 0,
        signals_scoped: false,
        seccomp: false,
        no_new_privs: false,
        nested_user_namespaces: true,
        ids: IdMap {
            inside_uid: uid,
            host_uid: uid,
            inside_gid: gid,
            host_gid: gid,
        },
    }
}

fn signal_all(commands: &Commands, signal: Signal) {
    for group in lock(commands).iter() {
        // One that has ended needs no signal.
        let _ = kill_process_group(*group, signal);
    }
}

/// The life of a command. Nothing is said of its end when the sandbox dies with it.
fn supervise(
    top: &Path,
    command: &Command,
    stdio: [OwnedFd; 3],
    link: &Link,
    (life, commands): (&OwnedFd, &Commands),
) {
    let _ = link.send(&Event::Begins, &[]);
    let mut child = match start(top, command, stdio) {
        Ok(child) => child,
        Err(failure) => {
            let _ = link.send(&Event::CouldNotStart(failure), &[]);
            return;
        }
    };
    let group = Pid::from_child(&child);
    lock(commands).push(group);
    let started = Event::Started {
        pid: group.as_raw_nonzero().get(),
    };
    let _ = link.send(&started, &[]);
    let ended = watch(group, link, life.as_fd());
    let leftovers = bury(&mut child, group);
    lock(commands).retain(|it| *it != group);
    if let (Ended::ByItself, Ok(status)) = (ended, child.wait()) {
        let status = match status.code() {
            Some(code) => ExitStatus::Code(code),
            None => ExitStatus::Signal(status.signal().unwrap_or_default()),
        };
        let last = Event::Exited {
            status,
            usage: Usage::default(),
            leftovers,
            cause: None,
        };
        let _ = link.send(&last, &[]);
    }
}

fn start(
    top: &Path,
    command: &Command,
    stdio: [OwnedFd; 3],
) -> std::result::Result<Child, StartFailure> {
    let failure = |step, errno| StartFailure { step, errno };
    if command.terminal.is_some() {
        return Err(failure(StartStep::Setup, libc::ENOSYS));
    }
    let words: Vec<&std::ffi::OsStr> = command
        .argv
        .iter()
        .map(|it| OsStrExt::from_bytes(it))
        .collect();
    let inside = std::ffi::OsStr::from_bytes(&command.cwd);
    let cwd = Path::new(inside).strip_prefix("/").unwrap_or(Path::new(""));
    let cwd = top.join(cwd);
    if !cwd.is_dir() {
        return Err(failure(StartStep::Cwd, libc::ENOENT));
    }
    let [stdin, stdout, stderr] = stdio;
    let pairs = command.env.iter().cloned();
    let pairs = pairs.map(|(key, value)| [key, value].map(std::ffi::OsString::from_vec));
    let mut started = std::process::Command::new(words[0]);
    // SAFETY: between fork and exec, only signal(2) is called, which is safe there.
    unsafe {
        started.pre_exec(|| {
            // Whoever runs tests in the background ignores it, and a shell cannot trap what it finds ignored.
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    started
        .args(&words[1..])
        .env_clear()
        .envs(pairs.map(|[key, value]| (key, value)))
        .current_dir(cwd)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .spawn()
        .map_err(|error| failure(StartStep::Exec, error.raw_os_error().unwrap_or(libc::EIO)))
}

enum Ended {
    ByItself,
    WithTheSandbox,
}

/// Passes signals on until the command has ended.
fn watch(group: Pid, link: &Link, life: BorrowedFd<'_>) -> Ended {
    let Ok(process) = pidfd_open(group, PidfdFlags::empty()) else {
        return Ended::ByItself;
    };
    let mut is_heard = true;
    loop {
        let [is_lost, has_ended, is_asked] = match is_heard {
            true => first_of([life, process.as_fd(), link.as_fd()]),
            false => {
                let [is_lost, has_ended] = first_of([life, process.as_fd()]);
                [is_lost, has_ended, false]
            }
        };
        if is_lost {
            return Ended::WithTheSandbox;
        }
        if has_ended {
            return Ended::ByItself;
        }
        if is_asked {
            is_heard = obey(group, link);
        }
    }
}

/// Carries out a request; false when there will be no more.
fn obey(group: Pid, link: &Link) -> bool {
    match link.receive::<SupervisorRequest>(Wait::No) {
        Ok(Received::Nothing) => true,
        Ok(Received::Frame(SupervisorRequest::Signal(signal), _)) => {
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = kill_process_group(group, signal);
            }
            true
        }
        Ok(Received::Frame(SupervisorRequest::Kill, _)) => {
            let _ = kill_process_group(group, Signal::KILL);
            true
        }
        Ok(Received::Closed) | Err(_) => {
            let _ = kill_process_group(group, Signal::KILL);
            false
        }
    }
}

/// Kills what is left of the command's group and waits until it is gone; gives whether something was left.
fn bury(child: &mut Child, group: Pid) -> u32 {
    let is_over = child.try_wait().is_ok_and(|status| status.is_some());
    let is_left = is_over && test_kill_process_group(group).is_ok();
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    let deadline = Instant::now() + BURIAL;
    while test_kill_process_group(group).is_ok() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    u32::from(is_left)
}
