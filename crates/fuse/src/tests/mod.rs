//! The protocol against a kernel simulated by the test, message by message: what answers, and how it is asked.
//!
//! The tests of the views use real mounts.

mod messages;
mod sessions;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FileType, RenameFlags, Timespec};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::answer::{Answer, answer};
use crate::request::Request;
use crate::wire::InHeader;
use crate::{
    Caller, FileAttr, FileHandle, Filesystem, Fill, Io, Listing, ListingPlus, Name, NewAttributes,
    WriteFlags,
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

    fn setattr(&self, node: u64, handle: Option<FileHandle>, new: &NewAttributes) -> Io<FileAttr> {
        self.note(format!("{handle:?} {new:?}"));
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
