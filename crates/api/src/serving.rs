//! Connections: how many there are, and how long each may take to send a request and to read the answer.

use crate::bounds::{CONNECTIONS_MAX, CONNECTIONS_OF_ONE_MAX, HEAD_MAX, HEAD_TIME, UNREAD_TIME};
use crate::daemon::OwnUser;
use crate::error::{Error, Result};
use crate::heard::Heard;
use crate::ops::caller::Peer;
use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::HashMap;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep};

/// The answer for a process with too many connections.
const TOO_MANY: &str = "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"kind\":\"Unavailable\",\"detail\":\"this process has too many connections\",\"hint\":\"close some\"}";

/// The answer while the clock is wrong: HTTP has no date before 1970, and hyper panics on one.
const NO_TIME: &str = "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"kind\":\"Unavailable\",\"detail\":\"the clock of this machine is before 1970\",\"hint\":\"set the clock\"}";

/// Serves until the sender of `closed` is dropped, then until every connection has its answer.
pub(crate) async fn serve(mut listener: OwnUser, router: Router, mut closed: watch::Receiver<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let counts = Arc::<Counts>::default();
    loop {
        let accept = async {
            // When all places are taken, new connections wait in the kernel's queue.
            let place = Arc::clone(&places).acquire_owned().await.ok();
            (listener.accept().await, place)
        };
        let (stream, place) = tokio::select! {
            accepted = accept => accepted,
            _ = closed.changed() => break,
        };
        if check_clock(SystemTime::now()).is_err() {
            refuse(&stream, NO_TIME);
            continue;
        }
        let peer = Peer::of(&stream);
        match Counts::enter(&counts, peer.pid) {
            Some(count) => {
                let counted = Arc::new((place, count));
                let connection = converse(stream, peer, counted, router.clone(), closed.clone());
                tokio::spawn(connection);
            }
            None => refuse(&stream, TOO_MANY),
        }
    }
    // Clients that do not read are not waited for forever: see the caller.
    let _ = places.acquire_many(CONNECTIONS_MAX as u32).await;
}

/// Whether the clock is after 1970.
pub(crate) fn check_clock(now: SystemTime) -> Result<()> {
    match now < UNIX_EPOCH {
        true => Err(Error::Clock),
        false => Ok(()),
    }
}

fn refuse(stream: &UnixStream, problem: &str) {
    let length = problem.len();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         connection: close\r\nretry-after: 1\r\ncontent-length: {length}\r\n\r\n{problem}"
    );
    // A new connection has buffer space for it.
    let _ = stream.try_write(answer.as_bytes());
}

/// What a connection counts as. It goes with every request: a connection that is turned into another kind is held by
/// whoever does that.
type Open = Arc<(Option<OwnedSemaphorePermit>, Counted)>;

async fn converse(
    stream: UnixStream,
    peer: Peer,
    open: Open,
    router: Router,
    mut closed: watch::Receiver<()>,
) {
    let patient = Arc::<AtomicBool>::default();
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&patient)));
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(Arc::clone(&open));
        patient.store(false, Ordering::Relaxed);
        let (answer, patient) = (router.call(request.map(Heard::new)), Arc::clone(&patient));
        async move {
            let answer = answer.await?;
            // A command waits for the reader of its output, as with a pipe.
            let events = answer.headers().get(CONTENT_TYPE);
            let events = events.is_some_and(|kind| kind == "text/event-stream");
            let stays = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
            patient.store(events || stays, Ordering::Relaxed);
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(HEAD_MAX)
            .serve_connection(io, service)
            .with_upgrades()
    );
    // The other end knows how the connection ended.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closed.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// How many connections each process has.
#[derive(Default)]
struct Counts(Mutex<HashMap<Option<i32>, usize>>);

/// One connection of a process.
struct Counted {
    counts: Arc<Counts>,
    pid: Option<i32>,
}

impl Counts {
    fn enter(counts: &Arc<Counts>, pid: Option<i32>) -> Option<Counted> {
        let mut by_process = counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_process.entry(pid).or_default();
        if *count >= CONNECTIONS_OF_ONE_MAX {
            return None;
        }
        *count += 1;
        let counts = Arc::clone(counts);
        Some(Counted { counts, pid })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut by_process = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_process.get_mut(&self.pid) {
            *count -= 1;
            if *count == 0 {
                by_process.remove(&self.pid);
            }
        }
    }
}

/// A connection that breaks if its other end does not read for too long, unless it has no limit.
struct Watched {
    stream: UnixStream,
    patient: Arc<AtomicBool>,
    /// Since when writing has been blocked.
    unread: Option<Pin<Box<Sleep>>>,
}

impl Watched {
    fn new(stream: UnixStream, patient: Arc<AtomicBool>) -> Watched {
        Watched {
            stream,
            patient,
            unread: None,
        }
    }

    /// Passes on the result of a write, with a timeout.
    fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() || self.patient.load(Ordering::Relaxed) {
            self.unread = None;
            return written;
        }
        let unread = self.unread.get_or_insert_with(|| {
            Box::pin(tokio::time::sleep_until(Instant::now() + UNREAD_TIME))
        });
        match unread.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.watch(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Problem;

    #[test]
    fn who_is_not_served_is_told_why() {
        for problem in [TOO_MANY, NO_TIME] {
            let problem: Problem = serde_json::from_str(problem).unwrap();
            let kind = avfs_runtime::ErrorKind::parse(&problem.kind);
            assert_eq!(kind, Some(avfs_runtime::ErrorKind::Unavailable));
        }
    }

    #[test]
    fn a_clock_before_1970_is_refused() {
        let second = std::time::Duration::from_secs(1);
        assert!(matches!(
            check_clock(UNIX_EPOCH - second),
            Err(Error::Clock)
        ));
        for fine in [UNIX_EPOCH, SystemTime::now()] {
            check_clock(fine).unwrap();
        }
    }

    #[test]
    fn connections_are_counted_by_process() {
        let counts = Arc::<Counts>::default();
        let one: Vec<_> = (0..CONNECTIONS_OF_ONE_MAX)
            .map(|_| Counts::enter(&counts, Some(1)).unwrap())
            .collect();
        assert!(Counts::enter(&counts, Some(1)).is_none());
        assert!(Counts::enter(&counts, Some(2)).is_some());
        drop(one);
        assert!(Counts::enter(&counts, Some(1)).is_some());
        assert!(counts.0.lock().unwrap().is_empty(), "nobody is remembered");
    }
}
