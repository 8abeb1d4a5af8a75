//! What is read of one open file of the host: its bytes, and its attributes.

use std::os::fd::{AsFd, OwnedFd};

use avfs_vault::XattrMap;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

/// Up to `length` bytes into `buffer`; fewer when the file has shrunk.
pub fn read_whole(fd: &OwnedFd, length: usize, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    buffer.clear();
    buffer.reserve(length);
    while buffer.len() < length {
        match rustix::io::read(fd, spare_capacity(buffer)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    buffer.truncate(length);
    Ok(())
}

/// The `user.*` attributes, without overlayfs's own, which mean nothing outside one.
pub fn user_xattrs(fd: impl AsFd) -> Result<XattrMap, Errno> {
    let mut xattrs = Vec::new();
    let mut names = Vec::with_capacity(1 << 10);
    loop {
        match rustix::fs::flistxattr(&fd, spare_capacity(&mut names)) {
            Ok(_) => break,
            Err(Errno::RANGE) => names = Vec::with_capacity(names.capacity() * 8),
            Err(Errno::NOTSUP) => return Ok(XattrMap::new()),
            Err(errno) => return Err(errno),
        }
    }
    for name in names.split(|&byte| byte == 0) {
        if !name.starts_with(b"user.") || name.starts_with(b"user.overlay.") {
            continue;
        }
        let length = rustix::fs::fgetxattr_query(&fd, name)?;
        // A size of 0 would ask for the length again.
        let mut value = Vec::with_capacity(length.max(1));
        rustix::fs::fgetxattr(&fd, name, spare_capacity(&mut value))?;
        xattrs.push((name, value));
    }
    Ok(xattrs.into_iter().collect())
}
