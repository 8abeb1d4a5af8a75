//! Seccomp notification: system calls of a command that wait for another process's answer.

use std::ffi::{c_int, c_long, c_ulong};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::anonymous;
use crate::memfile;
use crate::sys;

/// What a command asks for before the kernel does it, besides what could change how our own
/// processes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notified {
    /// What an overlay mounted without root cannot do by itself.
    pub names: bool,
    /// Memory that nothing counts.
    pub memory: bool,
}

/// Names that are moved or added, and restrictions that this process would not know of.
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
/// Calls whose first argument says what the second one names: this value, a process.
pub(crate) const PRIORITIES: [(c_long, u32); 2] = [
    (libc::SYS_setpriority, libc::PRIO_PROCESS),
    // IOPRIO_WHO_PROCESS
    (libc::SYS_ioprio_set, 1),
];

/// The end at which the notified calls of one command, and of all that it starts, arrive.
pub(crate) struct Listener(OwnedFd);

/// A call that waits.
#[derive(Clone, Copy)]
pub(crate) struct Notice {
    pub id: u64,
    /// The calling thread.
    pub thread: i32,
    pub call: c_long,
    pub arguments: [u64; 6],
}

impl Listener {
    /// Puts this process and all it will start under notification, for good.
    ///
    /// Foreign architectures and x32 numbers are refused by the other filter, whose verdicts
    /// go before this one's.
    pub(crate) fn install(what: Notified) -> Result<Listener, Errno> {
        let mut program = program(what);
        let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // A signal must not break a call off that is half answered: Go sends one every 10 ms.
        let undisturbed = listening | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        match sys::add_seccomp_filter(&mut program, undisturbed) {
            // Linux before 5.19.
            Err(Errno::INVAL) => sys::add_seccomp_filter(&mut program, listening),
            done => done,
        }
        .map(Listener)
    }

    /// Wakes both sides on one processor from now on: a fifth of the time for an answer.
    pub(crate) fn hasten(&self) {
        // Linux before 6.6 does not know it, and is only slower.
        let _ = sys::notify_on_one_processor(self.as_fd());
    }

    /// The call that waits longest. Only to be asked for when the listener is readable.
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

    /// Whether the call still waits, and so whether what was seen of its caller was its own.
    pub(crate) fn waits(&self, id: u64) -> bool {
        let mut id = id;
        sys::notify_ioctl(self.as_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).is_ok()
    }

    /// Lets the kernel carry the call out as if nobody had been asked.
    pub(crate) fn leave_to_kernel(&self, id: u64) {
        self.respond(id, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE);
    }

    /// Ends the call with this result.
    pub(crate) fn answer(&self, id: u64, result: Result<(), Errno>) {
        let error = result.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
        self.respond(id, error, 0);
    }

    /// Ends the call with a new descriptor of the caller's.
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
        // It fails when the caller has been killed meanwhile, who then needs no answer.
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

/// Whether an argument, of which 32 bits count, is to be this value or not, or to have a bit.
enum Condition {
    Is(u32, u32),
    IsNot(u32, u32),
    /// Has one of these bits.
    Has(u32, u32),
}

/// Notifies of these calls, and allows the rest.
fn program(what: Notified) -> Vec<libc::sock_filter> {
    let mut program = Vec::new();
    for number in SCHEDULES {
        // A process that names nobody means itself.
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

/// Notifies of one call if all conditions hold; whatever follows decides otherwise.
fn notify(number: c_long, conditions: &[Condition]) -> Vec<libc::sock_filter> {
    // The first field of seccomp_data is the number; the arguments begin at byte 16, 8 bytes each.
    let low_half = if cfg!(target_endian = "big") { 4 } else { 0 };
    let argument = |index: u32| statement(LOAD, 16 + 8 * index + low_half);
    // Every test is two instructions, and after the last one comes the verdict.
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
