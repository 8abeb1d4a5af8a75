//! The body of an answer, out of a file or from a host, counted and slowed down as it passes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use avfs_policy::HostPort;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming};
use tokio::sync::mpsc;

use super::http::{Body, BodyError};
use super::kept::Again;
use crate::cache::{Cache, Download, Origin, Progress};
use crate::meter::Meter;

/// Small, since clients that do not read leave pieces in memory.
const PIECE: usize = 32 << 10;
/// Pieces that wait for the client.
const AHEAD: usize = 1;
/// How often an answer that breaks off is asked for again.
const AGAIN_MAX: usize = 3;
const BROKEN: &str = "the host broke off";

/// Where a body comes from.
pub(super) enum Source {
    /// A whole file of this many bytes.
    Kept(Arc<File>, u64),
    /// A file that grows, and whether somebody else had it downloaded.
    Coming(Arc<Download>, bool),
    /// A host, for this client alone, on a connection that others can use then.
    Host(Incoming, Held),
}

/// A connection to a host while an answer comes on it.
pub(super) struct Held {
    pub(super) cache: Cache,
    pub(super) secure: bool,
    pub(super) at: HostPort,
    pub(super) origin: Origin,
}

impl Held {
    /// Lets others use it.
    pub(super) async fn release(self) {
        let origins = &self.cache.parts().origins;
        origins.keep(self.secure, &self.at, self.origin).await;
    }
}

/// What the client gets, as fast as its meter lets it. `again` asks for the answer again if it breaks off.
pub(super) fn body(source: Source, again: Option<Again>, meter: &Arc<Meter>) -> Body {
    let (sender, pieces) = mpsc::channel(AHEAD);
    let meter = Arc::clone(meter);
    tokio::spawn(async move {
        let mut out = Out {
            sender: &sender,
            meter: &meter,
            given: 0,
            at: 0,
            file: None,
        };
        if let Err(error) = feed(source, again, &mut out).await {
            let _ = sender.send(Err(error)).await;
        }
    });
    Pieces(pieces).boxed()
}

type Sent = mpsc::Sender<Result<Bytes, BodyError>>;

/// How a source ended before all of it was there.
enum Stopped {
    /// The host broke off; what came is in the file.
    Broken(Arc<File>),
    Failed(BodyError),
}

impl From<BodyError> for Stopped {
    fn from(error: BodyError) -> Stopped {
        Stopped::Failed(error)
    }
}

/// Gives the client all of an answer. Where it breaks off, the answer is asked for again, and goes on where the client is.
async fn feed(source: Source, again: Option<Again>, out: &mut Out<'_>) -> Result<(), BodyError> {
    let mut source = source;
    for _ in 0..AGAIN_MAX {
        match pour(source, out).await {
            Ok(()) => return Ok(()),
            Err(Stopped::Failed(error)) => return Err(error),
            Err(Stopped::Broken(file)) => out.begin_again(file),
        }
        let Some(again) = &again else {
            return Err(BROKEN.into());
        };
        source = tokio::select! {
            next = again.source() => next.ok_or(BROKEN)?,
            () = out.sender.closed() => return Ok(()),
        };
    }
    match pour(source, out).await {
        Err(Stopped::Failed(error)) => Err(error),
        Err(Stopped::Broken(_)) => Err(BROKEN.into()),
        Ok(()) => Ok(()),
    }
}

async fn pour(source: Source, out: &mut Out<'_>) -> Result<(), Stopped> {
    match source {
        Source::Kept(file, length) => {
            while out.at < length {
                out.piece(&file, length, true).await?;
            }
            Ok(())
        }
        Source::Coming(download, kept) => coming(&download, kept, out).await,
        Source::Host(mut body, held) => {
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame.map_err(BodyError::from)?.into_data() {
                    out.give(data, false).await?;
                }
            }
            held.release().await;
            Ok(())
        }
    }
}

async fn coming(download: &Download, kept: bool, out: &mut Out<'_>) -> Result<(), Stopped> {
    let mut progress = download.progress.clone();
    loop {
        let now = *progress.borrow_and_update();
        let there = match now {
            Progress::Coming(bytes) | Progress::Whole(bytes) => bytes,
            Progress::Broken => return Err(Stopped::Broken(Arc::clone(&download.file))),
            Progress::TooLarge => return Err(BodyError::from("it is larger than it may be").into()),
        };
        while out.at < there {
            out.piece(&download.file, there, kept).await?;
        }
        match now {
            Progress::Whole(_) => return Ok(()),
            // Also where the client has gone: then nobody reads.
            _ => tokio::select! {
                changed = progress.changed() => changed.map_err(BodyError::from)?,
                () = out.sender.closed() => return Ok(()),
            },
        }
    }
}

/// The client, and how much of an answer it has.
struct Out<'a> {
    sender: &'a Sent,
    meter: &'a Meter,
    /// Bytes that the client has.
    given: u64,
    /// Bytes of the present source that were read. Those that the client has are not given again.
    at: u64,
    /// What the client has, where its source broke off.
    file: Option<Arc<File>>,
}

impl Out<'_> {
    /// The next source has the answer from its beginning. `file` has what the last one gave.
    fn begin_again(&mut self, file: Arc<File>) {
        // The one before it may have given more.
        if self.file.is_none() || self.at >= self.given {
            self.file = Some(file);
        }
        self.at = 0;
    }

    /// Gives the next piece of a file that has `end` bytes.
    async fn piece(&mut self, file: &Arc<File>, end: u64, kept: bool) -> Result<(), BodyError> {
        let wanted = usize::try_from(end - self.at).unwrap_or(PIECE).min(PIECE);
        let bytes = read(file, self.at, wanted).await?;
        self.give(Bytes::from(bytes), kept).await
    }

    /// Gives the next bytes of the source. What the client has must be the same.
    async fn give(&mut self, mut bytes: Bytes, kept: bool) -> Result<(), BodyError> {
        let known = self.given.saturating_sub(self.at);
        let known = usize::try_from(known)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        if let Some(file) = self.file.as_ref().filter(|_| known > 0) {
            let had = read(file, self.at, known).await?;
            if had != bytes[..known] {
                return Err("the host has another answer now".into());
            }
        }
        self.at += bytes.len() as u64;
        let new = bytes.split_off(known);
        if !new.is_empty() {
            self.meter.pass(new.len(), kept).await?;
            self.given += new.len() as u64;
            self.sender.send(Ok(new)).await?;
        }
        Ok(())
    }
}

async fn read(file: &Arc<File>, at: u64, wanted: usize) -> Result<Vec<u8>, BodyError> {
    let file = Arc::clone(file);
    let read = move || {
        let mut bytes = vec![0; wanted];
        file.read_exact_at(&mut bytes, at)?;
        Ok::<_, io::Error>(bytes)
    };
    Ok(tokio::task::spawn_blocking(read).await??)
}

/// The pieces as a body.
struct Pieces(mpsc::Receiver<Result<Bytes, BodyError>>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = self.get_mut().0.poll_recv(cx);
        next.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
