//! Two names exchanged by copying, where one is a stored directory's.
//!
//! Copies of both get ready in a temporary directory, which also notes, by links, where they belong. Its last
//! link decides: before it, nothing has happened. After it, whoever looks at the layer takes the copies that are
//! left there for what the two names are, so a crash leaves the old or the new, however much of the old was
//! removed by then. Then each name's directory is emptied and replaced by its copy, which others may watch.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, linkat, mkdirat, readlinkat, renameat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use super::caller::Place;
use super::tree::{self, DEPTH, Rest, Temporary};
use crate::sys;

/// The links that note the two names; the last one made decides.
pub const EXCHANGE_ENDS: [&CStr; 2] = [c"first", c"second"];
/// What the names will mean, in the same order.
pub const EXCHANGE_COPIES: [&CStr; 2] = [c"to-first", c"to-second"];

/// How a copy that must not be given up ends when it cannot be finished. The sandbox ends with it, and what the
/// layer says is put together without it.
pub(super) const HALF_DONE: i32 = 3;

/// Exchanges what the two names mean, as renameat2(2) would, unless it ceases to be `wanted`.
pub(super) fn exchange(
    first: &Place,
    second: &Place,
    wanted: &dyn Fn() -> bool,
) -> Result<(), Errno> {
    let temporary = Temporary::make(second.dir.as_fd())?;
    let (top, since) = (temporary.top.as_fd(), temporary.began()?);
    let [to_first, to_second] = EXCHANGE_COPIES;
    tree::with_all_readable(|| {
        duplicate(first, top, to_second, wanted)?;
        duplicate(second, top, to_first, wanted)
    })?;
    let copy_of_first = tree::open_child(top, to_second, OFlags::PATH)?;
    let copy_of_second = tree::open_child(top, to_first, OFlags::PATH)?;
    for (end, place) in EXCHANGE_ENDS.iter().zip([first, second]).rev() {
        symlinkat(path_of(place)?, top, *end)?;
    }
    let rest = |new| Rest { new, since };
    let done = settle(first, top, to_first, rest(copy_of_first.as_fd()))
        .and_then(|()| settle(second, top, to_second, rest(copy_of_second.as_fd())));
    if done.is_err() {
        sys::leave(HALF_DONE);
    }
    done
}

/// Makes what the name means ready under another one. A single file is the same file there.
fn duplicate(
    place: &Place,
    top: BorrowedFd<'_>,
    name: &CStr,
    wanted: &dyn Fn() -> bool,
) -> Result<(), Errno> {
    if !place.is_directory() {
        return linkat(&place.dir, &place.name, top, name, AtFlags::empty());
    }
    mkdirat(top, name, Mode::RWXU)?;
    let copy = tree::open_child(top, name, OFlags::DIRECTORY)?;
    tree::copy(place, copy.as_fd(), wanted)
}

/// Puts the copy `name` in the place of what is there, all of which has been copied but for the rest.
fn settle(place: &Place, top: BorrowedFd<'_>, name: &CStr, rest: Rest<'_>) -> Result<(), Errno> {
    let arrive = || renameat(top, name, &place.dir, &place.name);
    let found = statat(top, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let comes_directory = FileType::from_raw_mode(found.st_mode).is_dir();
    match (place.is_directory(), comes_directory) {
        (true, true) => tree::empty(place.dir.as_fd(), &place.name, Some(rest), DEPTH, &arrive),
        (true, false) => {
            tree::remove(place.dir.as_fd(), &place.name, Some(rest))?;
            arrive()
        }
        (false, _) => {
            unlinkat(&place.dir, &place.name, AtFlags::empty())?;
            arrive()
        }
    }
}

/// The whole path of a name, as everybody in the sandbox sees it.
fn path_of(place: &Place) -> Result<Vec<u8>, Errno> {
    let link = format!("/proc/self/fd/{}", place.dir.as_raw_fd());
    let mut path = readlinkat(CWD, link, Vec::new())?.into_bytes();
    if path != b"/" {
        path.push(b'/');
    }
    path.extend(place.name.to_bytes());
    Ok(path)
}
