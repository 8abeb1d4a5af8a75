//! The device: agreeing on terms, then loops that read requests and write answers.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use bitflags::bitflags;
use rustix::io::{Errno, IoSlice};
use zerocopy::IntoBytes;

use crate::answer::{Answer, answer};
use crate::filesystem::{Filesystem, Io};
use crate::notifier::Notifier;
use crate::request::Request;
use crate::wire::{self, InHeader, InitIn, InitOut, OutHeader, opcode};

/// The most that one request carries, in pages; more than the kernel allows is cut by it.
const PAGES_MAX: u16 = 256;
const READAHEAD_MAX: u32 = 1 << 20;
/// Room for everything of a request but the data that is written.
const ARGUMENTS_MAX: usize = 4096;

bitflags! {
    /// What a kernel is asked to do. An older one works without.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Features: u32 {
        const ASYNC_READ = 1 << 0;
        const BIG_WRITES = 1 << 5;
        /// Names of a directory come with their attributes …
        const READDIRPLUS = 1 << 13;
        /// … where that seems to be of use.
        const READDIRPLUS_AUTO = 1 << 14;
        const ASYNC_DIO = 1 << 15;
        /// Once "not implemented" was answered, files are opened without asking.
        const NO_OPEN = 1 << 17;
        const PARALLEL_DIROPS = 1 << 18;
        const MAX_PAGES = 1 << 22;
        const CACHE_SYMLINKS = 1 << 23;
        const NO_OPENDIR = 1 << 24;
        /// A new modification time alone does not throw cached data away.
        const EXPLICIT_INVAL_DATA = 1 << 25;
        /// The filesystem clears set-user-id and set-group-id; else the kernel asks for a file's
        /// capabilities before each write.
        const HANDLE_KILLPRIV_V2 = 1 << 28;
    }
}

/// The terms on which a session serves.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub features: Features,
    /// The most bytes of one write.
    pub max_write: u32,
    /// Requests that nobody waits for, such as reading ahead, at once.
    pub max_background: u16,
    /// How many requests are answered at once.
    pub threads: usize,
    /// What the threads are called.
    pub name: &'static str,
}

/// A served FUSE connection. Its threads end with the mount, which belongs to whoever made it.
#[derive(Debug)]
pub struct Session {
    device: Arc<Device>,
    threads: Vec<JoinHandle<()>>,
}

impl Session {
    /// Answers requests on `fuse`, a fresh /dev/fuse descriptor that is already mounted somewhere.
    pub fn serve<F: Filesystem>(
        fuse: OwnedFd,
        filesystem: F,
        settings: Settings,
    ) -> io::Result<Session> {
        let device = Arc::new(Device { fuse });
        let room = settings.max_write as usize + ARGUMENTS_MAX;
        let room = room.max(wire::READ_BUFFER_LEAST);
        device.agree(&settings, &mut vec![0; room])?;
        let filesystem = Arc::new(filesystem);
        let start = |_| {
            let (device, filesystem) = (device.clone(), filesystem.clone());
            std::thread::Builder::new()
                .name(settings.name.to_owned())
                .spawn(move || device.serve(&*filesystem, vec![0; room]))
        };
        let threads = (0..settings.threads)
            .map(start)
            .collect::<io::Result<_>>()?;
        Ok(Session { device, threads })
    }

    pub fn notifier(&self) -> Notifier {
        Notifier::new(self.device.clone())
    }

    /// False once the kernel's side was unmounted.
    pub fn is_alive(&self) -> bool {
        self.threads.iter().any(|thread| !thread.is_finished())
    }
}

#[derive(Debug)]
pub struct Device {
    fuse: OwnedFd,
}

impl Device {
    /// The next message. None: there will be no more.
    fn receive<'a>(&self, buffer: &'a mut [u8]) -> Io<Option<&'a [u8]>> {
        loop {
            match rustix::io::read(&self.fuse, &mut *buffer) {
                Ok(0) | Err(Errno::NODEV) => return Ok(None),
                Ok(length) => return Ok(Some(&buffer[..length])),
                // Whoever asked was interrupted before the request was read.
                Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&self, unique: u64, error: i32, body: &[u8]) -> Io<()> {
        let header = OutHeader {
            len: (size_of::<OutHeader>() + body.len()) as u32,
            error,
            unique,
        };
        let message = [IoSlice::new(header.as_bytes()), IoSlice::new(body)];
        rustix::io::writev(&self.fuse, &message).map(drop)
    }

    fn reply(&self, unique: u64, outcome: &Io<Vec<u8>>) -> Io<()> {
        match outcome {
            Ok(body) => self.send(unique, 0, body),
            Err(errno) => self.send(unique, -errno.raw_os_error(), &[]),
        }
    }

    /// A message that answers nothing: its code stands where an error would.
    pub fn notify(&self, code: i32, body: &[u8]) {
        // See `Notifier`: refused means that there is nothing to forget.
        let _ = self.send(0, code, body);
    }

    /// The first request says what the kernel can do; the answer, what it shall.
    fn agree(&self, settings: &Settings, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            let Some(message) = self.receive(buffer)? else {
                let gone = "it was unmounted before it was served";
                return Err(io::Error::new(io::ErrorKind::NotConnected, gone));
            };
            let mut request = Request::parse(message)?;
            let unique = request.header.unique;
            if request.header.opcode != opcode::INIT {
                self.reply(unique, &Err(Errno::IO))?;
                return Err(io::Error::other("it was served before"));
            }
            let kernel: InitIn = request.take()?;
            if kernel.major > wire::MAJOR {
                // The kernel asks again, in our words.
                let ours = InitOut {
                    major: wire::MAJOR,
                    minor: wire::MINOR,
                    ..Default::default()
                };
                self.send(unique, 0, ours.as_bytes())?;
                continue;
            }
            if (kernel.major, kernel.minor) < (wire::MAJOR, wire::MINOR_LEAST) {
                self.reply(unique, &Err(Errno::PROTO))?;
                return Err(io::Error::other(format!(
                    "the kernel speaks FUSE {}.{}; {}.{} is needed, as of Linux 3.15",
                    kernel.major,
                    kernel.minor,
                    wire::MAJOR,
                    wire::MINOR_LEAST,
                )));
            }
            let terms = terms(settings, &kernel);
            return Ok(self.send(unique, 0, terms.as_bytes())?);
        }
    }

    fn serve<F: Filesystem>(&self, filesystem: &F, mut buffer: Vec<u8>) {
        // Any other error of the device means the same as its end: there is nobody to answer.
        while let Ok(Some(message)) = self.receive(&mut buffer) {
            let Ok(request) = Request::parse(message) else {
                // Without a header there is no telling whom to answer.
                continue;
            };
            let InHeader { unique, .. } = request.header;
            // A fault in answering one must not leave its caller waiting for ever.
            let answered = catch_unwind(AssertUnwindSafe(|| answer(filesystem, request)));
            let outcome = match answered {
                Ok(Answer::NotAwaited) => continue,
                Ok(Answer::Awaited(outcome)) => outcome,
                Err(_) => Err(Errno::IO),
            };
            // Refused where whoever asked is gone.
            let _ = self.reply(unique, &outcome);
        }
    }
}

fn terms(settings: &Settings, kernel: &InitIn) -> InitOut {
    InitOut {
        major: wire::MAJOR,
        minor: wire::MINOR.min(kernel.minor),
        max_readahead: kernel.max_readahead.min(READAHEAD_MAX),
        flags: settings.features.bits() & kernel.flags,
        max_background: settings.max_background,
        congestion_threshold: settings.max_background / 4 * 3,
        max_write: settings.max_write,
        time_granularity: 1,
        max_pages: PAGES_MAX,
        ..Default::default()
    }
}
