//! The scanner: a helper process in the keeper's user namespace that can read all files of a command.
//!
//! The modes of a command's files may exclude the daemon. The scanner overrides them, lists layers, opens files for the
//! daemon to hash, and removes layers. It gets descriptors, never host paths; only the lens, which the daemon does not see,
//! is given by its path in the keeper's mount namespace.

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

use crate::remove::{self, Removal};
use crate::scan::{MarkNames, UpperEntry};
use crate::view_ops::{self, NewMeta, Over, ViewOp};
use crate::walk::{self, Position, Totals};
use crate::{Error, Owner, Result};

/// Names opened by one request: below the kernel's limit of 253 descriptors per message.
const OPEN_MAX: usize = 200;
/// Bytes of names in one request, below the maximal message size.
const OPEN_BYTES_MAX: usize = 64 * 1024;
/// A message holds one slice of a listing, one further entry with attributes, and the position.
const FRAME_MAX: usize = 160 * 1024;
/// How many processes may die during one request before it fails.
const TRIES: u32 = 4;

#[derive(Serialize, Deserialize)]
enum Request {
    List(MarkNames, Position),
    Measure(Position),
    Open(Vec<Vec<u8>>),
    Remove,
    /// With the owner of new files.
    ViewOp(ViewOp, Option<Owner>),
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
    /// For each name: opened (its descriptor is attached, in order) or the error.
    Opened(Vec<Option<i32>>),
    Removed {
        all: bool,
    },
    /// With a descriptor if a file was opened.
    Acted,
    Warmed,
    Failed {
        errno: i32,
    },
}

impl Request {
    /// Whether the request can be repeated if its outcome is unknown: not for changes of a view.
    fn is_repeatable(&self) -> bool {
        match self {
            Request::List(..)
            | Request::Measure(_)
            | Request::Open(_)
            | Request::Remove
            | Request::Warm(_) => true,
            Request::ViewOp(..) | Request::NameFile { .. } => false,
        }
    }
}

/// Starts a scanner process with this socket; fails if there is no keeper.
pub type StartScanner = Box<dyn Fn() -> Option<OwnedFd> + Send + Sync>;

/// The daemon's end. One request runs at a time. A process that died is replaced, and the request repeated if that is safe.
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

    /// The next entries of the directory `upper`, parents before children, and the position after them.
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

    /// The number and apparent size of files in `directory`; checks `stopped` now and then.
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

    /// Opens these names below `upper`, in order; those that cannot be opened are errors.
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
            // Other requests can run in between.
            match self.ask(&Request::Remove, directory)? {
                (Answer::Removed { all: true }, _) => return Ok(()),
                (Answer::Removed { all: false }, _) => {}
                (answer, _) => return Err(failure("remove", answer)),
            }
        }
    }

    /// Changes something below `top`, the top of a view; the inner error is the kernel's.
    pub fn apply(
        &self,
        top: BorrowedFd<'_>,
        op: ViewOp,
        owner: Option<Owner>,
    ) -> Result<std::io::Result<Option<OwnedFd>>> {
        match self.ask(&Request::ViewOp(op, owner), top)? {
            (Answer::Acted, descriptors) => Ok(Ok(descriptors.into_iter().next())),
            (Answer::Failed { errno }, _) => Ok(Err(std::io::Error::from_raw_os_error(errno))),
            _ => Err(Error::BadAnswer("an answer to another question")),
        }
    }

    /// Sets the attributes of an unnamed file, then links it; the inner error is the kernel's.
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

    /// Lists everything below `shown`, a directory of the lens, to fill the kernel's caches.
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
        // A thread that panicked here left a socket with an unread answer.
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
            // Whatever happens to this request, the next one finds a live process.
            *socket = (self.start)().ok_or(Error::ScannerLost)?;
            self.replaced.fetch_add(1, Ordering::Relaxed);
            if lost == Lost::WithRequest && !request.is_repeatable() {
                return Err(Error::ViewOpLost);
            }
        }
        Err(Error::ScannerFails { times: TRIES })
    }
}

/// When a scanner process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// Before it got the request.
    WithoutRequest,
    /// After it got the request: some or all of it may be done.
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
        // ECONNRESET: the other end closed with unread data.
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

/// The scanner process: answers on descriptor 3 until the daemon closes its end.
pub fn scanner_main() -> ExitCode {
    // SAFETY: the keeper starts this role with its socket as descriptor 3, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(3) };
    raise_descriptor_limit();
    match serve(socket.as_fd()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Answers until the other end closes. Changes the working directory.
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

/// Starts a scanner that answers from a thread with a directory of its own. For tests: it has no right that the caller lacks.
#[cfg(any(test, feature = "testing"))]
pub fn in_a_thread(marks: MarkNames) -> Result<Scanner> {
    Scanner::start(Box::new(thread), marks)
}

#[cfg(any(test, feature = "testing"))]
fn thread() -> Option<OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None).ok()?;
    std::thread::spawn(move || {
        // SAFETY: only the directory stops being shared, and nothing in this thread minds.
        let own = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) };
        // Whoever asks learns from the closed socket that nobody answers.
        own.and_then(|()| serve(theirs.as_fd()))
    });
    Some(ours)
}

/// A view needs a descriptor for each open file.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With the lower limit only very many open files fail, with a clear error.
    let _ = setrlimit(Resource::Nofile, limit);
}

fn answer(frame: &[u8], descriptors: Vec<OwnedFd>) -> std::io::Result<(Answer, Vec<OwnedFd>)> {
    let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let request: Request = postcard::from_bytes(frame).map_err(|_| invalid())?;
    if let Request::NameFile { path, meta, over } = &request {
        let [top, file] = <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| invalid())?;
        view_ops::name_file(top.as_fd(), &file, path, meta, *over)?;
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
        Request::ViewOp(op, owner) => {
            let opened = view_ops::apply(directory()?.as_fd(), &op, owner)?;
            Ok((Answer::Acted, opened.into_iter().collect()))
        }
        Request::NameFile { .. } => Err(invalid()),
    }
}

/// O_NONBLOCK: a file may have been replaced by a FIFO since it was listed.
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

/// The next message, or `None` if the other end closed.
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
pub(crate) mod tests;
