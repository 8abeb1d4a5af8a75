//! System calls that our libraries do not offer, with interfaces as safe as possible.

use std::ffi::c_long;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::raw::c_int;
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;

/// Which side of a fork this is.
pub(crate) enum Forked {
    Parent { pid: Pid, pidfd: OwnedFd },
    Child,
}

/// Forks, with the new process in new namespaces as `flags` (CLONE_NEW*) say.
///
/// # Safety
/// The process must have one thread: the child inherits locks but not their owners.
pub(crate) unsafe fn fork(flags: c_int) -> Result<Forked, Errno> {
    let mut pidfd: c_int = -1;
    let flags = c_long::from(flags | libc::CLONE_PIDFD | libc::SIGCHLD);
    let none = ptr::null::<u8>();
    // SAFETY: without CLONE_VM and with no stack given this is a fork; the kernel writes one
    // c_int through the third argument, which outlives the call.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, &raw mut pidfd, none, none) };
    if pid == 0 {
        return Ok(Forked::Child);
    }
    let pid = check(pid)?;
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(Errno::OVERFLOW)?;
    // SAFETY: CLONE_PIDFD stored a new descriptor that nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Forked::Parent { pid, pidfd })
}

/// A change of a mount (mount_setattr).
#[derive(Default)]
pub(crate) struct MountChange<'a> {
    /// Attributes (MOUNT_ATTR_*) that are turned on.
    pub set: u64,
    /// Whether mounts below it stop showing in other namespaces, and theirs in it.
    pub private: bool,
    /// The user namespace of MOUNT_ATTR_IDMAP.
    pub users: Option<BorrowedFd<'a>>,
}

/// Changes a mount, and those below it if `recursive`.
pub(crate) fn change_mount(
    mount: BorrowedFd<'_>,
    change: &MountChange<'_>,
    recursive: bool,
) -> Result<(), Errno> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns: u64,
    }
    let change = MountAttr {
        set: change.set,
        clear: 0,
        propagation: if change.private { libc::MS_PRIVATE } else { 0 },
        userns: match change.users {
            // Descriptors are never negative.
            Some(users) => users.as_raw_fd() as u64,
            None => 0,
        },
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string and the struct is passed with its own size.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const change,
            size_of::<MountAttr>(),
        )
    };
    check(done).map(drop)
}

/// Makes the current directory the root (pivot_root), and unmounts the old root.
pub(crate) fn enter_root() -> Result<(), Errno> {
    let here = c".".as_ptr();
    // SAFETY: both arguments are C strings.
    check(unsafe { libc::syscall(libc::SYS_pivot_root, here, here) })?;
    rustix::mount::unmount(".", rustix::mount::UnmountFlags::DETACH)?;
    rustix::process::chdir("/")
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up() -> Result<(), Errno> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`.
    let done = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        )
    };
    check(c_long::from(done)).map(drop)
}

/// Sets the mark (SO_MARK) of a socket.
pub(crate) fn set_mark(socket: BorrowedFd<'_>, mark: u32) -> Result<(), Errno> {
    // SAFETY: the kernel reads one number of the given size.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MARK,
            (&raw const mark).cast(),
            size_of_val(&mark) as libc::socklen_t,
        )
    };
    check(c_long::from(done)).map(drop)
}

/// Whether a TCP socket is connected, though perhaps closed by the other side.
pub(crate) fn is_connected(socket: BorrowedFd<'_>) -> bool {
    const ESTABLISHED: u8 = 1;
    const CLOSE_WAIT: u8 = 8;
    // The first byte of `tcp_info` is the state; the kernel cuts the rest.
    let mut state = 0_u8;
    let mut length: libc::socklen_t = 1;
    // SAFETY: the kernel writes at most `length` bytes, to a live local of that size.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &raw mut length,
        )
    };
    done == 0 && length == 1 && (state == ESTABLISHED || state == CLOSE_WAIT)
}

/// Empties the capability bounding set.
pub(crate) fn empty_bounding_set() -> Result<(), Errno> {
    for capability in 0..64 {
        // SAFETY: an operation on numbers.
        let done = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        match check(c_long::from(done)) {
            Ok(_) => {}
            // One past the last that this kernel knows.
            Err(Errno::INVAL) if capability > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// The kernel's Landlock version; 0 if it has none or it is disabled.
pub(crate) fn landlock_abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no attribute and makes no descriptor.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// Enters a new Landlock domain with `ruleset`; `quietly` keeps refusals of this process itself out of the audit log.
pub(crate) fn enter_landlock_domain(ruleset: BorrowedFd<'_>, quietly: bool) -> Result<(), Errno> {
    const LOG_SAME_EXEC_OFF: u32 = 1;
    let flags = if quietly { LOG_SAME_EXEC_OFF } else { 0 };
    let ruleset = ruleset.as_raw_fd();
    // SAFETY: an operation on a descriptor.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, flags) }).map(drop)
}

/// Adds a seccomp filter that has a listener, and returns the listener.
pub(crate) fn add_seccomp_filter(
    program: &mut [libc::sock_filter],
    flags: libc::c_ulong,
) -> Result<OwnedFd, Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?,
        filter: program.as_mut_ptr(),
    };
    let set = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the kernel reads one `sock_fprog` and the instructions it points to.
    let fd = unsafe { libc::syscall(libc::SYS_seccomp, set, flags, &raw const program) };
    let fd = RawFd::try_from(check(fd)?).map_err(|_| Errno::BADF)?;
    // SAFETY: with SECCOMP_FILTER_FLAG_NEW_LISTENER, a new descriptor is returned.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One of the SECCOMP_IOCTL_NOTIF_* requests, with the argument it is defined for.
pub(crate) fn notify_ioctl<T>(
    listener: BorrowedFd<'_>,
    request: libc::Ioctl,
    argument: &mut T,
) -> Result<(), Errno> {
    // The size of the argument is part of a request's number.
    debug_assert_eq!(request as usize >> 16 & 0x3fff, size_of::<T>());
    // SAFETY: the argument is as large as the request says, and all its bytes may be written.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), request, ptr::from_mut(argument)) };
    check(c_long::from(done)).map(drop)
}

/// Makes a listener and its callers wake each other on one processor.
pub(crate) fn notify_on_one_processor(listener: BorrowedFd<'_>) -> Result<(), Errno> {
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    let request = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS;
    // SAFETY: whatever the request's number says, its argument is the flags themselves.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), request, SYNC_WAKE_UP) };
    check(c_long::from(done)).map(drop)
}

/// Copies from the memory of another process; returns how much could be read.
pub(crate) fn read_memory(thread: i32, from: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    const PAGE: usize = 4096;
    let here = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let start = usize::try_from(from).map_err(|_| Errno::FAULT)?;
    // What is before the end of a page is read even if the next page is not mapped.
    let head = buffer.len().min(PAGE - start % PAGE);
    let there = [
        (start, head),
        (start.wrapping_add(head), buffer.len() - head),
    ];
    let there = there.map(|(base, length)| libc::iovec {
        iov_base: ptr::without_provenance_mut(base),
        iov_len: length,
    });
    // SAFETY: the kernel writes into `buffer` only, which is as long as `here` says; the other
    // addresses are looked up in the other process.
    let read = unsafe { libc::process_vm_readv(thread, &raw const here, 1, there.as_ptr(), 2, 0) };
    let read = check(read as c_long)?;
    usize::try_from(read).map_err(|_| Errno::OVERFLOW)
}

/// Closes every descriptor but those in `kept`.
///
/// # Safety
/// Nothing that owns another descriptor may be used afterwards.
pub(crate) unsafe fn close_all_but(kept: &[RawFd]) {
    let mut kept: Vec<u32> = kept
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .collect();
    kept.sort_unstable();
    let mut next = 0;
    for fd in kept {
        if fd > next {
            close_range(next, fd - 1, 0);
        }
        next = next.max(fd + 1);
    }
    close_range(next, u32::MAX, 0);
}

/// Sets close-on-exec on every descriptor from `first` on.
pub(crate) fn close_on_exec_from(first: u32) {
    close_range(first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) {
    // SAFETY: closing descriptors touches no memory; the callers answer for their owners.
    // It cannot fail with an ordered range.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
}

/// Duplicates `fd` to descriptor `number`, without close-on-exec.
pub(crate) fn become_descriptor(fd: BorrowedFd<'_>, number: RawFd) -> Result<(), Errno> {
    let done = if fd.as_raw_fd() == number {
        // SAFETY: clearing a flag of an open descriptor.
        unsafe { libc::fcntl(number, libc::F_SETFD, 0) }
    } else {
        // SAFETY: the number is one of the fixed ones that no `OwnedFd` in this process owns.
        unsafe { libc::dup2(fd.as_raw_fd(), number) }
    };
    check(c_long::from(done)).map(drop)
}

/// Opens the null device as descriptors `numbers`.
pub(crate) fn null_descriptors(numbers: &[RawFd]) -> Result<(), Errno> {
    use rustix::fs::{Mode, OFlags, open};
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    numbers
        .iter()
        .try_for_each(|number| become_descriptor(std::os::fd::AsFd::as_fd(&null), *number))
}

/// Blocks SIGCHLD and returns a descriptor that is readable when a child has changed.
pub(crate) fn child_events() -> Result<OwnedFd, Errno> {
    // SAFETY: the set is initialised by sigemptyset before use; SIGCHLD is a valid signal.
    let fd = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    let fd = RawFd::try_from(check(c_long::from(fd))?).map_err(|_| Errno::BADF)?;
    // SAFETY: signalfd returned a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Discards pending notifications of [`child_events`]; `wait` tells the rest.
pub(crate) fn drain_child_events(events: BorrowedFd<'_>) {
    let mut record = [0_u8; size_of::<libc::signalfd_siginfo>()];
    while matches!(rustix::io::read(events, &mut record), Ok(read) if read > 0) {}
}

/// Ignores SIGCHLD, so that the kernel reaps children.
pub(crate) fn ignore_children() {
    // SAFETY: sets a disposition; no handler is installed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Unblocks all signals and resets them to default.
pub(crate) fn reset_signals() {
    // What the kernel takes for an action: handler, flags, restorer, mask, each one word.
    let default = [0_u64; 4];
    for signal in 1..=64 {
        // The C library hides its own two signals, which may have been inherited ignored.
        // SAFETY: the kernel reads one action of at most that size; asking for the default of
        // SIGKILL or SIGSTOP fails harmlessly.
        let _ = unsafe {
            let none = ptr::null_mut::<u64>();
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                none,
                8_usize,
            )
        };
    }
    // SAFETY: the set is initialised by sigemptyset before use.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Sends `signal` to every process that this one may signal, atomically.
pub(crate) fn signal_all_reachable(signal: c_int) {
    // SAFETY: sending a signal touches no memory. That there is nobody is no error here.
    let _ = unsafe { libc::kill(-1, signal) };
}

/// Sends `signal` to each of these processes; they may have ended.
pub(crate) fn signal_each(pids: &[i32], signal: c_int) {
    for pid in pids {
        // SAFETY: sending a signal touches no memory.
        let _ = unsafe { libc::kill(*pid, signal) };
    }
}

/// Every process in /proc.
pub(crate) fn process_ids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The number of threads of all processes in /proc.
pub(crate) fn count_tasks() -> u64 {
    let tasks =
        |pid: &i32| std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    process_ids().iter().map(|pid| tasks(pid) as u64).sum()
}

/// The state letter of a process, if it exists.
pub(crate) fn state_of(pid: i32) -> Option<u8> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.iter().rposition(|byte| *byte == b')')? + 2;
    stat.get(after).copied()
}

/// The parent of a process, if it exists.
pub(crate) fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; state and parent follow the last parenthesis.
    let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(&stat[after..]).ok()?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// Every descendant of this process in /proc.
pub(crate) fn descendants() -> Vec<i32> {
    let parents: Vec<(i32, i32)> = process_ids()
        .into_iter()
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect();
    let mut found = vec![rustix::process::getpid().as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(_, p)| *p == parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.split_off(1)
}

/// A child that has ended.
pub(crate) struct Ended {
    pub pid: i32,
    /// Its wait status.
    pub status: c_int,
    pub usage: libc::rusage,
}

/// The result of waiting for any child.
pub(crate) enum Waited {
    Ended(Box<Ended>),
    /// There are children; none has ended.
    None,
    NoChildren,
}

/// Returns a child that has ended; waits for one if `block`.
pub(crate) fn wait_any(block: bool) -> Waited {
    let options = libc::__WALL | if block { 0 } else { libc::WNOHANG };
    loop {
        let mut status = 0;
        // SAFETY: all-zero bytes are a valid `rusage`.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live locals of the right type.
        let pid = unsafe { libc::wait4(-1, &raw mut status, options, &raw mut usage) };
        match pid {
            0 => return Waited::None,
            pid if pid > 0 => return Waited::Ended(Box::new(Ended { pid, status, usage })),
            _ if Errno::from_io_error(&std::io::Error::last_os_error()) == Some(Errno::INTR) => {}
            _ => return Waited::NoChildren,
        }
    }
}

/// Exits without running exit handlers.
pub(crate) fn leave(code: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

fn check(result: c_long) -> Result<c_long, Errno> {
    if result >= 0 {
        return Ok(result);
    }
    let errno = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&errno).unwrap_or(Errno::IO))
}
