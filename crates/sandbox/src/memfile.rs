//! `memfd_create` files, where no control group counts memory.
//!
//! The kernel does not tell their size once they are unmapped or their descriptors are in transit in a socket. So
//! seccomp notifies the mover of the call. The mover makes a nameless file in `/dev/shm` instead, which works the
//! same except for seals, and is counted with the rest of that file system.

use std::ffi::c_long;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::notify::{Listener, Notice};

/// The call to be notified of.
pub(crate) const CALL: c_long = libc::SYS_memfd_create;

/// Where the replacement files are.
const PLACE: &str = "/dev/shm";

/// Answers the call.
pub(crate) fn answer(listener: &Listener, notice: &Notice) {
    let flags = notice.arguments[1] as u32;
    let plain = libc::MFD_CLOEXEC | libc::MFD_EXEC | libc::MFD_NOEXEC_SEAL;
    if flags & !plain != 0 {
        // Programs that want seals or huge pages can cope with kernels that lack the call.
        return listener.answer(notice.id, Err(Errno::NOSYS));
    }
    let executable = flags & libc::MFD_NOEXEC_SEAL == 0;
    let mode = Mode::from_raw_mode(if executable { 0o777 } else { 0o666 });
    let made = open(
        PLACE,
        OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
        mode,
    );
    let given = made.and_then(|file| {
        let close_on_exec = flags & libc::MFD_CLOEXEC != 0;
        listener.answer_with(notice.id, &file, close_on_exec)
    });
    if let Err(errno) = given {
        listener.answer(notice.id, Err(errno));
    }
}
