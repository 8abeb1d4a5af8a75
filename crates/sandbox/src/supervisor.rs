//! The supervisor of one command: starts it, passes signals on to every process it became, and
//! leaves only when none of them is alive.
//!
//! It stands in a Landlock domain of its own and the command in a further one inside, so that
//! the command cannot signal it, while `kill(-1)` from here reaches exactly the command's
//! processes, all in one sweep that no fork can outrun.

use std::ffi::{CString, c_char};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, Rlimit, getpid, set_child_subreaper, setrlimit, setsid};

use crate::confine::Fence;
use crate::mover::Mover;
use crate::plan::{Command, Event, ExitStatus, StartFailure, StartStep, Usage};
use crate::protocol::{Link, Received, SupervisorRequest, Wait, unseal};
use crate::sys::{self, Ended, Forked, Waited};

/// Where programs are looked up when the environment has no PATH.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// One command to run.
pub(crate) struct Job<'a> {
    pub command: OwnedFd,
    pub link: Link,
    pub stdio: [OwnedFd; 3],
    pub fence: &'a Fence,
    pub mover: Option<&'a Mover>,
    pub held: &'a [RawFd],
}

/// The whole life of a supervisor.
pub(crate) fn live(job: Job<'_>) -> ! {
    // Cosmetic: a process listing shows which of the equal-looking processes this is.
    let _ = rustix::thread::set_name(c"avfs-supervisor");
    let mut kept = vec![
        0,
        1,
        2,
        job.command.as_raw_fd(),
        job.link.as_fd().as_raw_fd(),
    ];
    kept.extend(job.stdio.iter().map(AsRawFd::as_raw_fd));
    kept.extend(job.fence.descriptor());
    kept.extend(job.mover.map(Mover::descriptor));
    kept.extend(job.held);
    // SAFETY: everything else belonged to the agent, whose values are never used again here.
    unsafe { sys::close_all_but(&kept) };
    let last = match Supervisor::start(&job) {
        Ok(supervisor) => {
            drop(job.stdio);
            supervisor.watch(&job.link)
        }
        Err(errno) => could_not_start(StartStep::Setup, errno),
    };
    // A daemon that is gone does not need to know.
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
    /// Brings the reason why the program could not run, or its end says that it does.
    starting: Option<OwnedFd>,
    failure: Option<StartFailure>,
    /// At its end once the mover has nothing to do for the command any more.
    moving: OwnedFd,
    reach: Reach,
    usage: Usage,
}

impl Supervisor {
    /// Forks the command.
    fn start(job: &Job<'_>) -> Result<Supervisor, Errno> {
        set_child_subreaper(Some(getpid()))?;
        job.fence.enter()?;
        let children = sys::child_events()?;
        let command: Command =
            unseal(job.command.as_fd()).map_err(|fault| Errno::from_raw_os_error(fault.errno))?;
        let (starting, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        let (moving, moved) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: the supervisor has one thread.
        let main = match unsafe { sys::fork(0) }? {
            Forked::Parent { pid, .. } => pid.as_raw_nonzero().get(),
            Forked::Child => {
                let failure = become_command(&command, job, moved);
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
            moving,
            reach,
            usage,
        })
    }

    /// Attends to the command until nothing of it is left.
    fn watch(mut self, link: &Link) -> Event {
        let mut listening = true;
        let status = loop {
            let [asked, ended, started] = self.wait(link, listening);
            if started {
                self.hear_start(link);
            }
            if asked {
                listening = self.obey(link);
            }
            if let Some(status) = ended.then(|| self.bury()).flatten() {
                break status;
            }
        };
        // The program may have ended before its start was heard of.
        self.hear_start(link);
        let leftovers = self.sweep();
        // A copy that was under way is undone or finished before anyone looks at the vault.
        let _ = retry_on_intr(|| rustix::io::read(&self.moving, &mut [0; 1]));
        match self.failure {
            Some(failure) => Event::CouldNotStart(failure),
            None => Event::Exited {
                status,
                usage: self.usage,
                leftovers,
            },
        }
    }

    /// Waits for a request, the end of a child, or the start of the program.
    fn wait(&self, link: &Link, listening: bool) -> [bool; 3] {
        let mut polled = vec![PollFd::new(&self.children, PollFlags::IN)];
        if listening {
            polled.push(PollFd::new(link, PollFlags::IN));
        }
        if let Some(starting) = &self.starting {
            polled.push(PollFd::new(starting, PollFlags::IN));
        }
        // Interrupted or not, what is ready is looked at and the rest waited for again.
        let _ = poll(&mut polled, None);
        let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
        let ended = ready.next().unwrap_or(false);
        let asked = listening && ready.next().unwrap_or(false);
        [asked, ended, ready.next().unwrap_or(false)]
    }

    /// Tells the daemon that the program runs, or keeps why it does not.
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
                    _ => StartStep::Setup,
                };
                self.failure = Some(StartFailure {
                    step,
                    errno: i32::from_ne_bytes(errno),
                });
            }
            _ => {
                let _ = link.send(&Event::Started { pid: self.main }, &[]);
            }
        }
    }

    /// Carries out a request; false when there will be no more.
    fn obey(&self, link: &Link) -> bool {
        match link.receive::<SupervisorRequest>(Wait::No) {
            Ok(Received::Nothing) => true,
            Ok(Received::Frame(SupervisorRequest::Signal(signal), _)) => {
                self.reach.signal(signal);
                true
            }
            Ok(Received::Frame(SupervisorRequest::Kill, _)) => {
                self.reach.kill();
                true
            }
            // The daemon is gone, or speaks nonsense.
            Ok(Received::Closed) | Err(_) => {
                self.reach.kill();
                false
            }
        }
    }

    /// Reaps what has ended; the status of the main program, once it has.
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

    /// Kills all that is left, waits until it is gone, and counts it.
    fn sweep(&mut self) -> u32 {
        let mut killed = 0;
        let deadline = Instant::now() + CHASE;
        loop {
            self.reach.kill();
            loop {
                // One sweep of a whole domain is final; descendants have to be looked for again.
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
                // They multiply faster than they are found: the agent ends the whole sandbox.
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

/// How long strays are chased where they have to be found one by one.
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

/// How the processes of the command are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// All that this process may signal.
    Domain,
    /// All descendants, as /proc tells them.
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
                // Stopped first, so that none makes another while the rest are looked for.
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

/// Turns this process into the command; returns only why it could not.
fn become_command(command: &Command, job: &Job<'_>, moved: OwnedFd) -> StartFailure {
    let failed = |step| {
        move |errno: Errno| StartFailure {
            step,
            errno: errno.raw_os_error(),
        }
    };
    let prepare = || -> Result<(), Errno> {
        for (number, fd) in (0..).zip(&job.stdio) {
            sys::become_descriptor(fd.as_fd(), number)?;
        }
        setsid()?;
        sys::reset_signals();
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        setrlimit(
            Resource::Core,
            Rlimit {
                current: Some(0),
                maximum: Some(0),
            },
        )?;
        sys::close_on_exec_from(3);
        job.fence.enter()?;
        job.mover.map_or(Ok(()), |mover| mover.serve_me(moved))
    };
    if let Err(failure) = prepare().map_err(failed(StartStep::Setup)) {
        return failure;
    }
    let cwd = rustix::process::chdir(command.cwd.as_slice());
    if let Err(failure) = cwd.map_err(failed(StartStep::Cwd)) {
        return failure;
    }
    failed(StartStep::Exec)(execute(command))
}

/// Executes the program, looked up as execvp(3) would in the command's own PATH.
fn execute(command: &Command) -> Errno {
    let Some(image) = Image::new(command) else {
        return Errno::INVAL;
    };
    let program = &command.argv[0];
    if program.contains(&b'/') {
        return image.execute(program);
    }
    let path = command.env.iter().find(|(key, _)| key == b"PATH");
    let path = path.map_or(DEFAULT_PATH, |(_, value)| value);
    let mut answer = Errno::NOENT;
    for dir in path.split(|byte| *byte == b':') {
        let dir = if dir.is_empty() { b"." } else { dir };
        match image.execute(&[dir, b"/", program].concat()) {
            Errno::NOENT | Errno::NOTDIR => {}
            // There is one that may not be run; another may follow.
            Errno::ACCESS => answer = Errno::ACCESS,
            errno => return errno,
        }
    }
    answer
}

/// Arguments and environment as the kernel wants them.
struct Image {
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    fn new(command: &Command) -> Option<Image> {
        let arguments = command
            .argv
            .iter()
            .map(|word| CString::new(word.as_slice()));
        let environment = command
            .env
            .iter()
            .map(|(key, value)| CString::new([key.as_slice(), b"=", value.as_slice()].concat()));
        let arguments = arguments.collect::<Result<Vec<_>, _>>().ok()?;
        let environment = environment.collect::<Result<_, _>>().ok()?;
        (!arguments.is_empty()).then_some(Image {
            arguments,
            environment,
        })
    }

    fn execute(&self, program: &[u8]) -> Errno {
        let Ok(program) = CString::new(program) else {
            return Errno::INVAL;
        };
        let arguments: Vec<_> = self.arguments.iter().map(|word| word.as_ptr()).collect();
        let errno = self.replace(&program, &arguments);
        if errno != Errno::NOEXEC {
            return errno;
        }
        // A script without a first line that names its interpreter.
        let shell = c"/bin/sh";
        let script = [shell.as_ptr(), program.as_ptr()].into_iter();
        let arguments: Vec<_> = script.chain(arguments.into_iter().skip(1)).collect();
        self.replace(shell, &arguments)
    }

    fn replace(&self, program: &std::ffi::CStr, arguments: &[*const c_char]) -> Errno {
        let end = std::iter::once(std::ptr::null());
        let arguments: Vec<_> = arguments.iter().copied().chain(end.clone()).collect();
        let environment = self.environment.iter().map(|word| word.as_ptr());
        let environment: Vec<_> = environment.chain(end).collect();
        // SAFETY: C strings and null-terminated arrays that outlive the call.
        unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
    }
}
