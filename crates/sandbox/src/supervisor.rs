//! The supervisor of one command: starts it, sends signals to all its processes, ends those that outlive it, and exits only
//! when none of them is alive.
//!
//! It is in a Landlock domain of its own and the command in a nested one. So the command cannot signal it, while
//! `kill(-1)` from here reaches exactly the command's processes, atomically, so that no fork escapes.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{getpid, set_child_subreaper};

use crate::command;
use crate::confine::Fence;
use crate::exits::Exits;
use crate::limits::{Enforced, Limit, Mechanism, Orders};
use crate::memory::MemoryWatch;
use crate::mover::Mover;
use crate::plan::{Command, Event, ExitStatus, StartFailure, StartStep, Usage};
use crate::protocol::{Link, Received, SupervisorRequest, Wait, unseal};
use crate::pty::Pty;
use crate::sys::{self, Ended, Forked, Waited};

/// One command to run.
pub(crate) struct Job<'a> {
    pub command: OwnedFd,
    pub link: Link,
    pub stdio: [OwnedFd; 3],
    /// The `cgroup.procs` files of the command's control groups.
    pub doors: Vec<OwnedFd>,
    pub fence: &'a Fence,
    pub mover: Option<&'a Mover>,
    /// The devpts on which its terminal is made; without one, the host's.
    pub terminals: Option<&'a OwnedFd>,
    pub held: &'a [RawFd],
    /// Where a supervisor says that it exits next.
    pub exits: &'a Exits,
}

/// Runs a supervisor to its end.
pub(crate) fn live(job: Job<'_>) -> ! {
    // Sets the process name, to tell our processes apart in `ps`.
    let _ = rustix::thread::set_name(c"avfs-supervisor");
    let mut kept = vec![
        0,
        1,
        2,
        job.command.as_raw_fd(),
        job.link.as_fd().as_raw_fd(),
    ];
    let passed = job.stdio.iter().chain(&job.doors);
    kept.extend(passed.map(AsRawFd::as_raw_fd));
    kept.extend(job.fence.descriptor());
    kept.extend(job.mover.map(Mover::descriptor));
    kept.extend(job.terminals.map(AsRawFd::as_raw_fd));
    kept.extend(job.held);
    kept.push(job.exits.descriptor());
    // SAFETY: everything else belonged to the agent, whose values are never used again here.
    unsafe { sys::close_all_but(&kept) };
    let last = match Supervisor::start(&job) {
        Ok(supervisor) => {
            drop((job.stdio, job.doors));
            supervisor.watch(&job.link)
        }
        Err(errno) => could_not_start(StartStep::Setup, errno),
    };
    // First, so that the agent knows it when the daemon sends the next command.
    job.exits.say();
    // The daemon may have ended.
    let _ = job.link.send(&last, &[]);
    sys::leave(0)
}

fn could_not_start(step: StartStep, errno: Errno) -> Event {
    Event::CouldNotStart(StartFailure {
        step,
        errno: errno.raw_os_error(),
    })
}

struct Supervisor {
    main: i32,
    /// Readable when a child has ended.
    children: OwnedFd,
    /// Brings the error if the program could not start; is closed by exec if it could.
    starting: Option<OwnedFd>,
    failure: Option<StartFailure>,
    /// The command's terminal, if it has one.
    pty: Option<Pty>,
    /// Closed once the mover has nothing to do for the command any more.
    moving: OwnedFd,
    memory: Option<MemoryWatch>,
    /// The limit for which everything was killed.
    cause: Option<Enforced>,
    /// What was sent to all processes on request.
    sent: Sent,
    reach: Reach,
    usage: Usage,
}

impl Supervisor {
    /// Forks the command.
    fn start(job: &Job<'_>) -> Result<Supervisor, Errno> {
        set_child_subreaper(Some(getpid()))?;
        job.fence.enter()?;
        let children = sys::child_events()?;
        let (command, orders): (Command, Orders) =
            unseal(job.command.as_fd()).map_err(|fault| Errno::from_raw_os_error(fault.errno))?;
        let memory = orders.memory.map(MemoryWatch::new);
        let terminals = job.terminals.map(AsFd::as_fd);
        let pty = command.terminal.map(|size| Pty::open(terminals, size));
        let pty = pty.transpose()?;
        let (starting, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        let (moving, moved) = pipe_with(PipeFlags::CLOEXEC)?;
        // If this cannot be sent, nothing was done, and the command may be started again elsewhere.
        let _ = job.link.send(&Event::Begins, &[]);
        // SAFETY: the supervisor has one thread.
        let main = match unsafe { sys::fork(0) }? {
            Forked::Parent { pid, .. } => pid.as_raw_nonzero().get(),
            Forked::Child => {
                let failure = command::become_one(&command, &orders, job, pty.as_ref(), moved);
                let mut report = [0; 5];
                report[0] = failure.step as u8;
                report[1..].copy_from_slice(&failure.errno.to_ne_bytes());
                let _ = rustix::io::write(&tell, &report);
                sys::leave(127)
            }
        };
        let bounded = job.fence.bounds_signals();
        let reach = if bounded {
            Reach::Domain
        } else {
            Reach::Descendants
        };
        let (starting, usage) = (Some(starting), Usage::default());
        Ok(Supervisor {
            main,
            children,
            starting,
            failure: None,
            pty,
            moving,
            memory,
            cause: None,
            sent: Sent::Nothing,
            reach,
            usage,
        })
    }

    /// Waits for the command until none of its processes is left.
    fn watch(mut self, link: &Link) -> Event {
        let mut listening = true;
        let status = loop {
            let [asked, ended, started] = self.wait(link, listening, None);
            if started {
                self.hear_start(link);
            }
            self.look_at_memory();
            if asked {
                listening = self.obey(link);
            }
            if let Some(status) = ended.then(|| self.bury()).flatten() {
                break status;
            }
        };
        // The program may have ended before its start was read.
        self.hear_start(link);
        let leftovers = self.end_rest(link, listening);
        // The mover undoes or finishes a running copy before the vault is read.
        let _ = retry_on_intr(|| rustix::io::read(&self.moving, &mut [0; 1]));
        match self.failure {
            Some(failure) => Event::CouldNotStart(failure),
            None => Event::Exited {
                status,
                usage: self.usage,
                leftovers,
                cause: self.cause,
            },
        }
    }

    /// Waits for a request, the end of a child, or the start of the program, up to this time.
    fn wait(&self, link: &Link, listening: bool, until: Option<Instant>) -> [bool; 3] {
        let mut polled = vec![PollFd::new(&self.children, PollFlags::IN)];
        if listening {
            polled.push(PollFd::new(link, PollFlags::IN));
        }
        if let Some(starting) = &self.starting {
            polled.push(PollFd::new(starting, PollFlags::IN));
        }
        let pause = self.memory.as_ref().map(MemoryWatch::pause);
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let pause = match (pause, left) {
            (Some(pause), Some(left)) => Some(pause.min(left)),
            (pause, left) => pause.or(left),
        };
        // Interrupted or not: handle what is ready, then wait again.
        let _ = poll(&mut polled, pause.as_ref());
        let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
        let ended = ready.next().unwrap_or(false);
        let asked = listening && ready.next().unwrap_or(false);
        [asked, ended, ready.next().unwrap_or(false)]
    }

    /// Kills everything above the memory limit.
    fn look_at_memory(&mut self) {
        if self.cause.is_none() && self.memory.as_mut().is_some_and(MemoryWatch::is_exceeded) {
            self.reach.kill();
            self.cause = Some(Enforced {
                limit: Limit::Memory,
                by: Mechanism::Poll,
            });
        }
    }

    /// Reports that the program runs, or records why it does not.
    fn hear_start(&mut self, link: &Link) {
        let Some(starting) = self.starting.take() else {
            return;
        };
        let mut report = [0; 5];
        match rustix::io::read(&starting, &mut report) {
            Ok(5) => {
                let [step, errno @ ..] = report;
                let step = match step {
                    step if step == StartStep::Cwd as u8 => StartStep::Cwd,
                    step if step == StartStep::Exec as u8 => StartStep::Exec,
                    step if step == StartStep::Limits as u8 => StartStep::Limits,
                    _ => StartStep::Setup,
                };
                self.failure = Some(StartFailure {
                    step,
                    errno: i32::from_ne_bytes(errno),
                });
            }
            _ => {
                let outer = self.pty.as_ref().map(|pty| pty.outer.as_fd());
                let _ = link.send(&Event::Started { pid: self.main }, outer.as_slice());
            }
        }
    }

    /// Handles a request; false if there will be no more.
    fn obey(&mut self, link: &Link) -> bool {
        match link.receive::<SupervisorRequest>(Wait::No) {
            Ok(Received::Nothing) => true,
            Ok(Received::Frame(SupervisorRequest::Signal(signal), _)) => {
                self.reach.signal(signal);
                if signal == libc::SIGTERM {
                    self.sent = self.sent.max(Sent::Term);
                }
                true
            }
            Ok(Received::Frame(SupervisorRequest::Kill, _)) => {
                self.reach.kill();
                self.sent = Sent::Kill;
                true
            }
            // The daemon has ended, or violates the protocol.
            Ok(Received::Closed) | Err(_) => {
                self.reach.kill();
                self.sent = Sent::Kill;
                false
            }
        }
    }

    /// Reaps children; returns the status of the main program, once it has ended.
    fn bury(&mut self) -> Option<ExitStatus> {
        sys::drain_child_events(self.children.as_fd());
        while let Waited::Ended(ended) = sys::wait_any(false) {
            self.account(&ended);
            if ended.pid == self.main {
                return Some(exit_status(ended.status));
            }
        }
        None
    }

    /// Ends all processes that the program left, and counts them.
    fn end_rest(&mut self, link: &Link, listening: bool) -> u32 {
        if self.reap() == Rest::Gone {
            return 0;
        }
        let left = u32::try_from(sys::descendants().len()).unwrap_or(u32::MAX);
        if self.cause.is_none() && self.sent < Sent::Kill {
            self.ask_rest(link, listening);
        }
        left.max(self.sweep())
    }

    /// Asks all processes that are left to end, and waits until they have, but not for long.
    fn ask_rest(&mut self, link: &Link, mut listening: bool) {
        if self.sent < Sent::Term {
            self.reach.signal(libc::SIGTERM);
        }
        // What is stopped could not act on it.
        self.reach.signal(libc::SIGCONT);
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            let [asked, ended, _] = self.wait(link, listening, Some(until));
            self.look_at_memory();
            if asked {
                listening = self.obey(link);
            }
            let is_gone = ended && self.reap() == Rest::Gone;
            if is_gone || self.cause.is_some() || self.sent == Sent::Kill {
                return;
            }
        }
    }

    /// Reaps what has ended, without waiting.
    fn reap(&mut self) -> Rest {
        sys::drain_child_events(self.children.as_fd());
        loop {
            match sys::wait_any(false) {
                Waited::Ended(ended) => self.account(&ended),
                Waited::None => return Rest::Alive,
                Waited::NoChildren => return Rest::Gone,
            }
        }
    }

    /// Kills all processes that are left, waits for their end, and counts them.
    fn sweep(&mut self) -> u32 {
        let mut killed = 0;
        let deadline = Instant::now() + CHASE;
        loop {
            self.reach.kill();
            loop {
                // One signal to the whole domain is final; without Landlock, descendants have to be searched again.
                match sys::wait_any(self.reach == Reach::Domain) {
                    Waited::Ended(ended) => {
                        self.account(&ended);
                        killed += u32::from(exit_status(ended.status) == KILLED);
                    }
                    Waited::None => break,
                    Waited::NoChildren => return killed,
                }
            }
            if Instant::now() > deadline {
                // They fork faster than they are found: the agent ends the whole sandbox.
                sys::leave(1);
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    fn account(&mut self, ended: &Ended) {
        let micros = |time: libc::timeval| {
            let (seconds, micros) = (time.tv_sec.cast_unsigned(), time.tv_usec.cast_unsigned());
            seconds * 1_000_000 + micros
        };
        let count = |number: i64| number.cast_unsigned();
        let used = &ended.usage;
        self.usage.user_us += micros(used.ru_utime);
        self.usage.system_us += micros(used.ru_stime);
        self.usage.max_rss_kib = self.usage.max_rss_kib.max(count(used.ru_maxrss));
        self.usage.read_blocks += count(used.ru_inblock);
        self.usage.write_blocks += count(used.ru_oublock);
    }
}

/// How long what the program left may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How long descendants are searched, where they have to be found one by one.
const CHASE: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 100;
const KILLED: ExitStatus = ExitStatus::Signal(libc::SIGKILL);

fn exit_status(status: i32) -> ExitStatus {
    if libc::WIFSIGNALED(status) {
        ExitStatus::Signal(libc::WTERMSIG(status))
    } else {
        ExitStatus::Code(libc::WEXITSTATUS(status))
    }
}

/// The strongest signal that was sent to all processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sent {
    Nothing,
    Term,
    Kill,
}

/// Whether processes of the command are left. Those whose parent ended are children of the supervisor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Alive,
    Gone,
}

/// How the processes of the command are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// All processes that this one may signal (Landlock).
    Domain,
    /// All descendants in /proc.
    Descendants,
}

impl Reach {
    fn signal(self, signal: i32) {
        match self {
            Reach::Domain => sys::signal_all_reachable(signal),
            Reach::Descendants => sys::signal_each(&sys::descendants(), signal),
        }
    }

    fn kill(self) {
        match self {
            Reach::Domain => sys::signal_all_reachable(libc::SIGKILL),
            Reach::Descendants => {
                // Stopped first, so that none forks while the others are searched.
                let mut found = Vec::new();
                for _ in 0..ROUNDS {
                    let mut new = sys::descendants();
                    new.retain(|pid| !found.contains(pid));
                    if new.is_empty() {
                        break;
                    }
                    sys::signal_each(&new, libc::SIGSTOP);
                    found.extend(new);
                }
                sys::signal_each(&found, libc::SIGKILL);
            }
        }
    }
}
