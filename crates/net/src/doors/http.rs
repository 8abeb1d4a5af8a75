//! HTTP from inside a sandbox: requests to the proxy, and requests on a connection for one host. Each request is decided on by
//! itself.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use avfs_policy::{Host, HostPort};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::forward::{Outside, forward};
use super::{head, kept, tunnel};
use crate::attempts::Door;
use crate::dial::{self, Stream};
use crate::execs::Connection;
use crate::refusal::Refusal;
use crate::relay::silence;
use crate::service::Service;
use crate::upstream::Proxy;

pub(super) type Body = BoxBody<Bytes, BodyError>;
pub(super) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// What a connection's requests are for.
pub(super) enum For {
    /// Whatever they name.
    Proxy,
    /// This host alone.
    Host(HostPort),
    /// This host alone, by TLS that has been opened.
    Opened(HostPort),
}

/// One connection from inside, with the connection to the host that its last request went to.
pub(super) struct Requests {
    pub(super) service: Arc<Service>,
    pub(super) connection: Arc<Connection>,
    target: For,
    pub(super) outside: Mutex<Option<Outside>>,
}

pub(super) async fn serve_proxy(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    stream: TcpStream,
) {
    serve(service, connection, For::Proxy, stream).await;
}

/// Serves requests for one host. Boxed, since a tunnel inside a proxy's connection has requests again.
pub(super) fn serve_host<'a>(
    service: &'a Arc<Service>,
    connection: &'a Arc<Connection>,
    at: &HostPort,
    stream: impl Stream + 'static,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(serve(service, connection, For::Host(at.clone()), stream))
}

/// Serves requests for one host, inside TLS that has been opened.
pub(super) fn serve_opened<'a>(
    service: &'a Arc<Service>,
    connection: &'a Arc<Connection>,
    at: &HostPort,
    stream: impl Stream + 'static,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(serve(service, connection, For::Opened(at.clone()), stream))
}

async fn serve(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    target: For,
    stream: impl Stream + 'static,
) {
    let bounds = *service.bounds();
    let requests = Arc::new(Requests {
        service: Arc::clone(service),
        connection: Arc::clone(connection),
        target,
        outside: Mutex::default(),
    });
    let answer = service_fn(move |request| {
        let requests = Arc::clone(&requests);
        async move { Ok::<_, Infallible>(requests.answer(request).await) }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.greeting_time.max(bounds.idle_time.min(KEPT_ALIVE)))
        .max_header_size(bounds.header_bytes)
        .max_headers(MAX_HEADERS)
        .max_buf_size(bounds.header_bytes * 2)
        .half_close(true);
    let served = server
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades();
    tokio::select! {
        ended = served => if ended.is_err_and(|error| error.is_parse()) {
            connection.refused(Door::Http, &Refusal::Malformed("it is no request of HTTP/1.1"));
        },
        () = silence(&connection.meter, bounds.idle_time) => {}
        () = connection.cut.cancelled() => {}
    }
    if let Some(refusal) = connection.spent() {
        connection.refused(Door::Http, &refusal);
    }
}

const MAX_HEADERS: usize = 128;
/// How long a connection without a request is kept.
const KEPT_ALIVE: std::time::Duration = std::time::Duration::from_secs(60);

impl Requests {
    async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let door = match request.method() == Method::CONNECT {
            true => Door::Connect,
            false => Door::Http,
        };
        let answered = match (door, &self.target) {
            (Door::Connect, For::Proxy) => self.connect(request).await,
            _ => self.pass_on(request).await,
        };
        answered.unwrap_or_else(|refusal| {
            self.connection.refused(door, &refusal);
            problem(&refusal)
        })
    }

    /// Decides on a request, and passes it on.
    async fn pass_on(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let (head, body) = request.into_parts();
        let names = &self.service.names;
        let at = match &self.target {
            For::Proxy => head::target_of_proxied(&head, names)?,
            For::Host(at) | For::Opened(at) => {
                head::check_direct(&head, names, at)?;
                at.clone()
            }
        };
        self.connection.open(Door::Http, &at)?;
        self.connection.check_request(&at, &head)?;
        if body.is_end_stream()
            && let Some(answer) = kept::answer(self, &at, &head).await?
        {
            return Ok(answer);
        }
        forward(self, &at, Request::from_parts(head, body)).await
    }

    pub(super) fn is_secure(&self) -> bool {
        matches!(self.target, For::Opened(_))
    }

    /// The host's proxy for requests that are not inside TLS.
    pub(super) fn plain_proxy(&self, host: &Host) -> Option<&Proxy> {
        let upstream = &self.service.common.config.upstream;
        upstream.request(host).filter(|_| !self.is_secure())
    }

    async fn connect(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let at = head::target_of_connect(request.uri(), &self.service.names)?;
        self.connection.open(Door::Connect, &at)?;
        // Requests dial for themselves.
        let dialled = match tunnel::has_requests(&self.connection, &at) {
            true => None,
            false => Some(dial::tunnel(&self.service.common, &self.connection, &at).await?),
        };
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let Ok(inside) = hyper::upgrade::on(request).await else {
                return;
            };
            let inside = TokioIo::new(inside);
            tunnel::run(
                &this.service,
                &this.connection,
                Door::Connect,
                &at,
                inside,
                dialled,
            )
            .await;
        });
        Ok(Response::new(empty()))
    }
}

pub(super) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed()
}

/// A refusal as an answer. The connection is closed, so that what follows an unread body is not taken for a request.
pub(super) fn problem(refusal: &Refusal) -> Response<Body> {
    let text = serde_json::to_vec(&refusal.problem()).unwrap_or_default();
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
    let mut answer = Response::new(body.boxed());
    *answer.status_mut() = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::FORBIDDEN);
    let headers = answer.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
