//! The scanner: a helper process in the keeper's user namespace that may read whatever a command left.
//!
//! A command's files can have modes that keep the daemon out; the scanner overrides them, lists layers,
//! opens files for the daemon to hash, and removes layers. It is given descriptors, never host paths; only
//! the lens, which the daemon does not see, is named to it by where the keeper mounted it.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::acts::{self, Act, NewMeta, Over};
use crate::remove::{self, Removal};
use crate::scan::{MarkNames, UpperEntry};
use crate::walk::{self, Position, Totals};
use crate::{Error, Owner, Result};

/// Names opened by one request: below the kernel's limit of 253 descriptors in a message.
const OPEN_MAX: usize = 200;
/// Bytes of names in one request, well below what a socket takes at once.
const OPEN_BYTES_MAX: usize = 64 * 1024;
/// A slice of a listing with one entry beyond it, which has attributes, and how far it came; a socket takes this much at once.
const FRAME_MAX: usize = 160 * 1024;
/// How many processes may die over one request before it is given up.
const TRIES: u32 = 4;

#[derive(Serialize, Deserialize)]
enum Request {
    List(MarkNames, Position),
    Measure(Position),
    Open(Vec<Vec<u8>>),
    Remove,
    /// With whom new things are given to.
    Act(Act, Option<Owner>),
    NameFile {
        path: Vec<u8>,
        meta: NewMeta,
        over: Over,
    },
    Warm(PathBuf),
}

#[derive(Serialize, Deserialize)]
enum Answer {
    Listed(Vec<UpperEntry>, Position),
    Measured(Totals, Position),
    /// For each name: opened (its descriptor comes along, in order) or why not.
    Opened(Vec<Option<i32>>),
    Removed {
        all: bool,
    },
    /// A descriptor comes along when something was opened.
    Acted,
    Warmed,
    Failed {
        errno: i32,
    },
}

impl Request {
    /// Whether it may be asked again when nobody knows if it was done: a change of a view may not.
    fn is_repeatable(&self) -> bool {
        match self {
            Request::List(..)
            | Request::Measure(_)
            | Request::Open(_)
            | Request::Remove
            | Request::Warm(_) => true,
            Request::Act(..) | Request::NameFile { .. } => false,
        }
    }
}

/// Starts a scanner process and gives the socket to it; fails when there is no keeper to start it.
pub type StartScanner = Box<dyn Fn() -> Option<OwnedFd> + Send + Sync>;

/// The daemon's end. One request is under way at a time. A process that died is replaced, and asked again where that is safe.
pub struct Scanner {
    socket: Mutex<OwnedFd>,
    start: StartScanner,
    marks: MarkNames,
    replaced: AtomicU64,
}

impl Scanner {
    pub fn start(start: StartScanner, marks: MarkNames) -> Result<Scanner> {
        let socket = Mutex::new(start().ok_or(Error::ScannerLost)?);
        Ok(Scanner {
            socket,
            start,
            marks,
            replaced: AtomicU64::new(0),
        })
    }

    /// How often its process was replaced because it had died.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// The next entries of the directory `upper`, parents before children, and how far that is.
    pub(crate) fn list(
        &self,
        upper: BorrowedFd<'_>,
        from: Position,
    ) -> Result<(Vec<UpperEntry>, Position)> {
        match self.ask(&Request::List(self.marks, from), upper)? {
            (Answer::Listed(entries, position), _) => Ok((entries, position)),
            (answer, _) => Err(failure("list", answer)),
        }
    }

    /// What the files in `directory` add up to, by apparent size; asks `stopped` now and then.
    pub fn measure(&self, directory: BorrowedFd<'_>, stopped: &dyn Fn() -> bool) -> Result<Totals> {
        let mut totals = Totals::default();
        let mut position = Position::start();
        while !position.is_end() {
            if stopped() {
                return Err(Error::Stopped);
            }
            let answer = self.ask(&Request::Measure(position), directory)?;
            let (Answer::Measured(some, next), _) = answer else {
                return Err(failure("measure", answer.0));
            };
            totals = totals.and(some);
            position = next;
        }
        Ok(totals)
    }

    /// The files of these names below `upper`, in order; those that cannot be opened are errors.
    pub fn open(
        &self,
        upper: BorrowedFd<'_>,
        names: &[&[u8]],
        mut each: impl FnMut(usize, std::io::Result<OwnedFd>),
    ) -> Result<()> {
        let mut start = 0;
        while start < names.len() {
            let end = batch_end(names, start);
            let batch = names[start..end].iter().map(|name| name.to_vec()).collect();
            let (answer, descriptors) = self.ask(&Request::Open(batch), upper)?;
            let Answer::Opened(outcomes) = answer else {
                return Err(failure("open", answer));
            };
            if outcomes.len() != end - start {
                return Err(Error::BadAnswer("as many outcomes as names were expected"));
            }
            let mut descriptors = descriptors.into_iter();
            for (index, outcome) in outcomes.into_iter().enumerate() {
                let opened = match outcome {
                    None => Ok(descriptors
                        .next()
                        .ok_or(Error::BadAnswer("a descriptor is missing"))?),
                    Some(errno) => Err(std::io::Error::from_raw_os_error(errno)),
                };
                each(start + index, opened);
            }
            start = end;
        }
        Ok(())
    }

    /// Removes everything in `directory`.
    pub fn remove_contents(&self, directory: BorrowedFd<'_>) -> Result<()> {
        loop {
            // Others have their turn in between.
            match self.ask(&Request::Remove, directory)? {
                (Answer::Removed { all: true }, _) => return Ok(()),
                (Answer::Removed { all: false }, _) => {}
                (answer, _) => return Err(failure("remove", answer)),
            }
        }
    }

    /// Changes something beneath `top`, the top of a view; the inner error is the kernel's.
    pub fn act(
        &self,
        top: BorrowedFd<'_>,
        act: Act,
        owner: Option<Owner>,
    ) -> Result<std::io::Result<Option<OwnedFd>>> {
        match self.ask(&Request::Act(act, owner), top)? {
            (Answer::Acted, descriptors) => Ok(Ok(descriptors.into_iter().next())),
            (Answer::Failed { errno }, _) => Ok(Err(std::io::Error::from_raw_os_error(errno))),
            _ => Err(Error::BadAnswer("an answer to another question")),
        }
    }

    /// Gives a file that was opened without a name its attributes and then its name; the inner error is the kernel's.
    pub fn name_file(
        &self,
        top: BorrowedFd<'_>,
        file: BorrowedFd<'_>,
        path: Vec<u8>,
        meta: NewMeta,
        over: Over,
    ) -> Result<std::io::Result<()>> {
        match self.send(&Request::NameFile { path, meta, over }, &[top, file])? {
            (Answer::Acted, _) => Ok(Ok(())),
            (Answer::Failed { errno }, _) => Ok(Err(std::io::Error::from_raw_os_error(errno))),
            _ => Err(Error::BadAnswer("an answer to another question")),
        }
    }

    /// Has the kernel learn the names beneath `shown`, a directory of the lens, before somebody asks.
    pub fn warm(&self, shown: &Path) -> Result<()> {
        match self.send(&Request::Warm(shown.to_owned()), &[])? {
            (Answer::Warmed, _) => Ok(()),
            (answer, _) => Err(failure("look through", answer)),
        }
    }

    fn ask(&self, request: &Request, about: BorrowedFd<'_>) -> Result<(Answer, Vec<OwnedFd>)> {
        self.send(request, &[about])
    }

    fn send(&self, request: &Request, passed: &[BorrowedFd<'_>]) -> Result<(Answer, Vec<OwnedFd>)> {
        // One who panicked here left a socket at which nobody may be waiting for the right answer.
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let frame = postcard::to_stdvec(request).expect("requests are plain data");
        for _ in 0..TRIES {
            let lost = match exchange(socket.as_fd(), &frame, passed) {
                Ok((frame, descriptors)) => {
                    let answer = postcard::from_bytes(&frame);
                    let answer = answer.map_err(|_| Error::BadAnswer("an unreadable frame"))?;
                    return Ok((answer, descriptors));
                }
                Err(lost) => lost,
            };
            // Whatever becomes of this request, the next one finds a process that lives.
            *socket = (self.start)().ok_or(Error::ScannerLost)?;
            self.replaced.fetch_add(1, Ordering::Relaxed);
            if lost == Lost::WithRequest && !request.is_repeatable() {
                return Err(Error::ActLost);
            }
        }
        Err(Error::ScannerFails { times: TRIES })
    }
}

/// When a scanner process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// It never had the request.
    WithoutRequest,
    /// It may have done some or all of it.
    WithRequest,
}

fn exchange(
    socket: BorrowedFd<'_>,
    frame: &[u8],
    passed: &[BorrowedFd<'_>],
) -> Result<Message, Lost> {
    send(socket, frame, passed).map_err(|_| Lost::WithoutRequest)?;
    match receive(socket) {
        Ok(Some(message)) => Ok(message),
        // The kernel says so when the other end closed with something unread.
        Err(Errno::CONNRESET) => Err(Lost::WithoutRequest),
        Ok(None) | Err(_) => Err(Lost::WithRequest),
    }
}

fn batch_end(names: &[&[u8]], start: usize) -> usize {
    let mut bytes = 0;
    let mut end = start;
    while end < names.len() && end - start < OPEN_MAX {
        bytes += names[end].len() + 8;
        if bytes > OPEN_BYTES_MAX && end > start {
            break;
        }
        end += 1;
    }
    end
}

fn failure(what: &str, answer: Answer) -> Error {
    match answer {
        Answer::Failed { errno } => Error::Scan {
            what: what.into(),
            source: std::io::Error::from_raw_os_error(errno),
        },
        _ => Error::BadAnswer("an answer to another question"),
    }
}

/// The scanner process: answers on descriptor 3 until the daemon's end closes.
pub fn scanner_main() -> ExitCode {
    // SAFETY: the keeper starts this role with its socket as descriptor 3, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(3) };
    raise_descriptor_limit();
    match serve(socket.as_fd()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Answers until the other end closes. Changes the directory of the calling process.
fn serve(socket: BorrowedFd<'_>) -> rustix::io::Result<()> {
    while let Some((frame, descriptors)) = receive(socket)? {
        let (answer, passed) = match answer(&frame, descriptors) {
            Ok(done) => done,
            Err(error) => {
                let unknown = rustix::io::Errno::INVAL.raw_os_error();
                let errno = error.raw_os_error().unwrap_or(unknown);
                (Answer::Failed { errno }, Vec::new())
            }
        };
        let frame = postcard::to_stdvec(&answer).expect("answers are plain data");
        let passed: Vec<_> = passed.iter().map(AsFd::as_fd).collect();
        send(socket, &frame, &passed)?;
    }
    Ok(())
}

/// A view needs a descriptor for each file that is open in it.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With the lower limit only very many files fail, and then with a clear error.
    let _ = setrlimit(Resource::Nofile, limit);
}

fn answer(frame: &[u8], descriptors: Vec<OwnedFd>) -> std::io::Result<(Answer, Vec<OwnedFd>)> {
    let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let request: Request = postcard::from_bytes(frame).map_err(|_| invalid())?;
    if let Request::NameFile { path, meta, over } = &request {
        let [top, file] = <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| invalid())?;
        acts::name_file(top.as_fd(), &file, path, meta, *over)?;
        return Ok((Answer::Acted, Vec::new()));
    }
    let directory = || -> std::io::Result<OwnedFd> {
        let [directory] = <[OwnedFd; 1]>::try_from(descriptors).map_err(|_| invalid())?;
        Ok(directory)
    };
    match request {
        Request::Warm(shown) => {
            remove::warm(&shown)?;
            Ok((Answer::Warmed, Vec::new()))
        }
        Request::List(marks, mut position) => {
            let entries = walk::list(directory()?.as_fd(), marks, &mut position)?;
            Ok((Answer::Listed(entries, position), Vec::new()))
        }
        Request::Measure(mut position) => {
            let totals = walk::measure(directory()?.as_fd(), &mut position)?;
            Ok((Answer::Measured(totals, position), Vec::new()))
        }
        Request::Open(names) => {
            let directory = directory()?;
            let mut opened = Vec::new();
            let mut outcomes = Vec::new();
            for name in &names {
                match open_beneath(directory.as_fd(), name) {
                    Ok(descriptor) => {
                        opened.push(descriptor);
                        outcomes.push(None);
                    }
                    Err(errno) => outcomes.push(Some(errno.raw_os_error())),
                }
            }
            Ok((Answer::Opened(outcomes), opened))
        }
        Request::Remove => {
            let all = remove::remove_some(directory()?.as_fd())? == Removal::Done;
            Ok((Answer::Removed { all }, Vec::new()))
        }
        Request::Act(act, owner) => {
            let opened = acts::act(directory()?.as_fd(), &act, owner)?;
            Ok((Answer::Acted, opened.into_iter().collect()))
        }
        Request::NameFile { .. } => Err(invalid()),
    }
}

/// Not blocking: between listing and opening, a file may have become a FIFO.
fn open_beneath(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(directory, name, flags, Mode::empty(), resolve)
}

fn send(socket: BorrowedFd<'_>, frame: &[u8], passed: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(OPEN_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !passed.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(passed));
    }
    loop {
        match sendmsg(
            socket,
            &[IoSlice::new(frame)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        ) {
            Err(rustix::io::Errno::INTR) => continue,
            outcome => return outcome.map(drop),
        }
    }
}

type Message = (Vec<u8>, Vec<OwnedFd>);

/// The next message, or none when the other end closed.
fn receive(socket: BorrowedFd<'_>) -> rustix::io::Result<Option<Message>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(OPEN_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut frame = vec![0u8; FRAME_MAX];
    let received = loop {
        let mut slices = [IoSliceMut::new(&mut frame)];
        match recvmsg(socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            outcome => break outcome?,
        }
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(rustix::io::Errno::MSGSIZE);
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    frame.truncate(received.bytes);
    Ok(Some((frame, descriptors)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::Read;

    fn pair() -> (OwnedFd, OwnedFd) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap()
    }

    fn thread() -> Option<OwnedFd> {
        let (ours, theirs) = pair();
        std::thread::spawn(move || {
            // SAFETY: only the directory stops being shared, and nothing in this thread minds.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }.unwrap();
            serve(theirs.as_fd()).unwrap();
        });
        Some(ours)
    }

    /// A scanner that answers from a thread with a directory of its own.
    pub(crate) fn in_a_thread(marks: MarkNames) -> Scanner {
        Scanner::start(Box::new(thread), marks).unwrap()
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
                // The directory is not used: acts go beneath what they are given.
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
        let make = |path: &[u8]| Act::Directory { path: path.into() };
        for (death, is_repeated) in [
            (Death::Idle, true),
            (Death::Unread, true),
            (Death::Read, false),
            (Death::Answered, false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let top = open(directory.path());
            let scanner = dying(vec![death], thread);
            let made = scanner.act(top.as_fd(), make(b"d"), None);
            match is_repeated {
                true => assert!(made.unwrap().is_ok()),
                false => assert!(matches!(made, Err(Error::ActLost))),
            }
            let next = scanner.act(top.as_fd(), make(b"e"), None);
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
        let scanner = in_a_thread(MarkNames::User);
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
        let scanner = in_a_thread(MarkNames::User);
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
        let scanner = in_a_thread(MarkNames::User);
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
        let scanner = in_a_thread(MarkNames::User);
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
        let scanner = in_a_thread(MarkNames::User);
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
        let scanner = in_a_thread(MarkNames::User);
        scanner
            .remove_contents(open(directory.path()).as_fd())
            .unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(std::path::Path::new("/etc").exists());
    }
}
