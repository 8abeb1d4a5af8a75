//! The device: the initial negotiation, then threads that read requests and write answers.

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
use crate::wire::{self, InHeader, InitIn, InitMore, InitOut, OutHeader, opcode};

/// The largest request, in pages; the kernel may lower it.
const PAGES_MAX: u16 = 256;
const READAHEAD_MAX: u32 = 1 << 20;
/// Space for everything of a request but the written data.
const ARGUMENTS_MAX: usize = 4096;
/// There is a second half of the features (FUSE_INIT_EXT).
const EXTENDED: u32 = 1 << 30;

bitflags! {
    /// The requested features. An older kernel works without them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Features: u64 {
        const ASYNC_READ = 1 << 0;
        const BIG_WRITES = 1 << 5;
        /// READDIRPLUS …
        const READDIRPLUS = 1 << 13;
        /// … when the kernel expects it to be useful.
        const READDIRPLUS_AUTO = 1 << 14;
        const ASYNC_DIO = 1 << 15;
        /// After ENOSYS, files are opened without requests.
        const NO_OPEN = 1 << 17;
        const PARALLEL_DIROPS = 1 << 18;
        const MAX_PAGES = 1 << 22;
        const CACHE_SYMLINKS = 1 << 23;
        const NO_OPENDIR = 1 << 24;
        /// A new mtime alone does not drop cached data.
        const EXPLICIT_INVAL_DATA = 1 << 25;
        /// The filesystem clears set-user-id and set-group-id; otherwise the kernel asks for a file's capabilities before each
        /// write.
        const HANDLE_KILLPRIV_V2 = 1 << 28;
        /// The mount may be cloned with other ids (MOUNT_ATTR_IDMAP). From then on only requests that make a file say who asks.
        const ALLOW_IDMAP = 1 << 40;
    }
}

/// The configuration of a session.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub features: Features,
    /// The most bytes of one write.
    pub max_write: u32,
    /// How many background requests, such as readahead, run at once.
    pub max_background: u16,
    /// How many requests are answered at once.
    pub threads: usize,
    /// The name of the threads.
    pub name: &'static str,
}

/// A served FUSE connection. Its threads end with the mount, which belongs to its maker.
#[derive(Debug)]
pub struct Session {
    device: Arc<Device>,
    threads: Vec<JoinHandle<()>>,
}

impl Session {
    /// Answers requests on `fuse`, a new /dev/fuse descriptor that is already mounted.
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

    /// False once it was unmounted.
    pub fn is_alive(&self) -> bool {
        self.threads.iter().any(|thread| !thread.is_finished())
    }
}

#[derive(Debug)]
pub struct Device {
    fuse: OwnedFd,
}

impl Device {
    /// The next message; `None` at the end.
    fn receive<'a>(&self, buffer: &'a mut [u8]) -> Io<Option<&'a [u8]>> {
        loop {
            match rustix::io::read(&self.fuse, &mut *buffer) {
                Ok(0) | Err(Errno::NODEV) => return Ok(None),
                Ok(length) => return Ok(Some(&buffer[..length])),
                // The caller was interrupted before the request was read.
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

    /// A notification: its code is in the error field.
    pub fn notify(&self, code: i32, body: &[u8]) {
        // See `Notifier`: an error means that there is nothing to drop.
        let _ = self.send(0, code, body);
    }

    /// INIT: the kernel sends its features, the answer selects some.
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
                // The kernel repeats INIT with our version.
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
            // Older kernels end here.
            let more: InitMore = request.take().unwrap_or_default();
            let terms = terms(settings, &kernel, &more);
            return Ok(self.send(unique, 0, terms.as_bytes())?);
        }
    }

    fn serve<F: Filesystem>(&self, filesystem: &F, mut buffer: Vec<u8>) {
        // Any other error of the device means its end: there is nobody to answer.
        while let Ok(Some(message)) = self.receive(&mut buffer) {
            let Ok(request) = Request::parse(message) else {
                // A message without a header cannot be answered.
                continue;
            };
            let InHeader { unique, .. } = request.header;
            // A panic must not leave the caller waiting forever.
            let answered = catch_unwind(AssertUnwindSafe(|| answer(filesystem, request)));
            let outcome = match answered {
                Ok(Answer::NotAwaited) => continue,
                Ok(Answer::Awaited(outcome)) => outcome,
                Err(_) => Err(Errno::IO),
            };
            // An error means that the caller is gone.
            let _ = self.reply(unique, &outcome);
        }
    }
}

fn terms(settings: &Settings, kernel: &InitIn, more: &InitMore) -> InitOut {
    // Without this flag the second half means nothing, to either side.
    let high = match kernel.flags & EXTENDED {
        0 => 0,
        _ => u64::from(more.flags2) << 32,
    };
    let agreed = settings.features.bits() & (high | u64::from(kernel.flags));
    let flags2 = (agreed >> 32) as u32;
    let extended = if flags2 == 0 { 0 } else { EXTENDED };
    InitOut {
        major: wire::MAJOR,
        minor: wire::MINOR.min(kernel.minor),
        max_readahead: kernel.max_readahead.min(READAHEAD_MAX),
        flags: agreed as u32 | extended,
        flags2,
        max_background: settings.max_background,
        congestion_threshold: settings.max_background / 4 * 3,
        max_write: settings.max_write,
        time_granularity: 1,
        max_pages: PAGES_MAX,
        ..Default::default()
    }
}
