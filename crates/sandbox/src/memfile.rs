//! Files in memory that have no name (`memfd_create`), where no control group counts memory.
//!
//! The kernel says nowhere how large they are, once nobody has them mapped or their descriptors are
//! under way in a socket. So the call is announced to the mover, which makes a nameless file in
//! `/dev/shm` instead: it can do the same but for seals, and is counted with the rest of that file
//! system.

use std::ffi::c_long;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::notify::{Listener, Notice};

/// The call that is announced.
pub(crate) const CALL: c_long = libc::SYS_memfd_create;

/// Where these files are.
const PLACE: &str = "/dev/shm";

/// Answers the call.
pub(crate) fn answer(listener: &Listener, notice: &Notice) {
    let flags = notice.arguments[1] as u32;
    let plain = libc::MFD_CLOEXEC | libc::MFD_EXEC | libc::MFD_NOEXEC_SEAL;
    if flags & !plain != 0 {
        // Programs that want seals or huge pages know kernels that have none of this.
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
