//! The daemon's handles on a sandbox and on a command running in it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{Gid, Uid, fchown, fstatfs};
use rustix::process::{Signal, geteuid, pidfd_send_signal};

use crate::error::{During, Error, Result};
use crate::keeper::{is_alive, lock};
use crate::limits::{Around, Bounds, Enforced};
use crate::network::OwnNetwork;
use crate::plan::{Command, Confinement, Event, ExecKey, IdMap, Isolation, Stdio};
use crate::protocol::{
    AgentReply, AgentRequest, Link, LinkError, Received, SupervisorRequest, Wait, readable_within,
    seal,
};
use crate::pty;
use crate::standing::Standing;

/// How long a sandbox may take to start: a busy daemon may serve its file system.
const OPENING: Duration = Duration::from_secs(30);
/// How long the agent may take for one answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long killed processes may take to disappear.
const BURIAL: Duration = Duration::from_secs(10);
/// The most bytes of arguments and environment.
const COMMAND_MAX: usize = 8 * 1024 * 1024;

/// A sandbox for commands. Dropping it kills all its processes and waits for their end.
#[derive(Debug)]
pub struct Sandbox {
    control: Mutex<Link>,
    life: Life,
    isolation: Isolation,
    /// Its `/`, as an O_PATH descriptor.
    top: OwnedFd,
    around: Around,
    /// `None` if it has the host's.
    pub(crate) network: Option<OwnNetwork>,
}

impl Sandbox {
    /// Waits until a new agent reports that its sandbox is ready.
    pub(crate) fn attach(
        control: Link,
        pidfd: OwnedFd,
        confinement: Confinement,
        standing: Option<Arc<Standing>>,
    ) -> Result<Sandbox> {
        let life = Life(pidfd);
        let answer = control.answer_with_descriptors::<AgentReply>(OPENING);
        let (isolation, ready, fds) = match answer {
            Ok((AgentReply::Ready { isolation, network }, fds)) => (isolation, network, fds),
            Ok((AgentReply::Failed(fault), _)) => return Err(Error::SandboxSetup(fault)),
            Ok(_) => return Err(unexpected()),
            Err(error) => return Err(error.named("agent", Error::SandboxGone, OPENING)),
        };
        let mut fds = fds.into_iter();
        let (top, network) = match (ready, fds.next(), fds.next(), fds.next()) {
            (None, Some(top), None, None) => (top, None),
            (Some(ready), Some(top), Some(routes), Some(diag)) => {
                let network = OwnNetwork::accept(routes, diag, ready.ipv6)?;
                (top, Some(network))
            }
            _ => return Err(unexpected()),
        };
        Ok(Sandbox {
            control: Mutex::new(control),
            life,
            isolation,
            top,
            around: Around {
                confinement,
                standing,
            },
            network,
        })
    }

    /// Starts a command. [`Running::next_event`] tells whether it started, and how it ended.
    pub fn exec(&self, command: &Command, stdio: Stdio) -> Result<Running> {
        check(command)?;
        for fd in [&stdio.stdin, &stdio.stdout, &stdio.stderr] {
            give_pipe(fd.as_fd(), self.isolation.ids)?;
        }
        let bounds = Bounds::set(&command.limits, &self.around)?;
        let body = seal(&(command, bounds.orders))?;
        let (ours, theirs) = Link::pair()?;
        let mut descriptors = vec![
            body.as_fd(),
            theirs.as_fd(),
            stdio.stdin.as_fd(),
            stdio.stdout.as_fd(),
            stdio.stderr.as_fd(),
        ];
        descriptors.extend(bounds.doors());
        lock(&self.control)
            .send(&AgentRequest::Exec(command.key), &descriptors)
            .map_err(|error| error.named("agent", Error::SandboxGone, ANSWER))?;
        Ok(Running {
            key: command.key,
            link: ours,
            progress: Mutex::new(Progress::Starting),
            first: Mutex::default(),
            has_terminal: command.terminal.is_some(),
            terminal: Mutex::default(),
            limits: bounds.enforced.clone(),
            defaults: bounds.defaults.clone(),
            bounds: Mutex::new(Some(bounds)),
        })
    }

    /// Whether its pid 1 is alive.
    pub fn is_alive(&self) -> bool {
        is_alive(self.life.0.as_fd())
    }

    /// How many processes it has, besides pid 1 and the supervisors.
    pub fn processes(&self) -> Result<u32> {
        match self.ask(&AgentRequest::CountProcesses)? {
            AgentReply::Processes(count) => Ok(count),
            _ => Err(unexpected()),
        }
    }

    /// Stops every process of every command until the guard is dropped.
    pub fn freeze(&self) -> Result<Frozen<'_>> {
        // Made first, so that they continue whatever the answer is.
        let frozen = Frozen { sandbox: self };
        match self.ask(&AgentRequest::Freeze)? {
            AgentReply::Frozen(_) => Ok(frozen),
            _ => Err(unexpected()),
        }
    }

    pub(crate) fn ask(&self, request: &AgentRequest) -> Result<AgentReply> {
        self.ask_by(request, |control| control.answer(ANSWER))
    }

    /// For a request whose answer brings descriptors.
    pub(crate) fn ask_for_descriptors(
        &self,
        request: &AgentRequest,
    ) -> Result<(AgentReply, Vec<OwnedFd>)> {
        self.ask_by(request, |control| control.answer_with_descriptors(ANSWER))
    }

    fn ask_by<T>(
        &self,
        request: &AgentRequest,
        hear: impl FnOnce(&Link) -> std::result::Result<T, LinkError>,
    ) -> Result<T> {
        let control = lock(&self.control);
        // An earlier answer that arrived too late must not be taken for this one.
        while matches!(
            control.receive::<AgentReply>(Wait::No),
            Ok(Received::Frame(..))
        ) {}
        let answer = control.send(request, &[]).and_then(|()| hear(&control));
        answer.map_err(|error| error.named("agent", Error::SandboxGone, ANSWER))
    }

    /// Kills everything in it, and waits for the end.
    pub fn kill(&self) {
        self.life.end();
    }

    /// Its `/` as its commands see it: the vault, with other mounts on it. An O_PATH descriptor.
    pub fn top(&self) -> BorrowedFd<'_> {
        self.top.as_fd()
    }

    /// The isolation of its commands.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }
}

/// Stopped commands. Dropping it continues them.
#[derive(Debug)]
pub struct Frozen<'a> {
    sandbox: &'a Sandbox,
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        // If the sandbox does not answer, it is dead, with all its processes.
        let _ = self.sandbox.ask(&AgentRequest::Thaw);
    }
}

/// A command in a sandbox. Dropping it before its end kills it and everything it started.
#[derive(Debug)]
pub struct Running {
    key: ExecKey,
    link: Link,
    progress: Mutex<Progress>,
    /// An event that arrived before `Begins`.
    first: Mutex<Option<Event>>,
    has_terminal: bool,
    /// Set once the command has started, until it is taken.
    terminal: Mutex<Option<OwnedFd>>,
    limits: Vec<Enforced>,
    defaults: Vec<Enforced>,
    /// Set until the command has ended.
    bounds: Mutex<Option<Bounds>>,
}

/// The progress of a command, by its supervisor's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Starting,
    Started,
    Over,
}

impl Running {
    /// What the daemon called it.
    pub fn key(&self) -> ExecKey {
        self.key
    }

    /// Readable if there is an event.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }

    /// Waits until the program may have run, or its outcome is known. False if the sandbox died before.
    pub fn begins(&self) -> Result<bool> {
        // After this time without an event, it is treated like a running one.
        if !readable_within(self.link.as_fd(), ANSWER)? {
            return Ok(true);
        }
        match self.link.receive::<Event>(Wait::No) {
            Ok(Received::Frame(Event::Begins, _) | Received::Nothing) => {}
            Ok(Received::Frame(Event::Started { .. }, _)) => {
                return Err(Error::Malformed {
                    peer: "supervisor",
                    reason: "a start without a beginning",
                });
            }
            Ok(Received::Frame(event, _)) => *lock(&self.first) = Some(self.conclude(event)),
            Ok(Received::Closed) | Err(LinkError::Closed) => return Ok(false),
            Err(error) => return Err(error.named("supervisor", Error::SandboxGone, ANSWER)),
        }
        Ok(true)
    }

    /// The next event, without waiting; after the final event, always `None`.
    pub fn next_event(&self) -> Result<Option<Event>> {
        let mut progress = lock(&self.progress);
        if *progress == Progress::Over {
            return Ok(None);
        }
        if let Some(first) = lock(&self.first).take() {
            *progress = Progress::Over;
            return Ok(Some(first));
        }
        let received = match self.has_terminal {
            true => self.link.receive_with_one::<Event>(),
            false => self.link.receive::<Event>(Wait::No),
        };
        let event = match received {
            Ok(Received::Nothing | Received::Frame(Event::Begins, _)) => return Ok(None),
            Ok(Received::Frame(event, descriptors)) => {
                self.keep_terminal(&event, descriptors)?;
                self.conclude(event)
            }
            Ok(Received::Closed) | Err(LinkError::Closed) => Event::Lost,
            Err(error) => {
                *progress = Progress::Over;
                return Err(error.named("supervisor", Error::SandboxGone, ANSWER));
            }
        };
        *progress = match (*progress, &event) {
            (Progress::Starting, Event::Started { .. }) => Progress::Started,
            (_, Event::Started { .. }) => {
                *progress = Progress::Over;
                let reason = "a second start";
                return Err(Error::Malformed {
                    peer: "supervisor",
                    reason,
                });
            }
            _ => Progress::Over,
        };
        Ok(Some(event))
    }

    /// The controlling side of its terminal, non-blocking; can be taken once, after it has started.
    pub fn take_terminal(&self) -> Option<OwnedFd> {
        lock(&self.terminal).take()
    }

    fn keep_terminal(&self, event: &Event, mut descriptors: Vec<OwnedFd>) -> Result<()> {
        if !self.has_terminal || !matches!(event, Event::Started { .. }) {
            return Ok(());
        }
        let outer = descriptors.pop().filter(|fd| pty::accept(fd).is_ok());
        let outer = outer.ok_or(Error::Malformed {
            peer: "supervisor",
            reason: "a start without its terminal",
        })?;
        *lock(&self.terminal) = Some(outer);
        Ok(())
    }

    /// Its own limits, and what enforces each.
    pub fn limits(&self) -> &[Enforced] {
        &self.limits
    }

    /// Its limits from [`Defaults`](crate::Defaults), and what enforces each.
    pub fn default_limits(&self) -> &[Enforced] {
        &self.defaults
    }

    /// Adds to a final event what only this side knows, and drops the control groups.
    fn conclude(&self, event: Event) -> Event {
        if matches!(event, Event::Started { .. }) {
            return event;
        }
        let bounds = lock(&self.bounds).take();
        match event {
            Event::Exited {
                status,
                usage,
                leftovers,
                cause: None,
            } => Event::Exited {
                status,
                usage,
                leftovers,
                cause: bounds.and_then(|bounds| bounds.cause(status)),
            },
            event => event,
        }
    }

    /// Sends a signal to every process of this command, wherever it is in the process tree.
    pub fn signal(&self, signal: i32) -> Result<()> {
        if !(1..=libc::SIGRTMAX()).contains(&signal) {
            return Err(Error::Invalid {
                what: "signal",
                reason: signal.to_string(),
            });
        }
        self.request(&SupervisorRequest::Signal(signal))
    }

    /// Kills every process of this command. An event reports its end.
    pub fn kill(&self) -> Result<()> {
        self.request(&SupervisorRequest::Kill)
    }

    fn request(&self, request: &SupervisorRequest) -> Result<()> {
        match self.link.send(request, &[]) {
            // No process is left to be signalled.
            Ok(()) | Err(LinkError::Closed) => Ok(()),
            Err(error) => Err(error.named("supervisor", Error::SandboxGone, ANSWER)),
        }
    }
}

/// The lifetime of an agent and of everything in its sandbox, which end with this value.
#[derive(Debug)]
struct Life(OwnedFd);

impl Life {
    fn end(&self) {
        // An error means that it is dead already.
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
        let _ = readable_within(self.0.as_fd(), BURIAL);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end();
    }
}

fn unexpected() -> Error {
    Error::Malformed {
        peer: "agent",
        reason: "not the reply to this request",
    }
}

/// Chowns a pipe to the command's user, who could not open `/dev/stdout` otherwise.
fn give_pipe(fd: BorrowedFd<'_>, ids: IdMap) -> Result<()> {
    const PIPES: u64 = 0x5049_5045;
    let system = fstatfs(fd).during(|| "read a command's descriptor")?.f_type;
    if system.cast_unsigned() == PIPES && geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(ids.host_uid), Gid::from_raw(ids.host_gid));
        fchown(fd, Some(uid), Some(gid)).during(|| "give a pipe to the command's user")?;
    }
    Ok(())
}

/// Refuses arguments that execve cannot express.
fn check(command: &Command) -> Result<()> {
    let refuse = |reason: &str| {
        Err(Error::Invalid {
            what: "command",
            reason: reason.into(),
        })
    };
    let pairs = command.env.iter().flat_map(|(key, value)| [key, value]);
    let words = || {
        command
            .argv
            .iter()
            .chain(pairs.clone())
            .chain([&command.cwd])
    };
    if command.argv.first().is_none_or(Vec::is_empty) {
        return refuse("no program");
    }
    if command
        .env
        .iter()
        .any(|(key, _)| key.is_empty() || key.contains(&b'='))
    {
        return refuse("an environment name is empty or contains '='");
    }
    if words().any(|word| word.contains(&0)) {
        return refuse("a NUL byte in an argument, the environment or the directory");
    }
    if command.cwd.first() != Some(&b'/') {
        return refuse("the working directory is not absolute");
    }
    if words().map(|word| word.len() + 1).sum::<usize>() > COMMAND_MAX {
        return refuse("more than 8 MiB of arguments and environment");
    }
    Ok(())
}
