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
use crate::cache::{Cache, Download, Origin, Progress};
use crate::meter::Meter;

/// Small, since clients that do not read leave pieces in memory.
const PIECE: usize = 32 << 10;
/// Pieces that wait for the client.
const AHEAD: usize = 1;

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

/// What the client gets, as fast as its meter lets it.
pub(super) fn body(source: Source, meter: &Arc<Meter>) -> Body {
    let (sender, pieces) = mpsc::channel(AHEAD);
    let meter = Arc::clone(meter);
    tokio::spawn(async move {
        if let Err(error) = feed(source, &meter, &sender).await {
            let _ = sender.send(Err(error)).await;
        }
    });
    Pieces(pieces).boxed()
}

type Sent = mpsc::Sender<Result<Bytes, BodyError>>;

async fn feed(source: Source, meter: &Meter, sender: &Sent) -> Result<(), BodyError> {
    match source {
        Source::Kept(file, length) => {
            let mut at = 0;
            while at < length {
                at = piece(&file, at, length, (meter, true), sender).await?;
            }
            Ok(())
        }
        Source::Coming(download, kept) => coming(&download, (meter, kept), sender).await,
        Source::Host(mut body, held) => {
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame?.into_data() {
                    meter.pass(data.len(), false).await?;
                    sender.send(Ok(data)).await?;
                }
            }
            held.release().await;
            Ok(())
        }
    }
}

async fn coming(
    download: &Download,
    counts: (&Meter, bool),
    sender: &Sent,
) -> Result<(), BodyError> {
    let mut progress = download.progress.clone();
    let mut at = 0;
    loop {
        let now = *progress.borrow_and_update();
        let there = match now {
            Progress::Coming(bytes) | Progress::Whole(bytes) => bytes,
            Progress::Broken => return Err("the host broke off".into()),
        };
        while at < there {
            at = piece(&download.file, at, there, counts, sender).await?;
        }
        match now {
            Progress::Whole(_) => return Ok(()),
            // Also where the client has gone: then nobody reads.
            _ => tokio::select! {
                changed = progress.changed() => changed?,
                () = sender.closed() => return Ok(()),
            },
        }
    }
}

/// Sends the next piece of a file; gives where the one after it begins.
async fn piece(
    file: &Arc<File>,
    at: u64,
    end: u64,
    (meter, kept): (&Meter, bool),
    sender: &Sent,
) -> Result<u64, BodyError> {
    let wanted = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
    let file = Arc::clone(file);
    let read = move || {
        let mut bytes = vec![0; wanted];
        file.read_exact_at(&mut bytes, at)?;
        Ok::<_, io::Error>(bytes)
    };
    let bytes = tokio::task::spawn_blocking(read).await??;
    meter.pass(bytes.len(), kept).await?;
    sender.send(Ok(Bytes::from(bytes))).await?;
    Ok(at + wanted as u64)
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
