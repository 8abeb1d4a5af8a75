//! Connections: how many there are, and how long each may take to send a request and to read the answer.

use crate::auth::Proof;
use crate::bounds::{HEAD_MAX, HEAD_TIME, HEADERS_MAX, UNREAD_TIME};
use crate::crowd::{Busy, Crowd, Full, Place, Room};
use crate::error::{Error, Result};
use crate::heard::Heard;
use crate::ops::app::App;
use crate::ops::caller::Peer;
use crate::ops::failure::Failure;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

/// The answer for a process with too many connections.
const TOO_MANY: &str = "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"kind\":\"Unavailable\",\"detail\":\"this process has too many connections\",\"hint\":\"close some\"}";

/// The answer while the clock is wrong: HTTP has no date before 1970, and hyper panics on one.
const NO_TIME: &str = "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"kind\":\"Unavailable\",\"detail\":\"the clock of this machine is before 1970\",\"hint\":\"set the clock\"}";

/// A listener.
pub(crate) trait Door: Send + 'static {
    type Stream: Send + Sync + 'static;
    /// A connection that is ready for HTTP.
    type Open: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    const ROOM: Room;

    /// The next connection of a client that may connect.
    fn accept(&mut self) -> impl Future<Output = (Self::Stream, Peer)> + Send;

    /// Makes a connection ready for HTTP.
    fn open(
        &self,
        stream: Self::Stream,
    ) -> impl Future<Output = io::Result<Self::Open>> + Send + 'static;

    /// Writes to a new connection without waiting.
    fn tell(&self, stream: &Self::Stream, bytes: &[u8]) -> io::Result<usize>;
}

/// How long to wait for a place when all are taken.
const LOOK_FOR_PLACE: Duration = Duration::from_millis(20);
/// How often a connection's credential is checked for its end.
const LOOK_AT_CREDENTIAL: Duration = Duration::from_secs(10);

/// Serves until the sender of `closed` is dropped, then until every connection has its answer.
pub(crate) async fn serve<D: Door>(
    mut door: D,
    app: Arc<App>,
    router: Router,
    mut closed: watch::Receiver<()>,
) {
    let crowd = Crowd::new(D::ROOM);
    loop {
        let enter = async {
            let (stream, peer) = door.accept().await;
            let place = enter(&crowd, peer).await;
            (stream, peer, place)
        };
        let (stream, peer, place) = tokio::select! {
            entered = enter => entered,
            _ = closed.changed() => break,
        };
        if check_clock(SystemTime::now()).is_err() {
            refuse(&door, &stream, NO_TIME);
            continue;
        }
        let Some(place) = place else {
            refuse(&door, &stream, TOO_MANY);
            continue;
        };
        let connection = Connection {
            app: Arc::clone(&app),
            peer,
            open: Open::new(place),
        };
        let opening = door.open(stream);
        tokio::spawn(connection.converse(opening, router.clone(), closed.clone()));
    }
    // Clients that do not read are not waited for forever: see the caller.
    crowd.empty().await;
}

/// A place for a connection; `None` if its client has too many. When all places are taken, new connections wait in the
/// kernel's queue.
async fn enter(crowd: &Arc<Crowd>, peer: Peer) -> Option<Place> {
    loop {
        match crowd.enter(peer.share()) {
            Ok(place) => return Some(place),
            Err(Full::OfOne) => return None,
            Err(Full::Total) => tokio::time::sleep(LOOK_FOR_PLACE).await,
        }
    }
}

/// Whether the clock is after 1970.
pub(crate) fn check_clock(now: SystemTime) -> Result<()> {
    match now < UNIX_EPOCH {
        true => Err(Error::Clock),
        false => Ok(()),
    }
}

fn refuse<D: Door>(door: &D, stream: &D::Stream, problem: &str) {
    let length = problem.len();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         connection: close\r\nretry-after: 1\r\ncontent-length: {length}\r\n\r\n{problem}"
    );
    let _ = door.tell(stream, answer.as_bytes());
}

/// A connection as its requests see it. It is counted until the last copy is dropped: whoever turns a connection into
/// another protocol keeps one.
#[derive(Clone)]
pub(crate) struct Open {
    place: Arc<Place>,
    /// The last credential that was shown.
    shown: Arc<Mutex<Option<Proof>>>,
}

impl Open {
    fn new(place: Place) -> Open {
        Open {
            place: Arc::new(place),
            shown: Arc::default(),
        }
    }

    fn shown(&self) -> MutexGuard<'_, Option<Proof>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, proof: Proof) {
        *self.shown() = Some(proof);
    }

    /// The connection is at work until the guard is dropped, and makes no room for others.
    pub fn busy(&self) -> Busy {
        self.place.busy()
    }

    /// Counts one more request of its credential, or refuses it.
    pub fn take_turn(&self, app: &App) -> std::result::Result<(), Failure> {
        match self.shown().as_ref() {
            Some(proof) => app.auth.take_turn(proof),
            None => Ok(()),
        }
    }

    /// Returns when the connection has to be closed: it makes room, or its credential is no longer valid.
    pub async fn lost(&self, app: &App) {
        tokio::select! {
            () = self.place.dismissed() => {}
            () = self.credential_gone(app) => {}
        }
    }

    async fn credential_gone(&self, app: &App) {
        let mut changes = app.auth.keys.changes();
        let is_good = || {
            let shown = self.shown();
            shown.as_ref().is_none_or(|it| app.auth.is_good(&it.source))
        };
        while is_good() {
            let _ = tokio::time::timeout(LOOK_AT_CREDENTIAL, changes.changed()).await;
        }
    }
}

/// One connection.
struct Connection {
    app: Arc<App>,
    peer: Peer,
    open: Open,
}

impl Connection {
    async fn converse<S>(
        self,
        opening: impl Future<Output = io::Result<S>> + Send,
        router: Router,
        mut closed: watch::Receiver<()>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let opened = tokio::select! {
            opened = tokio::time::timeout(HEAD_TIME, opening) => opened,
            () = self.open.place.dismissed() => return,
        };
        let Ok(Ok(stream)) = opened else {
            return;
        };
        let patient = Arc::<AtomicBool>::default();
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&patient)));
        let router = TowerToHyperService::new(router);
        let (peer, open) = (self.peer, self.open.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(open.clone());
            patient.store(false, Ordering::Relaxed);
            let busy = open.place.makes_room().then(|| open.busy());
            let (answer, patient) = (router.call(request.map(Heard::new)), Arc::clone(&patient));
            async move {
                let answer = answer.await?;
                // A command waits for the reader of its output, as with a pipe.
                let events = answer.headers().get(CONTENT_TYPE);
                let events = events.is_some_and(|kind| kind == "text/event-stream");
                let stays = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
                patient.store(events || stays, Ordering::Relaxed);
                Ok::<_, std::convert::Infallible>(match busy {
                    Some(busy) => answer.map(|body| Body::new(Lasting { body, _busy: busy })),
                    None => answer,
                })
            }
        });
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD_MAX)
                .max_headers(HEADERS_MAX)
                .serve_connection(io, service)
                .with_upgrades()
        );
        // The other end knows how the connection ended.
        tokio::select! {
            _ = connection.as_mut() => return,
            () = self.open.lost(&self.app) => return,
            _ = closed.changed() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }
}

/// An answer that is being sent.
struct Lasting {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for Lasting {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that breaks if its other end does not read for too long, unless it has no limit.
struct Watched<S> {
    stream: S,
    patient: Arc<AtomicBool>,
    /// Since when writing has been blocked.
    unread: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    fn new(stream: S, patient: Arc<AtomicBool>) -> Watched<S> {
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

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
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
}
