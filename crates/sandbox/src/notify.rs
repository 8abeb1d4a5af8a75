//! Seccomp notification: system calls of a command that wait for another process's answer.

use std::ffi::{c_int, c_long, c_ulong};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::sys;

/// What a command asks for before the kernel does it.
#[cfg(target_arch = "x86_64")]
const NOTIFIED: &[c_long] = &[
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_landlock_restrict_self,
];
#[cfg(not(target_arch = "x86_64"))]
const NOTIFIED: &[c_long] = &[
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_landlock_restrict_self,
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
    pub(crate) fn install() -> Result<Listener, Errno> {
        let mut program = program();
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

/// Notifies of the calls above, and allows the rest.
fn program() -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    // The first field of seccomp_data is the number.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for (done, number) in NOTIFIED.iter().enumerate() {
        program.push(libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            // Over the other comparisons and the permission.
            jt: (NOTIFIED.len() - done) as u8,
            jf: 0,
            k: *number as u32,
        });
    }
    let give = |verdict| statement(libc::BPF_RET | libc::BPF_K, verdict);
    program.push(give(libc::SECCOMP_RET_ALLOW));
    program.push(give(libc::SECCOMP_RET_USER_NOTIF));
    program
}
