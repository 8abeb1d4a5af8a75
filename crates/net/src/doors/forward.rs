//! A request that has been allowed, on its way to the host and back.

use std::sync::Arc;

use avfs_policy::HostPort;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HeaderValue, PROXY_AUTHORIZATION};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use super::head;
use super::http::{Body, Requests};
use crate::dial::{self, Stream};
use crate::execs::Connection;
use crate::refusal::Refusal;
use crate::relay::relay;

/// A connection to a host, or to the proxy before it, that can take another request.
pub(super) struct Outside {
    at: HostPort,
    sender: SendRequest<Incoming>,
}

/// Passes a request on, on the connection of the last one if that was for the same host.
pub(super) async fn forward(
    requests: &Arc<Requests>,
    at: &HostPort,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let websocket = head::wants_websocket(request.headers());
    let inside = websocket.then(|| hyper::upgrade::on(&mut request));
    let proxy = requests.plain_proxy(&at.host);
    let (mut head, body) = request.into_parts();
    head::strip_hop_by_hop(&mut head.headers, websocket);
    head::address(&mut head, at, requests.is_secure(), proxy.is_some())?;
    if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.as_ref()) {
        let value = HeaderValue::try_from(authorization);
        let value =
            value.map_err(|_| Refusal::Malformed("the host's proxy has no usable password"))?;
        head.headers.insert(PROXY_AUTHORIZATION, value);
    }
    let secrets = requests
        .connection
        .secrets(at, requests.is_secure(), &head)?;
    for (name, value) in secrets {
        head.headers.insert(name, value);
    }
    let answer = send(requests, at, Request::from_parts(head, body)).await?;
    answered(requests, at, answer, inside).await
}

async fn send(
    requests: &Arc<Requests>,
    at: &HostPort,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, Refusal> {
    let failed = |error: hyper::Error| Refusal::Unreachable(at.clone(), error.to_string());
    let mut outside = requests.outside.lock().await;
    let mut request = request;
    if let Some(mut kept) = outside.take().filter(|kept| kept.at == *at)
        && kept.sender.ready().await.is_ok()
    {
        match kept.sender.try_send_request(request).await {
            Ok(answer) => {
                *outside = Some(kept);
                return Ok(answer);
            }
            // The host had closed it meanwhile. What was not sent can be sent again.
            Err(mut error) => match error.take_message() {
                Some(unsent) => request = unsent,
                None => return Err(failed(error.into_error())),
            },
        }
    }
    let mut sender = connect(requests, at).await?;
    let answer = sender.send_request(request).await.map_err(failed)?;
    *outside = Some(Outside {
        at: at.clone(),
        sender,
    });
    Ok(answer)
}

async fn connect(
    requests: &Arc<Requests>,
    at: &HostPort,
) -> Result<SendRequest<Incoming>, Refusal> {
    let (common, connection) = (&requests.service.common, &requests.connection);
    let stream: Box<dyn Stream> = match requests.plain_proxy(&at.host) {
        Some(proxy) => Box::new(dial::proxy(common, connection, proxy, at).await?),
        None => {
            let stream = dial::tunnel(common, connection, at).await?;
            match requests.is_secure() {
                true => dial::secure(common, at, stream).await?,
                false => Box::new(stream),
            }
        }
    };
    let (sender, outside) = handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Refusal::Unreachable(at.clone(), error.to_string()))?;
    let connection = Arc::clone(connection);
    tokio::spawn(async move {
        tokio::select! {
            _ = outside.with_upgrades() => {}
            () = connection.cut.cancelled() => {}
        }
    });
    Ok(sender)
}

/// The answer of the host, as it is passed back.
async fn answered(
    requests: &Arc<Requests>,
    at: &HostPort,
    mut answer: Response<Incoming>,
    inside: Option<OnUpgrade>,
) -> Result<Response<Body>, Refusal> {
    let switches = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    match inside {
        Some(inside) if switches => {
            let outside = hyper::upgrade::on(&mut answer);
            let idle = requests.service.bounds().idle_time;
            let connection = Arc::clone(&requests.connection);
            tokio::spawn(async move { join(connection, idle, inside, outside).await });
        }
        _ if switches => {
            let why = "it switched protocols without being asked".to_owned();
            return Err(Refusal::Unreachable(at.clone(), why));
        }
        _ => {}
    }
    head::strip_hop_by_hop(answer.headers_mut(), switches);
    Ok(answer.map(|body| body.map_err(Into::into).boxed()))
}

async fn join(
    connection: Arc<Connection>,
    idle: std::time::Duration,
    inside: OnUpgrade,
    outside: OnUpgrade,
) {
    let (Ok(inside), Ok(outside)) = tokio::join!(inside, outside) else {
        return;
    };
    let (mut inside, mut outside) = (TokioIo::new(inside), TokioIo::new(outside));
    tokio::select! {
        () = relay(&connection, idle, &mut inside, &mut outside) => {}
        () = connection.cut.cancelled() => {}
    }
}
