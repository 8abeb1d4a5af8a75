//! Seccomp notification: system calls of a command that wait for another process's answer.

use std::ffi::{c_int, c_long, c_ulong};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::anonymous;
use crate::memfile;
use crate::sys;

/// The calls of a command that are notified, besides those that could change the scheduling of our own processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notified {
    /// What an overlay mounted without root cannot do.
    pub names: bool,
    /// Memory that nothing counts.
    pub memory: bool,
}

/// Renames and links, and Landlock restrictions that this process would not know of.
#[cfg(target_arch = "x86_64")]
const NAMES: &[c_long] = &[
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_landlock_restrict_self,
];
#[cfg(not(target_arch = "x86_64"))]
const NAMES: &[c_long] = &[
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_landlock_restrict_self,
];

/// Calls that take a process by its id as the first argument.
pub(crate) const SCHEDULES: [c_long; 4] = [
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
];
/// Calls whose first argument selects the meaning of the second; this value selects a process.
pub(crate) const PRIORITIES: [(c_long, u32); 2] = [
    (libc::SYS_setpriority, libc::PRIO_PROCESS),
    // IOPRIO_WHO_PROCESS
    (libc::SYS_ioprio_set, 1),
];

/// The listener of the notified calls of one command and all its children.
pub(crate) struct Listener(OwnedFd);

/// A waiting call.
#[derive(Clone, Copy)]
pub(crate) struct Notice {
    pub id: u64,
    /// The calling thread.
    pub thread: i32,
    pub call: c_long,
    pub arguments: [u64; 6],
}

impl Listener {
    /// Puts this process and all its later children under notification, irrevocably.
    ///
    /// Foreign architectures and x32 numbers are refused by the other filter, which takes precedence.
    pub(crate) fn install(what: Notified) -> Result<Listener, Errno> {
        let mut program = program(what);
        let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // A signal must not interrupt a call that is being answered: Go sends one every 10 ms.
        let undisturbed = listening | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        match sys::add_seccomp_filter(&mut program, undisturbed) {
            // Linux before 5.19.
            Err(Errno::INVAL) => sys::add_seccomp_filter(&mut program, listening),
            done => done,
        }
        .map(Listener)
    }

    /// Wakes both sides on one processor: an answer takes a fifth of the time.
    pub(crate) fn hasten(&self) {
        // Linux before 6.6 does not have it, and is only slower.
        let _ = sys::notify_on_one_processor(self.as_fd());
    }

    /// The call that has waited longest. Call it only if the listener is readable.
    pub(crate) fn receive(&self) -> Result<Notice, Errno> {
        // SAFETY: all-zero bytes are a valid `seccomp_notif`, and the kernel wants them.
        let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        sys::notify_ioctl(self.as_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &mut notice)?;
        Ok(Notice {
            id: notice.id,
            thread: notice.pid.cast_signed(),
            call: c_long::from(notice.data.nr),
            arguments: notice.data.args,
        })
    }

    /// Whether the call still waits. If so, what was read of its pid before was of its caller.
    pub(crate) fn waits(&self, id: u64) -> bool {
        let mut id = id;
        sys::notify_ioctl(self.as_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).is_ok()
    }

    /// Lets the kernel execute the call.
    pub(crate) fn leave_to_kernel(&self, id: u64) {
        self.respond(id, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE);
    }

    /// Answers the call with this result.
    pub(crate) fn answer(&self, id: u64, result: Result<(), Errno>) {
        let error = result.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
        self.respond(id, error, 0);
    }

    /// Answers the call with a new descriptor in the caller.
    pub(crate) fn answer_with(
        &self,
        id: u64,
        file: &OwnedFd,
        close_on_exec: bool,
    ) -> Result<(), Errno> {
        let mut added = libc::seccomp_notif_addfd {
            id,
            flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
            srcfd: file.as_raw_fd().cast_unsigned(),
            newfd: 0,
            newfd_flags: if close_on_exec {
                libc::O_CLOEXEC.cast_unsigned()
            } else {
                0
            },
        };
        sys::notify_ioctl(self.as_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut added)
    }

    fn respond(&self, id: u64, error: c_int, flags: c_ulong) {
        let mut response = libc::seccomp_notif_resp {
            id,
            val: 0,
            error,
            flags: flags as u32,
        };
        // It fails if the caller was killed meanwhile.
        let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
        let _ = sys::notify_ioctl(self.as_fd(), request, &mut response);
    }
}

impl From<OwnedFd> for Listener {
    fn from(fd: OwnedFd) -> Listener {
        Listener(fd)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> c_int {
        self.0.as_raw_fd()
    }
}

/// A condition on the lower 32 bits of an argument: equal, not equal, or a bit set.
enum Condition {
    Is(u32, u32),
    IsNot(u32, u32),
    /// Has one of these bits.
    Has(u32, u32),
}

/// Notifies these calls, and allows the rest.
fn program(what: Notified) -> Vec<libc::sock_filter> {
    let mut program = Vec::new();
    for number in SCHEDULES {
        // Pid 0 means the caller itself.
        program.extend(notify(number, &[Condition::IsNot(0, 0)]));
    }
    for (number, process) in PRIORITIES {
        let conditions = [Condition::Is(0, process), Condition::IsNot(1, 0)];
        program.extend(notify(number, &conditions));
    }
    if what.memory {
        program.extend(notify(memfile::CALL, &[]));
        let shared = anonymous::FLAGS.map(|flag| Condition::Has(3, flag));
        program.extend(notify(anonymous::CALL, &shared));
    }
    if what.names {
        for number in NAMES {
            program.extend(notify(*number, &[]));
        }
    }
    program.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    program
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Notifies one call if all conditions hold; otherwise falls through.
fn notify(number: c_long, conditions: &[Condition]) -> Vec<libc::sock_filter> {
    // The first field of seccomp_data is the number; the arguments begin at byte 16, 8 bytes each.
    let low_half = if cfg!(target_endian = "big") { 4 } else { 0 };
    let argument = |index: u32| statement(LOAD, 16 + 8 * index + low_half);
    // Every test is two instructions; after the last one comes the verdict.
    let left = |done: usize| (2 * (conditions.len() - done) + 1) as u8;
    let mut block = vec![
        statement(LOAD, 0),
        libc::sock_filter {
            jf: left(0),
            ..statement(EQUAL, number as u32)
        },
    ];
    for (index, condition) in conditions.iter().enumerate() {
        let (load, test) = match condition {
            Condition::Is(index_of, value) => {
                let (jt, jf) = (0, left(index + 1));
                let test = statement(EQUAL, *value);
                (argument(*index_of), libc::sock_filter { jt, jf, ..test })
            }
            Condition::IsNot(index_of, value) => {
                let (jt, jf) = (left(index + 1), 0);
                let test = statement(EQUAL, *value);
                (argument(*index_of), libc::sock_filter { jt, jf, ..test })
            }
            Condition::Has(index_of, bits) => {
                let (jt, jf) = (0, left(index + 1));
                let test = statement(ANY_BIT, *bits);
                (argument(*index_of), libc::sock_filter { jt, jf, ..test })
            }
        };
        block.extend([load, test]);
    }
    block.push(statement(RETURN, libc::SECCOMP_RET_USER_NOTIF));
    block
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}
