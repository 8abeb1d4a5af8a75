//! Memory that no process has mapped: an attack on the memory limit.

use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

/// The ways to allocate it.
pub const HIDING: [&str; 2] = ["file", "segment"];

const MIB: usize = 1 << 20;

/// Allocates memory in one of the [`HIDING`] ways, one megabyte at a time; false when no more can be had.
pub fn hide(way: &str, megabytes: usize) -> bool {
    let block = vec![1_u8; MIB];
    let mut file = None;
    for _ in 0..megabytes {
        let taken = match way {
            "segment" => fill_segment(),
            _ => {
                let file = file.get_or_insert_with(nameless_file);
                file.as_mut()
                    .is_some_and(|file| file.write_all(&block).is_ok())
            }
        };
        if !taken {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_secs(1));
    true
}

fn nameless_file() -> Option<std::fs::File> {
    // SAFETY: makes a descriptor, or does not.
    let fd = unsafe { libc::memfd_create(c"hidden".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the descriptor is new.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

fn fill_segment() -> bool {
    // SAFETY: the segment is as large as what is written to it.
    unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, MIB, 0o600 | libc::IPC_CREAT);
        let at = libc::shmat(id, std::ptr::null(), 0);
        if id < 0 || at as isize == -1 {
            return false;
        }
        at.cast::<u8>().write_bytes(1, MIB);
        libc::shmdt(at) == 0
    }
}
