//! The protocol against a kernel simulated by the test, message by message.
//!
//! The tests of the views use real mounts.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rustix::fs::{FileType, RenameFlags, Timespec, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::answer::{Answer, answer};
use crate::request::Request;
use crate::wire::{self, InHeader, InitIn, InitOut, OutHeader, opcode};
use crate::{
    Caller, Features, FileAttr, FileHandle, Filesystem, Fill, Io, Listing, ListingPlus, Name,
    NewAttributes, Session, Settings, WriteFlags,
};

const SETTINGS: Settings = Settings {
    features: Features::ASYNC_READ.union(Features::READDIRPLUS),
    max_write: 64 << 10,
    max_background: 16,
    threads: 2,
    name: "tested",
};

const LONGEST_LISTING: u64 = 1000;

/// Answers with what it was asked, and remembers the last of it.
#[derive(Default)]
struct Echo {
    forgotten: AtomicU64,
    asked: Mutex<Vec<String>>,
}

impl Echo {
    fn note(&self, asked: String) {
        self.asked
            .lock()
            .expect("no test panics with it")
            .push(asked);
    }

    fn last(&self) -> String {
        let asked = self.asked.lock().expect("no test panics with it");
        asked.last().cloned().unwrap_or_default()
    }
}

fn attr(number: u64) -> FileAttr {
    let time = |tv_sec| Timespec { tv_sec, tv_nsec: 7 };
    FileAttr {
        number,
        kind: FileType::RegularFile,
        mode: 0o640,
        size: 10,
        blocks: 1,
        atime: time(-5),
        mtime: time(6),
        ctime: time(8),
        links: 3,
        uid: 1,
        gid: 2,
        device: 0,
    }
}

impl Filesystem for Echo {
    fn lookup(&self, name: Name<'_>) -> Io<Option<FileAttr>> {
        match name.name {
            b"panic" => panic!("a fault on purpose"),
            b"missing" => Ok(None),
            _ => Ok(Some(attr(name.parent.wrapping_add(1)))),
        }
    }

    fn forget(&self, node: u64, times: u64) {
        self.forgotten
            .fetch_add(node.wrapping_mul(times), Ordering::SeqCst);
    }

    fn getattr(&self, node: u64) -> Io<FileAttr> {
        Ok(attr(node))
    }

    fn setattr(
        &self,
        caller: Caller,
        node: u64,
        handle: Option<FileHandle>,
        new: &NewAttributes,
    ) -> Io<FileAttr> {
        self.note(format!("{caller:?} {handle:?} {new:?}"));
        Ok(attr(node))
    }

    fn symlink(&self, _caller: Caller, name: Name<'_>, target: &[u8]) -> Io<FileAttr> {
        self.note(format!("{name:?} {target:?}"));
        Ok(attr(9))
    }

    fn rename(&self, old: Name<'_>, new: Name<'_>, flags: RenameFlags) -> Io<()> {
        self.note(format!("{old:?} {new:?} {flags:?}"));
        Ok(())
    }

    fn tmpfile(
        &self,
        caller: Caller,
        directory: u64,
        mode: u32,
        flags: u32,
    ) -> Io<(FileAttr, FileHandle)> {
        self.note(format!("{caller:?} {directory} {mode:o} {flags:o}"));
        Ok((attr(50), FileHandle(51)))
    }

    fn write(&self, handle: FileHandle, offset: u64, data: &[u8], flags: WriteFlags) -> Io<u32> {
        self.note(format!("{handle:?} {offset} {data:?} {flags:?}"));
        Ok(data.len() as u32)
    }

    fn copy_file_range(
        &self,
        _from: (FileHandle, u64),
        _to: (FileHandle, u64),
        length: u64,
    ) -> Io<u64> {
        Ok(length)
    }

    fn getxattr(&self, _node: u64, name: &[u8]) -> Io<Vec<u8>> {
        Ok(name.to_vec())
    }

    fn readdir(&self, _node: u64, _handle: FileHandle, after: u64, into: &mut Listing) -> Io<()> {
        for position in (1..=LONGEST_LISTING).map(|next| after.saturating_add(next)) {
            let name = vec![b'n'; position.min(8) as usize];
            if into.add(position, &name, position, FileType::Fifo) == Fill::Full {
                break;
            }
        }
        Ok(())
    }

    fn readdirplus(
        &self,
        _node: u64,
        _handle: FileHandle,
        after: u64,
        into: &mut ListingPlus,
    ) -> Io<()> {
        for position in (1..=LONGEST_LISTING).map(|next| after.saturating_add(next)) {
            if into.add(position, b"name", &attr(77)) == Fill::Full {
                break;
            }
        }
        Ok(())
    }
}

fn message(opcode: u32, node: u64, parts: &[&[u8]]) -> Vec<u8> {
    let length = size_of::<InHeader>() + parts.iter().map(|part| part.len()).sum::<usize>();
    let header = InHeader {
        len: length as u32,
        opcode,
        unique: 42,
        node,
        uid: 1000,
        gid: 100,
        pid: 1,
        extensions: 0,
        padding: 0,
    };
    [&[header.as_bytes()], parts].concat().concat()
}

fn ask(filesystem: &Echo, opcode: u32, node: u64, parts: &[&[u8]]) -> Io<Vec<u8>> {
    let message = message(opcode, node, parts);
    match answer(filesystem, Request::parse(&message)?) {
        Answer::Awaited(outcome) => outcome,
        Answer::NotAwaited => Ok(b"nothing".to_vec()),
    }
}

fn read_as<T: FromBytes + KnownLayout + Immutable>(bytes: &[u8]) -> T {
    let read = T::read_from_bytes(bytes);
    read.unwrap_or_else(|_| panic!("{} bytes are not one", bytes.len()))
}

#[test]
fn structures_have_the_sizes_of_the_kernels() {
    assert_eq!(size_of::<InHeader>(), 40);
    assert_eq!(size_of::<OutHeader>(), 16);
    assert_eq!(size_of::<InitOut>(), 64);
    assert_eq!(size_of::<wire::Attr>(), 88);
    assert_eq!(size_of::<wire::EntryOut>(), 128);
    assert_eq!(size_of::<wire::AttrOut>(), 104);
    assert_eq!(size_of::<wire::SetAttrIn>(), 88);
    assert_eq!(size_of::<wire::ReadIn>(), 40);
    assert_eq!(size_of::<wire::WriteIn>(), 40);
    assert_eq!(size_of::<wire::StatfsOut>(), 80);
    assert_eq!(size_of::<wire::OpenOut>(), 16);
    assert_eq!(size_of::<wire::CopyFileRangeIn>(), 56);
    assert_eq!(size_of::<wire::DirEntry>(), 24);
}

#[test]
fn a_nameless_file_is_asked_for_as_a_new_one_is() {
    let echo = Echo::default();
    let asked = wire::CreateIn {
        flags: 0o20200002,
        mode: 0o100640,
        umask: 0o22,
        open_flags: 0,
    };
    let answered = ask(&echo, opcode::TMPFILE, 5, &[asked.as_bytes(), b"/\0"]).unwrap();
    assert_eq!(
        echo.last(),
        "Caller { uid: 1000, gid: 100 } 5 100640 20200002"
    );
    let (entry, open) = answered.split_at(size_of::<wire::EntryOut>());
    let entry: wire::EntryOut = read_as(entry);
    assert_eq!((entry.node, entry.attr.mode), (50, 0o100640));
    assert_eq!((entry.attr.atime, entry.attr.links), (-5, 3));
    assert_eq!(read_as::<wire::OpenOut>(open).handle, 51);
}

#[test]
fn a_missing_name_is_an_answer_that_lasts() {
    let echo = Echo::default();
    let answered = ask(&echo, opcode::LOOKUP, 3, &[b"missing\0"]).unwrap();
    let entry: wire::EntryOut = read_as(&answered);
    assert_eq!(entry.node, 0);
    assert!(entry.entry_valid > 1_000_000);
    let answered = ask(&echo, opcode::LOOKUP, 3, &[b"there\0"]).unwrap();
    assert_eq!(read_as::<wire::EntryOut>(&answered).node, 4);
}

#[test]
fn attributes_that_were_not_asked_for_stay() {
    let echo = Echo::default();
    let mut asked = wire::SetAttrIn::new_zeroed();
    asked.valid = wire::valid::MODE | wire::valid::MTIME | wire::valid::ATIME_NOW;
    (asked.mode, asked.mtime, asked.mtime_nanos) = (0o755, -3, 4);
    ask(&echo, opcode::SETATTR, 1, &[asked.as_bytes()]).unwrap();
    let said = echo.last();
    assert!(
        said.contains("mode: Some(493), uid: None, gid: None, size: None"),
        "{said}"
    );
    assert!(said.contains(&format!("tv_nsec: {UTIME_OMIT}")), "{said}");
    assert!(said.contains("tv_sec: -3, tv_nsec: 4"), "{said}");
    asked.valid |= wire::valid::ATIME | wire::valid::SIZE | wire::valid::HANDLE;
    ask(&echo, opcode::SETATTR, 1, &[asked.as_bytes()]).unwrap();
    let said = echo.last();
    assert!(said.contains(&format!("tv_nsec: {UTIME_NOW}")), "{said}");
    assert!(said.contains("Some(FileHandle(0))") && said.contains("size: Some(0)"));
    asked.valid = wire::valid::UID;
    ask(&echo, opcode::SETATTR, 1, &[asked.as_bytes()]).unwrap();
    assert!(echo.last().contains("times: None"));
}

#[test]
fn both_renames_and_a_link_to_somewhere_are_read_in_order() {
    let echo = Echo::default();
    let asked = wire::Rename2In {
        directory: 8,
        flags: 1,
        padding: 0,
    };
    ask(
        &echo,
        opcode::RENAME2,
        7,
        &[asked.as_bytes(), b"old\0new\0"],
    )
    .unwrap();
    let said = echo.last();
    assert!(said.contains("parent: 7, name: [111, 108, 100]"), "{said}");
    assert!(said.contains("parent: 8, name: [110, 101, 119]"), "{said}");
    assert!(said.contains("NOREPLACE"), "{said}");
    let asked = wire::RenameIn { directory: 9 };
    ask(&echo, opcode::RENAME, 7, &[asked.as_bytes(), b"old\0new\0"]).unwrap();
    assert!(echo.last().contains("parent: 9"));
    ask(&echo, opcode::SYMLINK, 7, &[b"n\0../x/y\0"]).unwrap();
    assert!(echo.last().contains(&format!("{:?}", b"../x/y")));
}

#[test]
fn a_value_is_given_or_measured_or_too_long() {
    let echo = Echo::default();
    let ask = |size: u32| {
        let asked = wire::GetXattrIn { size, padding: 0 };
        ask(&echo, opcode::GETXATTR, 1, &[asked.as_bytes(), b"user.x\0"])
    };
    assert_eq!(read_as::<wire::GetXattrOut>(&ask(0).unwrap()).size, 6);
    assert_eq!(ask(6).unwrap(), b"user.x");
    assert_eq!(ask(5), Err(Errno::RANGE));
}

#[test]
fn a_listing_ends_where_it_is_full_and_goes_on_there() {
    let echo = Echo::default();
    let mut asked = wire::ReadIn::new_zeroed();
    asked.size = 100;
    let first = ask(&echo, opcode::READDIR, 1, &[asked.as_bytes()]).unwrap();
    assert_eq!(first.len(), 96, "three names of up to eight bytes");
    let (entry, rest) = wire::DirEntry::read_from_prefix(&first).unwrap();
    assert_eq!((entry.position, entry.name_len), (1, 1));
    // What `readdir` calls a FIFO.
    assert_eq!(entry.kind, 1);
    assert_eq!(&rest[..8], b"n\0\0\0\0\0\0\0");
    asked.offset = 3;
    let next = ask(&echo, opcode::READDIR, 1, &[asked.as_bytes()]).unwrap();
    let (entry, _) = wire::DirEntry::read_from_prefix(&next).unwrap();
    assert_eq!(entry.position, 4);
    asked.size = 500;
    let plus = ask(&echo, opcode::READDIRPLUS, 1, &[asked.as_bytes()]).unwrap();
    assert_eq!(plus.len(), 3 * (128 + 24 + 8));
}

#[test]
fn the_older_copy_never_says_more_than_its_answer_holds() {
    let echo = Echo::default();
    let mut asked = wire::CopyFileRangeIn::new_zeroed();
    asked.length = 1 << 40;
    let old = ask(&echo, opcode::COPY_FILE_RANGE, 1, &[asked.as_bytes()]).unwrap();
    assert_eq!(read_as::<wire::WriteOut>(&old).size, 0xffff_f000);
    let new = ask(&echo, opcode::COPY_FILE_RANGE_64, 1, &[asked.as_bytes()]).unwrap();
    assert_eq!(read_as::<wire::CopyFileRangeOut>(&new).copied, 1 << 40);
}

#[test]
fn what_is_forgotten_is_not_answered() {
    let echo = Echo::default();
    let one = wire::ForgetIn { times: 3 };
    let said = ask(&echo, opcode::FORGET, 10, &[one.as_bytes()]).unwrap();
    assert_eq!(said, b"nothing");
    let count = wire::BatchForgetIn {
        count: 2,
        padding: 0,
    };
    let node = |node, times| wire::ForgetOne { node, times };
    let (first, second) = (node(100, 1), node(1000, 2));
    let parts = [count.as_bytes(), first.as_bytes(), second.as_bytes()];
    ask(&echo, opcode::BATCH_FORGET, 0, &parts).unwrap();
    assert_eq!(echo.forgotten.load(Ordering::SeqCst), 30 + 100 + 2000);
}

#[test]
fn what_is_not_known_or_does_not_fit_is_refused() {
    let echo = Echo::default();
    assert_eq!(ask(&echo, 52, 1, &[]), Err(Errno::NOSYS));
    assert_eq!(ask(&echo, opcode::READLINK, 1, &[]), Err(Errno::NOSYS));
    let names: [&[u8]; 4] = [b"", b"no end", b"\0", b"a/b\0"];
    for name in names {
        assert_eq!(ask(&echo, opcode::LOOKUP, 1, &[name]), Err(Errno::PROTO));
    }
    let mut asked = wire::WriteIn::new_zeroed();
    asked.size = 5;
    let short = ask(&echo, opcode::WRITE, 1, &[asked.as_bytes(), b"four"]);
    assert_eq!(short, Err(Errno::PROTO));
    let mut cut = message(opcode::GETATTR, 1, &[]);
    cut.push(0);
    assert_eq!(Request::parse(&cut).unwrap_err(), Errno::PROTO);
    assert_eq!(Request::parse(&cut[..39]).unwrap_err(), Errno::PROTO);
}

proptest! {
    #[test]
    fn no_message_is_the_end(opcode in 0u32..60, node: u64, rest: Vec<u8>) {
        let _ = ask(&Echo::default(), opcode, node, &[&rest]);
    }
}

/// The kernel's side of a session.
struct Kernel(OwnedFd);

impl Kernel {
    /// A device that has a first question.
    fn with_init(init: InitIn) -> (Kernel, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (kernel, fuse) = pair.unwrap();
        let kernel = Kernel(kernel);
        kernel.say(&message(opcode::INIT, 0, &[init.as_bytes(), &[0; 48]]));
        (kernel, fuse)
    }

    fn say(&self, message: &[u8]) {
        assert_eq!(rustix::io::write(&self.0, message), Ok(message.len()));
    }

    fn hear(&self) -> (OutHeader, Vec<u8>) {
        let mut bytes = vec![0; 1 << 17];
        let length = rustix::io::read(&self.0, &mut bytes).unwrap();
        bytes.truncate(length);
        let (header, rest) = OutHeader::read_from_prefix(&bytes).unwrap();
        assert_eq!(header.len as usize, length);
        (header, rest.to_vec())
    }
}

fn init(major: u32, minor: u32) -> InitIn {
    InitIn {
        major,
        minor,
        max_readahead: 128 << 10,
        flags: Features::READDIRPLUS.bits() | 1 << 30,
    }
}

#[test]
fn only_what_both_sides_know_is_agreed_on() {
    let (kernel, fuse) = Kernel::with_init(init(7, 34));
    let session = Session::serve(fuse, Echo::default(), SETTINGS).unwrap();
    let (header, terms) = kernel.hear();
    assert_eq!((header.error, header.unique), (0, 42));
    let terms: InitOut = read_as(&terms);
    assert_eq!((terms.major, terms.minor), (7, 34));
    assert_eq!(terms.flags, Features::READDIRPLUS.bits());
    assert_eq!(
        (terms.max_readahead, terms.max_write),
        (128 << 10, 64 << 10)
    );
    assert!(session.is_alive());
}

#[test]
fn a_newer_kernel_is_asked_to_say_it_in_our_words_and_a_far_older_one_refused() {
    let (kernel, fuse) = Kernel::with_init(init(8, 1));
    kernel.say(&message(opcode::INIT, 0, &[init(7, 99).as_bytes()]));
    Session::serve(fuse, Echo::default(), SETTINGS).unwrap();
    assert_eq!(read_as::<InitOut>(&kernel.hear().1).major, 7);
    assert_eq!(read_as::<InitOut>(&kernel.hear().1).minor, wire::MINOR);

    let (kernel, fuse) = Kernel::with_init(init(7, 12));
    let refused = Session::serve(fuse, Echo::default(), SETTINGS).unwrap_err();
    assert!(refused.to_string().contains("7.12"), "{refused}");
    assert_eq!(kernel.hear().0.error, -Errno::PROTO.raw_os_error());
}

#[test]
fn a_mount_that_is_gone_or_served_already_is_told_apart() {
    let (kernel, fuse) = Kernel::with_init(init(7, 40));
    let mut message = [0; 256];
    rustix::io::read(&fuse, &mut message).unwrap();
    drop(kernel);
    let refused = Session::serve(fuse, Echo::default(), SETTINGS).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::NotConnected);
}

#[test]
fn a_fault_in_one_answer_is_an_error_to_whoever_asked_and_the_rest_goes_on() {
    let (kernel, fuse) = Kernel::with_init(init(7, 40));
    let session = Session::serve(fuse, Echo::default(), SETTINGS).unwrap();
    kernel.hear();
    for _ in 0..5 {
        kernel.say(&message(opcode::LOOKUP, 1, &[b"panic\0"]));
        assert_eq!(kernel.hear().0.error, -Errno::IO.raw_os_error());
    }
    kernel.say(&message(opcode::GETATTR, 9, &[&[0; 16]]));
    let (header, answered) = kernel.hear();
    assert_eq!(header.error, 0);
    assert_eq!(read_as::<wire::AttrOut>(&answered).attr.number, 9);
    assert!(session.is_alive());
}

#[test]
fn what_changed_is_told_and_the_end_of_the_mount_ends_the_threads() {
    let (kernel, fuse) = Kernel::with_init(init(7, 40));
    let session = Session::serve(fuse, Echo::default(), SETTINGS).unwrap();
    kernel.hear();
    let notifier = session.notifier();
    notifier.forget_name(5, b"name");
    let (header, said) = kernel.hear();
    assert_eq!((header.unique, header.error), (0, 3));
    assert_eq!(
        said,
        [&5u64.to_ne_bytes()[..], &4u64.to_ne_bytes(), b"name\0"].concat()
    );
    notifier.forget_attributes(6);
    let (header, said) = kernel.hear();
    assert_eq!((header.unique, header.error), (0, 2));
    assert_eq!(read_as::<wire::ForgetInode>(&said).offset, -1);
    notifier.forget_data(6);
    assert_eq!(read_as::<wire::ForgetInode>(&kernel.hear().1).offset, 0);
    // Messages without a header are nobody's.
    kernel.say(b"short");
    drop(kernel);
    let patience = Instant::now() + Duration::from_secs(20);
    while session.is_alive() {
        assert!(Instant::now() < patience, "a thread did not end");
        std::thread::sleep(Duration::from_millis(2));
    }
    notifier.forget_data(6);
}
