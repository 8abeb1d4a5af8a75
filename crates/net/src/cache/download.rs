//! An answer on its way from a host into a file, which others read as it grows.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use http_cache_semantics::CachePolicy;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::HeaderMap;
use tokio::sync::watch;
use tokio::time::timeout;

use super::entry::{Stored, VERSION};
use super::flights::{Lead, Stage};
use super::shelf::Shelf;

/// How long a host may be silent within an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that are collected before they are written.
const PIECE: usize = 256 << 10;
/// The task, and the flight that tells others of it, hold a download; everybody else reads.
const HOLDERS: usize = 2;

/// How much of it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Coming(u64),
    /// All of it.
    Whole(u64),
    /// It broke off. Whoever asks again may get it.
    Broken,
    /// It is larger than an answer may be that is kept.
    TooLarge,
}

/// A body that is coming.
pub(crate) struct Download {
    policy: CachePolicy,
    pub(crate) headers: HeaderMap,
    /// As the host said it; none where it did not.
    pub(crate) length: Option<u64>,
    pub(crate) file: Arc<File>,
    pub(crate) progress: watch::Receiver<Progress>,
}

/// Removes an unfinished file.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Gone if it was published.
        let _ = fs::remove_file(&self.0);
    }
}

/// Begins a download; gives it, and the work of it. `begun` is what [`Shelf::begin`] gave.
pub(crate) fn download(
    shelf: Arc<Shelf>,
    lead: Lead,
    (policy, headers): (CachePolicy, HeaderMap),
    (file, path): (File, PathBuf),
    body: Incoming,
) -> (Arc<Download>, impl Future<Output = bool> + Send) {
    let (tell, progress) = watch::channel(Progress::Coming(0));
    let download = Arc::new(Download {
        policy,
        headers,
        length: body.size_hint().exact(),
        file: Arc::new(file),
        progress,
    });
    lead.tell(Stage::Coming(Arc::clone(&download)));
    let unfinished = Unfinished(path);
    let coming = Arc::clone(&download);
    let work = async move {
        let copied = copy(&coming, &shelf, &tell, body).await;
        let (bytes, checksum) = match copied {
            Ok(copied) => copied,
            Err(error) => {
                // First, so that who asks again does not find this download.
                drop(lead);
                tell.send_replace(match error.kind() {
                    io::ErrorKind::FileTooLarge => Progress::TooLarge,
                    _ => Progress::Broken,
                });
                return false;
            }
        };
        let stored = Stored {
            version: VERSION,
            key: lead.key().to_string(),
            body: String::new(),
            length: bytes,
            checksum,
            headers: coming.headers.clone(),
            policy: coming.policy.clone(),
        };
        let key = lead.key();
        // Published before it is said to be whole, so that who asks next finds it. What cannot be published was passed on all the same.
        let publish = move || {
            let _ = shelf.publish(key, &unfinished.0, stored);
        };
        let _ = tokio::task::spawn_blocking(publish).await;
        drop(lead);
        tell.send_replace(Progress::Whole(bytes));
        true
    };
    (download, work)
}

/// Copies a body; gives its length and checksum. Ends when nobody reads it any more.
async fn copy(
    download: &Arc<Download>,
    shelf: &Shelf,
    tell: &watch::Sender<Progress>,
    mut body: Incoming,
) -> io::Result<(u64, String)> {
    let mut hasher = blake3::Hasher::new();
    let (mut bytes, mut ended) = (0, false);
    while !ended {
        let mut pieces: Vec<Bytes> = Vec::new();
        let mut collected = 0;
        while collected < PIECE && !ended {
            // What is there is written before waiting for more.
            let waiting = if collected == 0 {
                PATIENCE
            } else {
                Duration::from_millis(1)
            };
            match timeout(waiting, body.frame()).await {
                Err(_) if collected > 0 => break,
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(None) => ended = true,
                Ok(Some(Err(error))) => return Err(io::Error::other(error)),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        collected += data.len();
                        pieces.push(data);
                    }
                }
            }
        }
        let file = Arc::clone(&download.file);
        let at = bytes;
        bytes += collected as u64;
        if bytes > download.length.unwrap_or_else(|| shelf.largest()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let write = move || {
            let mut at = at;
            for piece in &pieces {
                file.write_all_at(piece, at)?;
                at += piece.len() as u64;
                hasher.update(piece);
            }
            Ok::<_, io::Error>(hasher)
        };
        let written = tokio::task::spawn_blocking(write).await;
        hasher = written.map_err(io::Error::other)??;
        tell.send_replace(Progress::Coming(bytes));
        if !ended && Arc::strong_count(download) <= HOLDERS {
            return Err(io::Error::other("nobody reads it"));
        }
    }
    match download.length.is_none_or(|length| length == bytes) {
        true => Ok((bytes, hasher.finalize().to_hex().to_string())),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
