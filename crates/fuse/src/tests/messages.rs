//! One message, and the answer to it.

use std::sync::atomic::Ordering;

use proptest::prelude::*;
use rustix::fs::{UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::{Echo, ask, message, read_as};
use crate::request::Request;
use crate::wire::{self, InHeader, InitOut, OutHeader, opcode};

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
