//! The scanner as a process of this one, and what it answers to layers of every kind.

use super::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io::Read;

fn pair() -> (OwnedFd, OwnedFd) {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap()
}

/// How a process dies.
#[derive(Clone, Copy)]
enum Death {
    Idle,
    Unread,
    Read,
    Answered,
}

/// A scanner whose first processes die in these ways; those after them live, if there are any.
fn dying(deaths: Vec<Death>, then: fn() -> Option<OwnedFd>) -> Scanner {
    let deaths = Mutex::new(deaths.into_iter());
    let start = move || {
        let Some(death) = deaths.lock().unwrap().next() else {
            return then();
        };
        let (ours, theirs) = pair();
        match death {
            Death::Idle => drop(theirs),
            Death::Unread | Death::Read | Death::Answered => {
                std::thread::spawn(move || die(theirs, death));
            }
        }
        Some(ours)
    };
    Scanner::start(Box::new(start), MarkNames::User).unwrap()
}

fn die(socket: OwnedFd, death: Death) {
    let mut polled = [rustix::event::PollFd::new(
        &socket,
        rustix::event::PollFlags::IN,
    )];
    rustix::event::poll(&mut polled, None).unwrap();
    match death {
        Death::Idle | Death::Unread => {}
        Death::Read => drop(receive(socket.as_fd())),
        Death::Answered => {
            // The directory is not used: operations are relative to the descriptor they get.
            let (frame, descriptors) = receive(socket.as_fd()).unwrap().unwrap();
            answer(&frame, descriptors).unwrap();
        }
    }
}

#[test]
fn whoever_dies_is_replaced_before_anybody_is_told() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "five5").unwrap();
    let top = open(directory.path());
    for deaths in [
        vec![Death::Idle],
        vec![Death::Unread],
        vec![Death::Read],
        vec![Death::Idle, Death::Unread, Death::Read],
    ] {
        let count = deaths.len() as u64;
        let scanner = dying(deaths, thread);
        let totals = scanner.measure(top.as_fd(), &|| false).unwrap();
        assert_eq!((totals.files, totals.bytes), (1, 5));
        assert_eq!(scanner.replaced(), count);
        assert_eq!(scanner.scan(top.as_fd()).unwrap().len(), 2);
    }
}

#[test]
fn a_change_is_never_made_twice() {
    let make = |path: &[u8]| ViewOp::Directory { path: path.into() };
    for (death, is_repeated) in [
        (Death::Idle, true),
        (Death::Unread, true),
        (Death::Read, false),
        (Death::Answered, false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let top = open(directory.path());
        let scanner = dying(vec![death], thread);
        let made = scanner.apply(top.as_fd(), make(b"d"), None);
        match is_repeated {
            true => assert!(made.unwrap().is_ok()),
            false => assert!(matches!(made, Err(Error::ViewOpLost))),
        }
        let next = scanner.apply(top.as_fd(), make(b"e"), None);
        assert!(next.unwrap().is_ok(), "the next one is served");
    }
}

#[test]
fn what_kills_every_scanner_is_given_up_and_a_dead_keeper_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let top = open(directory.path());
    let scanner = dying(vec![Death::Read; 5], thread);
    let outcome = scanner.scan(top.as_fd());
    assert!(matches!(outcome, Err(Error::ScannerFails { .. })));
    assert_eq!(scanner.scan(top.as_fd()).unwrap().len(), 1, "the next one");
    let scanner = dying(vec![Death::Read], || None);
    for _ in 0..2 {
        let outcome = scanner.scan(top.as_fd());
        assert!(matches!(outcome, Err(Error::ScannerLost)));
    }
}

impl Scanner {
    /// Everything in the directory `upper`.
    pub(crate) fn scan(&self, upper: BorrowedFd<'_>) -> Result<Vec<UpperEntry>> {
        let mut entries = Vec::new();
        let mut position = Position::start();
        while !position.is_end() {
            let (mut listed, next) = self.list(upper, position)?;
            assert!(listed.len() <= 1_001, "a slice has a bound");
            entries.append(&mut listed);
            position = next;
        }
        Ok(entries)
    }
}

fn open(path: &std::path::Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

#[test]
fn many_files_are_opened_in_batches() {
    let directory = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..1_000).map(|n| format!("{n:0>200}")).collect();
    for name in &names {
        std::fs::write(directory.path().join(name), name).unwrap();
    }
    let scanner = in_a_thread(MarkNames::User).unwrap();
    let asked: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let mut seen = 0;
    let opened = |index: usize, file: std::io::Result<OwnedFd>| {
        let mut text = String::new();
        std::fs::File::from(file.unwrap())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, names[index]);
        seen += 1;
    };
    scanner
        .open(open(directory.path()).as_fd(), &asked, opened)
        .unwrap();
    assert_eq!(seen, names.len());
}

#[test]
fn nothing_outside_the_directory_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let upper = directory.path().join("upper");
    std::fs::create_dir(&upper).unwrap();
    std::fs::write(directory.path().join("secret"), "s").unwrap();
    std::os::unix::fs::symlink("../secret", upper.join("link")).unwrap();
    std::os::unix::fs::symlink("..", upper.join("up")).unwrap();
    let scanner = in_a_thread(MarkNames::User).unwrap();
    let names: [&[u8]; 5] = [
        b"link",
        b"../secret",
        b"up/secret",
        b"/etc/passwd",
        b"missing",
    ];
    let mut refused = 0;
    scanner
        .open(open(&upper).as_fd(), &names, |_, file| {
            refused += usize::from(file.is_err())
        })
        .unwrap();
    assert_eq!(refused, names.len());
}

/// Directories in each other, made without ever naming the whole path.
pub(crate) fn make_deep(top: &Path, levels: usize) {
    let mut at = open(top);
    for _ in 0..levels {
        rustix::fs::mkdirat(&at, "d", Mode::from_raw_mode(0o755)).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        at = rustix::fs::openat(&at, "d", flags, Mode::empty()).unwrap();
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(&at, "last", flags, Mode::from_raw_mode(0o644)).unwrap();
}

#[test]
fn no_depth_is_too_deep() {
    let directory = tempfile::tempdir().unwrap();
    make_deep(directory.path(), 50_000);
    std::fs::write(directory.path().join("d/d/beside"), "12345").unwrap();
    let scanner = in_a_thread(MarkNames::User).unwrap();
    let top = open(directory.path());
    let entries = scanner.scan(top.as_fd()).unwrap();
    let longest = entries.iter().map(|entry| entry.path.len()).max();
    // The top, a level for every two bytes, and the file.
    assert_eq!((entries.len(), longest), (1 + 2_048 + 1, Some(4_095)));
    let totals = scanner.measure(top.as_fd(), &|| false).unwrap();
    assert_eq!((totals.files, totals.bytes), (1, 5));
    scanner.remove_contents(top.as_fd()).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_wide_directory_is_listed_in_slices_without_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    for n in 0..3_000 {
        let name = directory.path().join(format!("{n}"));
        match n % 3 {
            0 => std::fs::create_dir_all(name.join("in")).unwrap(),
            _ => std::fs::write(name, "four").unwrap(),
        }
    }
    let scanner = in_a_thread(MarkNames::User).unwrap();
    let top = open(directory.path());
    let entries = scanner.scan(top.as_fd()).unwrap();
    let paths: std::collections::BTreeSet<_> = entries.iter().map(|it| &it.path).collect();
    assert_eq!((entries.len(), paths.len()), (1 + 4_000, 1 + 4_000));
    let totals = scanner.measure(top.as_fd(), &|| false).unwrap();
    assert_eq!((totals.files, totals.bytes), (2_000, 8_000));
    let stopped = scanner.measure(top.as_fd(), &|| true);
    assert!(matches!(stopped, Err(Error::Stopped)));
    scanner.remove_contents(top.as_fd()).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn names_that_are_in_the_way_of_a_removal_are_not() {
    let directory = tempfile::tempdir().unwrap();
    for n in 0..200 {
        std::fs::create_dir_all(directory.path().join(format!(".moved-{n:x}/x/y"))).unwrap();
        std::fs::write(directory.path().join(format!(".moved-{n}-")), "").unwrap();
    }
    let scanner = in_a_thread(MarkNames::User).unwrap();
    scanner
        .remove_contents(open(directory.path()).as_fd())
        .unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn whatever_is_there_can_be_removed() {
    let directory = tempfile::tempdir().unwrap();
    let mut deep = directory.path().to_owned();
    for _ in 0..300 {
        deep.push("d");
        std::fs::create_dir(&deep).unwrap();
        std::fs::write(deep.join("f"), "").unwrap();
    }
    std::os::unix::fs::symlink("/", directory.path().join("d/root")).unwrap();
    let scanner = in_a_thread(MarkNames::User).unwrap();
    scanner
        .remove_contents(open(directory.path()).as_fd())
        .unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    assert!(std::path::Path::new("/etc").exists());
}
