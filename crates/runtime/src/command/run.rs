//! One command in a sandbox: its output, its time, its end.

mod ends;
mod feed;
mod output;
mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use avfs_sandbox::{Command, Enforced, Event, ExitStatus, Running, StartFailure, Stdio, Usage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use avfs_vault::{ApprovalId, ExecId};

use self::ends::Ends;
use self::feed::Feed;
use self::output::Output;
use self::status::{DISK, DISK_RESERVE, limit_of, status_of};
use crate::command::capture::{Capture, HeldOutput};
use crate::command::control::Control;
use crate::command::options::Stdin;
use crate::command::report::{Attempts, Captured, ExecStatus};
use crate::command::spill::ExecSpills;
use crate::common::Stream;
use crate::live::disk_watch::DiskWatch;
use crate::live::network::{Online, TermsNow};
use crate::live::network_teller::Journal;
use crate::live::reserve::Reserve;
use crate::live::slot::ExecSession;
use crate::retried::{Retried, note};
use crate::runtime::Runtime;
use crate::{Error, Result};

/// How many sandboxes may die before a command has begun.
const TRIES: usize = 4;
/// Between asking a command to end and ending it.
const GRACE: Duration = Duration::from_secs(2);
/// How often the caller is asked whether it still wants the result.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// How a caller ends a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// As Ctrl-C does.
    Interrupt,
    /// By going away.
    Leave,
}

impl Cancel {
    fn signal(self) -> Signal {
        match self {
            Cancel::Interrupt => Signal::INT,
            Cancel::Leave => Signal::TERM,
        }
    }
}

/// Where output goes while the command runs.
pub trait OutputSink: Sync {
    /// Takes output. It may make the command wait, as a full pipe would, but not beyond `until`.
    fn output(&self, stream: Stream, bytes: &[u8], until: Option<Instant>);

    /// Tells that the program runs.
    fn started(&self) {}

    /// Tells that the command is held until somebody approves it.
    fn waiting(&self, _: ApprovalId) {}

    /// Whether the caller has gone away or wants the command ended.
    fn cancelled(&self) -> Option<Cancel> {
        None
    }
}

/// What a command came to.
pub(crate) struct Ran {
    pub status: ExecStatus,
    pub stdout: Captured,
    pub stderr: Captured,
    /// The memory that both take.
    pub held: Vec<HeldOutput>,
    pub usage: Option<Usage>,
    pub limits: Vec<Enforced>,
    pub default_limits: Vec<Enforced>,
    pub disk_reserve: Option<u64>,
    pub limit_hit: Option<Enforced>,
    pub leftovers: u32,
    /// What it tried to reach.
    pub attempts: Attempts,
    /// What of that is not in the journal yet.
    pub untold: Attempts,
    /// In how many places of its output something was masked.
    pub masked: u64,
}

/// One command, and what it runs under.
pub(crate) struct Assignment {
    pub exec: ExecId,
    pub command: Command,
    /// What it may reach.
    pub network: avfs_net::Terms,
    /// Its terms after a change of the vault's network.
    pub network_now: TermsNow,
    /// Writes what it tries to reach into the journal, while it runs.
    pub network_journal: Journal,
    pub stdin: Stdin,
    pub timeout: Option<Duration>,
    pub output_limit: usize,
    pub spills: ExecSpills,
    /// How many bytes it may add to the disk.
    pub growth: Option<u64>,
    /// Holds it to that and to the vault's quota, if there is one.
    pub disk_watch: Option<DiskWatch>,
    /// What it leaves free of the disk.
    pub reserve: Option<Reserve>,
    /// Whether somebody who may wants all commands of the vault ended.
    pub ending: Arc<AtomicBool>,
    pub control: Arc<Control>,
    /// Knows what is masked in its output.
    pub runtime: Runtime,
}

/// Runs a command to its end, whatever end that is.
pub(crate) fn run(
    session: &mut ExecSession,
    mut task: Assignment,
    sink: &dyn OutputSink,
) -> Result<Ran> {
    let failed = |errno: Errno| Error::Io {
        what: "preparing the command".into(),
        source: errno.into(),
    };
    let (ends, feed) = match task.command.terminal {
        Some(_) => Ends::at_terminal(std::mem::take(&mut task.stdin)),
        None => Ends::at_pipes(std::mem::take(&mut task.stdin)),
    }
    .map_err(failed)?;
    let (running, online) = start(session, &mut task, ends.theirs)?;
    let output = |stream, pipe| {
        let capture = Capture::new(
            task.output_limit,
            task.spills.stream(stream),
            &task.spills.room,
        );
        Output::new(stream, pipe, capture, task.runtime.clone())
    };
    let [stdout, stderr] = ends.ours;
    let mut watch = Watch {
        running: &running,
        outputs: [
            output(Stream::Stdout, stdout),
            output(Stream::Stderr, stderr),
        ],
        feed,
        sink,
        disk_watch: task.disk_watch,
        reserve: task.reserve,
        all_ending: &task.ending,
        control: &task.control,
        ending: Ending::NotYet {
            deadline: task.timeout.map(|timeout| Instant::now() + timeout),
        },
        buffer: vec![0; 64 * 1024],
    };
    let end = watch.until_the_end()?;
    let (attempts, untold) = online.map(Attempts::of).unwrap_or_default();
    Ok(Ran {
        attempts,
        untold,
        ..watch.conclude(end)
    })
}

/// Starts the command. A sandbox that died before the command could have begun is replaced; the report names it.
fn start(
    session: &mut ExecSession,
    task: &mut Assignment,
    stdio: Stdio,
) -> Result<(Running, Option<Online>)> {
    for _ in 0..TRIES {
        let network = session.inside.network.as_ref();
        let online = network
            .map(|network| {
                let (terms, now) = (task.network.clone(), task.network_now.clone());
                let journal = Arc::clone(&task.network_journal);
                network.enter(task.command.key, task.exec, terms, now, journal)
            })
            .transpose()?;
        let copied = stdio.try_clone();
        let copied = copied.map_err(Error::io("preparing the command"))?;
        match session.inside.sandbox.exec(&task.command, copied) {
            Ok(running) if running.begins()? => return Ok((running, online)),
            Ok(_) | Err(avfs_sandbox::Error::SandboxGone) => {}
            Err(error) => return Err(error.into()),
        }
        note(Retried::Sandbox);
        session.enter_again()?;
        task.disk_watch = session.disk_watch(task.growth)?;
    }
    Err(Error::Sandbox(avfs_sandbox::Error::SandboxGone))
}

struct Watch<'a> {
    running: &'a Running,
    outputs: [Output; 2],
    /// What is typed, at a terminal.
    feed: Option<Feed>,
    sink: &'a dyn OutputSink,
    disk_watch: Option<DiskWatch>,
    reserve: Option<Reserve>,
    all_ending: &'a AtomicBool,
    control: &'a Control,
    ending: Ending,
    buffer: Vec<u8>,
}

/// Whether we have begun to end the command, and why.
enum Ending {
    NotYet { deadline: Option<Instant> },
    Asked { why: Why, kill_at: Instant },
    Killed { why: Why },
}

#[derive(Clone, Copy)]
enum Why {
    Timeout,
    Cancelled(Cancel),
    /// It wrote more than it may.
    Disk,
    /// The disk is nearly full.
    DiskReserve,
}

impl Why {
    /// How the command is asked to end; too much is too much at once.
    fn asked_by(self) -> Option<Signal> {
        match self {
            Why::Timeout => Some(Signal::TERM),
            Why::Cancelled(cancel) => Some(cancel.signal()),
            Why::Disk | Why::DiskReserve => None,
        }
    }
}

enum End {
    CouldNotStart(StartFailure),
    Exited {
        status: ExitStatus,
        usage: Usage,
        leftovers: u32,
        cause: Option<Enforced>,
    },
    Lost,
}

impl Watch<'_> {
    fn until_the_end(&mut self) -> Result<End> {
        loop {
            self.wait()?;
            self.read_output();
            if let Some(feed) = &mut self.feed {
                feed.pass_on();
            }
            match self.running.next_event()? {
                None | Some(Event::Begins) => {}
                Some(Event::Started { .. }) => self.begin()?,
                Some(Event::CouldNotStart(failure)) => return Ok(End::CouldNotStart(failure)),
                Some(Event::Exited {
                    status,
                    usage,
                    leftovers,
                    cause,
                }) => {
                    // Nothing of the command lives, so what is in the pipes is all there will be.
                    self.read_output();
                    self.look_once_more()?;
                    return Ok(End::Exited {
                        status,
                        usage,
                        leftovers,
                        cause,
                    });
                }
                Some(Event::Lost) => {
                    self.read_output();
                    return Ok(End::Lost);
                }
            }
            self.end_if_due()?;
        }
    }

    /// What it wrote after the last look counts, too: then it is as if that look had been in time.
    fn look_once_more(&mut self) -> Result<()> {
        if let (Ending::NotYet { .. }, Some(disk_watch)) = (&self.ending, &self.disk_watch)
            && disk_watch.is_exceeded_now()?
        {
            self.ending = Ending::Killed { why: Why::Disk };
        }
        Ok(())
    }

    /// The program runs: at a terminal, this is when it can be seen and typed at.
    fn begin(&mut self) -> Result<()> {
        if let (Some(terminal), Some(feed)) = (self.running.take_terminal(), &mut self.feed) {
            let another = || {
                let copy = terminal.try_clone();
                copy.map_err(Error::io("holding the command's terminal"))
            };
            feed.begin(another()?);
            self.control.attach(another()?)?;
            self.outputs[0].set_pipe(terminal);
        }
        self.sink.started();
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let event = self.running.fd();
        let mut polled = vec![PollFd::from_borrowed_fd(event, PollFlags::IN)];
        for pipe in self.outputs.iter().filter_map(Output::pipe) {
            polled.push(PollFd::new(pipe, PollFlags::IN));
        }
        polled.extend(self.feed.as_ref().and_then(Feed::polled));
        let next = match &self.ending {
            Ending::NotYet {
                deadline: Some(deadline),
            } => Some(*deadline),
            Ending::Asked { kill_at, .. } => Some(*kill_at),
            _ => None,
        };
        let look = self.disk_watch.as_ref().map(DiskWatch::next);
        let looks = look
            .into_iter()
            .chain(self.reserve.as_ref().map(Reserve::next));
        let next = next.into_iter().chain(looks).min();
        let until_next = next.map_or(CANCEL_POLL, |at| {
            at.saturating_duration_since(Instant::now())
        });
        let timeout = until_next.min(CANCEL_POLL);
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            // Rounded up: waking before the deadline would spin.
            tv_nsec: i64::from(timeout.subsec_nanos().min(999_000_000)) + 1_000,
        };
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::Io {
                what: "waiting for the command".into(),
                source: errno.into(),
            }),
        }
    }

    fn read_output(&mut self) {
        let until = match &self.ending {
            Ending::NotYet { deadline } => *deadline,
            // It is over: what nobody takes now is in the report.
            Ending::Asked { kill_at, .. } => Some(*kill_at),
            Ending::Killed { .. } => Some(Instant::now()),
        };
        for output in &mut self.outputs {
            output.read(&mut self.buffer, self.sink, until);
            output.give_when_quiet(self.sink, until);
        }
    }

    fn end_if_due(&mut self) -> Result<()> {
        let now = Instant::now();
        for signal in self.control.take_signals() {
            self.running.signal(signal)?;
        }
        match self.ending {
            Ending::NotYet { deadline } => {
                let Some(why) = self.due(deadline.is_some_and(|deadline| now >= deadline))? else {
                    return Ok(());
                };
                self.ending = match why.asked_by() {
                    Some(signal) => {
                        self.running.signal(signal.as_raw())?;
                        let kill_at = now + GRACE;
                        Ending::Asked { why, kill_at }
                    }
                    None => {
                        self.running.kill()?;
                        Ending::Killed { why }
                    }
                };
            }
            Ending::Asked { why, kill_at } if now >= kill_at => {
                self.running.kill()?;
                self.ending = Ending::Killed { why };
            }
            Ending::Asked { .. } | Ending::Killed { .. } => {}
        }
        Ok(())
    }

    /// Why the command has to end now, if it has to.
    fn due(&mut self, late: bool) -> Result<Option<Why>> {
        if late {
            return Ok(Some(Why::Timeout));
        }
        if let Some(disk_watch) = &mut self.disk_watch
            && disk_watch.is_exceeded()?
        {
            return Ok(Some(Why::Disk));
        }
        if let Some(reserve) = &mut self.reserve
            && reserve.is_touched()?
        {
            return Ok(Some(Why::DiskReserve));
        }
        if self.all_ending.load(Ordering::Acquire) {
            return Ok(Some(Why::Cancelled(Cancel::Leave)));
        }
        Ok(self.sink.cancelled().map(Why::Cancelled))
    }

    fn conclude(mut self, end: End) -> Ran {
        for output in &mut self.outputs {
            output.give_rest(self.sink, Some(Instant::now()));
        }
        let masked = self.outputs.iter().map(Output::masked).sum();
        let (usage, leftovers, cause) = match &end {
            End::Exited {
                usage,
                leftovers,
                cause,
                ..
            } => (Some(*usage), *leftovers, *cause),
            End::CouldNotStart(_) | End::Lost => (None, 0, None),
        };
        let mut limits = self.running.limits().to_vec();
        limits.extend(self.disk_watch.as_ref().map(|_| DISK));
        let mut defaults = self.running.default_limits().to_vec();
        defaults.extend(self.reserve.as_ref().map(|_| DISK_RESERVE));
        let too_much = limit_of(&self.ending);
        let status = status_of(&self.ending, end);
        self.control.release();
        let [(stdout, first), (stderr, second)] = self.outputs.map(Output::finish);
        Ran {
            status,
            stdout,
            stderr,
            held: vec![first, second],
            usage,
            limits,
            default_limits: defaults,
            disk_reserve: self.reserve.as_ref().map(Reserve::bytes),
            limit_hit: cause.or(too_much),
            leftovers,
            attempts: Attempts::default(),
            untold: Attempts::default(),
            masked,
        }
    }
}
