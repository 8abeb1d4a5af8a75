//! The last steps from a fork to the program of a command.

use std::ffi::{CString, c_char};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, setsid};

use crate::limits::Orders;
use crate::plan::{Command, StartFailure, StartStep};
use crate::pty::Pty;
use crate::supervisor::Job;
use crate::sys;

/// The default PATH.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// Becomes the command; returns only if that fails.
///
/// `moved` is closed when the mover has nothing to do for the command any more.
pub(crate) fn become_one(
    command: &Command,
    orders: &Orders,
    job: &Job<'_>,
    pty: Option<&Pty>,
    moved: OwnedFd,
) -> StartFailure {
    let failed = |step| {
        move |errno: Errno| StartFailure {
            step,
            errno: errno.raw_os_error(),
        }
    };
    if let Err(failure) = limit(orders, job).map_err(failed(StartStep::Limits)) {
        return failure;
    }
    if let Err(failure) = prepare(orders, job, pty, moved).map_err(failed(StartStep::Setup)) {
        return failure;
    }
    let cwd = rustix::process::chdir(command.cwd.as_slice());
    if let Err(failure) = cwd.map_err(failed(StartStep::Cwd)) {
        return failure;
    }
    failed(StartStep::Exec)(execute(command))
}

/// Applies the limits to this process.
fn limit(orders: &Orders, job: &Job<'_>) -> Result<(), Errno> {
    for door in &job.doors {
        rustix::io::write(door, b"0")?;
    }
    // RLIMIT_NPROC counts the tasks of the user; all but this process belong to others.
    let others = || sys::count_tasks().saturating_sub(1);
    let limits = [
        (Resource::Core, Some(0)),
        (Resource::Nofile, orders.nofile.map(u64::from)),
        (Resource::Fsize, orders.file_bytes),
        (Resource::Nproc, orders.pids_of_all.map(u64::from)),
        (
            Resource::Nproc,
            orders.pids.map(|pids| u64::from(pids) + others()),
        ),
    ];
    for (resource, most) in limits {
        if let Some(most) = most {
            bound(resource, most, most)?;
        }
    }
    if let Some(most) = orders.nofile_most.map(u64::from) {
        // A low soft limit for programs that loop over all descriptors; they can raise it.
        let soft = getrlimit(Resource::Nofile).current.unwrap_or(most);
        bound(Resource::Nofile, soft, most)?;
    }
    Ok(())
}

/// Sets a limit; a lower existing one is kept.
fn bound(resource: Resource, soft: u64, most: u64) -> Result<(), Errno> {
    let most = getrlimit(resource)
        .maximum
        .map_or(most, |hard| hard.min(most));
    let limit = Rlimit {
        current: Some(soft.min(most)),
        maximum: Some(most),
    };
    setrlimit(resource, limit)
}

/// Resets what was inherited from the supervisor.
fn prepare(orders: &Orders, job: &Job<'_>, pty: Option<&Pty>, moved: OwnedFd) -> Result<(), Errno> {
    for (number, fd) in (0..).zip(&job.stdio) {
        let fd = pty.map_or(fd, |pty| &pty.inner);
        sys::become_descriptor(fd.as_fd(), number)?;
    }
    setsid()?;
    pty.map_or(Ok(()), Pty::take_control)?;
    sys::reset_signals();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    sys::close_on_exec_from(3);
    job.fence.enter()?;
    job.mover
        .map_or(Ok(()), |mover| mover.serve_me(moved, orders.memory))
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
            // A file that may not be executed; another in PATH may follow.
            Errno::ACCESS => answer = Errno::ACCESS,
            errno => return errno,
        }
    }
    answer
}

/// Arguments and environment in the kernel's form.
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
        // A script without `#!`: run by the shell.
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
