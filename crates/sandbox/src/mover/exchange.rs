//! RENAME_EXCHANGE by copying, where one of the names is a stored directory.
//!
//! Copies of both are made in the staging directory, and links there record their destinations. The last link is the
//! decision: before it, nothing has happened. If the sandbox ends after it, the commit of the layer uses the copies that are
//! left in staging as the content of the two names. So a crash leaves the old or the new state, however much of the old was
//! removed by then. After the decision, each name's directory is emptied and replaced by its copy, which other processes can see.
//!
//! If other processes prevent that, the exchange is undone. The record stays valid: it is first reversed, atomically,
//! so that it gives each name its own copy.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, linkat, mkdirat, readlinkat, renameat,
    renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::Left;
use super::caller::{Names, RenameEnd};
use super::staging::Workplace;
use super::tree::{self, DEPTH, ROUNDS, Rest};

/// The links that record the two names; the last one made is the decision.
pub const EXCHANGE_ENDS: [&CStr; 2] = [c"first", c"second"];
/// The copies for these names, in the same order.
pub const EXCHANGE_COPIES: [&CStr; 2] = [c"to-first", c"to-second"];

/// Exists once an exchange is being undone.
const BACK: &CStr = c"back";

/// Exchanges the two names, as renameat2(2) would, while `wanted` says so.
pub(super) fn exchange(
    names: &Names,
    work: &Workplace,
    wanted: &dyn Fn() -> bool,
) -> Result<(), Errno> {
    let Names {
        from: first,
        to: second,
    } = names;
    let (top, since) = (work.top.as_fd(), work.began()?);
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
    match done {
        Err(_) if take_back(names, work) == Left::Done => Ok(()),
        done => done,
    }
}

/// Undoes an exchange that was decided and cannot be finished; nothing if none was decided, or if it is complete.
pub(super) fn take_back(names: &Names, work: &Workplace) -> Left {
    let top = work.top.as_fd();
    let Names {
        from: first,
        to: second,
    } = names;
    let is_there = |name| statat(top, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let [to_first, to_second] = EXCHANGE_COPIES;
    if !EXCHANGE_ENDS.into_iter().all(is_there) {
        return Left::Undone;
    }
    if !is_there(to_first) && !is_there(to_second) && !is_there(BACK) {
        return Left::Done;
    }
    // If this process is killed too, the next worker then knows the direction.
    let _ = mkdirat(top, BACK, Mode::RWXU);
    // The caller gets an error. Further errors here are caused by processes that keep changing the same names, and that
    // could remove the content anyway.
    if is_there(to_first) {
        // Neither copy is in place, and only the first name can have lost anything.
        if renameat_with(top, to_first, top, to_second, RenameFlags::EXCHANGE).is_ok() {
            give_back(first, top, to_first);
        }
    } else if is_there(to_second) {
        let flags = RenameFlags::EXCHANGE;
        match renameat_with(top, to_second, &first.dir, &first.name, flags) {
            Ok(()) => give_back(second, top, to_second),
            Err(_) => give_back(first, top, to_second),
        }
    }
    let _ = unlinkat(top, EXCHANGE_ENDS[0], AtFlags::empty());
    Left::Undone
}

/// Puts back at `place` what is missing there of the copy `name`; if that fails, the copy is put next to it.
fn give_back(place: &RenameEnd, top: BorrowedFd<'_>, name: &CStr) {
    let flags = RenameFlags::NOREPLACE;
    if renameat_with(top, name, &place.dir, &place.name, flags).is_ok() {
        return;
    }
    let file = |dir, name| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|it| it.st_ino);
    if file(top, name) == file(place.dir.as_fd(), &place.name) {
        return;
    }
    let done = tree::with_all_readable(|| {
        let copy = tree::open_child(top, name, OFlags::DIRECTORY)?;
        let old = tree::open_for_removal(place.dir.as_fd(), &place.name)?;
        tree::fill_in(copy.as_fd(), old.as_fd(), DEPTH)
    });
    if done.is_ok() {
        return;
    }
    let shown = place.name.to_bytes();
    let shown = &shown[..shown.len().min(200)];
    for number in 0..ROUNDS {
        let beside = [shown, format!(".unexchanged-{number}").as_bytes()].concat();
        let Ok(beside) = CString::new(beside) else {
            return;
        };
        if renameat_with(top, name, &place.dir, &beside, flags) != Err(Errno::EXIST) {
            return;
        }
    }
}

/// Makes a copy of the name under another one. A single file is hard-linked.
fn duplicate(
    place: &RenameEnd,
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

/// Replaces the content of the place, which has been copied, by the copy `name`, and moves what was added since.
fn settle(
    place: &RenameEnd,
    top: BorrowedFd<'_>,
    name: &CStr,
    rest: Rest<'_>,
) -> Result<(), Errno> {
    for _ in 0..ROUNDS {
        match try_to_settle(place, top, name, rest) {
            // Another process has just put something else there.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {}
            done => return done,
        }
    }
    Err(Errno::BUSY)
}

fn try_to_settle(
    place: &RenameEnd,
    top: BorrowedFd<'_>,
    name: &CStr,
    rest: Rest<'_>,
) -> Result<(), Errno> {
    let arrive = || renameat(top, name, &place.dir, &place.name);
    let is_directory = |found| FileType::from_raw_mode(found).is_dir();
    let kind = |dir, name| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|it| it.st_mode);
    let comes_directory = is_directory(kind(top, name)?);
    let there = match kind(place.dir.as_fd(), &place.name) {
        Err(Errno::NOENT) => return arrive(),
        found => is_directory(found?),
    };
    match (there, comes_directory) {
        (true, true) => tree::empty(place.dir.as_fd(), &place.name, Some(rest), DEPTH, &arrive),
        (true, false) => {
            tree::remove(place.dir.as_fd(), &place.name, Some(rest))?;
            arrive()
        }
        (false, true) => {
            unlinkat(&place.dir, &place.name, AtFlags::empty())?;
            arrive()
        }
        (false, false) => arrive(),
    }
}

/// The absolute path of a name in the sandbox.
fn path_of(place: &RenameEnd) -> Result<Vec<u8>, Errno> {
    let link = format!("/proc/self/fd/{}", place.dir.as_raw_fd());
    let mut path = readlinkat(CWD, link, Vec::new())?.into_bytes();
    if path != b"/" {
        path.push(b'/');
    }
    path.extend(place.name.to_bytes());
    Ok(path)
}
