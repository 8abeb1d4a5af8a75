//! A small answer of a host, for the daemon itself.

use std::sync::Arc;
use std::time::Duration;

use avfs_policy::HostPort;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue, USER_AGENT};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::dial::{self, AGENT, Stream};
use crate::error::Error;
use crate::net::Net;
use crate::service::Common;

/// For the whole of it.
const PATIENCE: Duration = Duration::from_secs(20);
const ANSWER_MAX: usize = 64 << 10;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    Body(Vec<u8>),
    /// Another status than 200.
    Refused(u16),
}

impl Net {
    /// Gets a path of a host, over TLS if `secure`. Blocks, and must not be called by a thread that serves. Redirections are not followed.
    pub fn fetch(
        &self,
        at: &HostPort,
        secure: bool,
        path: &str,
        authorization: Option<&str>,
    ) -> Result<Fetched, Error> {
        let failed = |why: String| Error::Fetch(at.clone(), why);
        let usual = at.port == if secure { 443 } else { 80 };
        let host = match usual {
            true => at.host.to_string(),
            false => at.to_string(),
        };
        let mut request = Request::get(path)
            .header(HOST, host)
            .header(USER_AGENT, AGENT);
        if let Some(authorization) = authorization {
            let value = HeaderValue::try_from(authorization);
            let mut value = value.map_err(|_| failed("its token fits no header".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Empty::<Bytes>::new());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let asked = timeout(PATIENCE, ask(&self.common, at, secure, request));
        let fetched = self.handle()?.block_on(asked);
        let fetched = fetched.map_err(|_| failed("it took too long".to_owned()))?;
        fetched.map_err(failed)
    }
}

async fn ask(
    common: &Arc<Common>,
    at: &HostPort,
    secure: bool,
    request: Request<Empty<Bytes>>,
) -> Result<Fetched, String> {
    let refused = |refusal: crate::refusal::Refusal| refusal.to_string();
    let mut stream: Box<dyn Stream> = dial::own(common, at).await.map_err(refused)?;
    if secure {
        stream = dial::secure(common, at, stream).await.map_err(refused)?;
    }
    let shaken = handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let status = answer.status();
    let fetched = match status.as_u16() {
        200 => {
            let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
            let body = body.map_err(|error| error.to_string())?;
            Fetched::Body(body.to_bytes().to_vec())
        }
        other => Fetched::Refused(other),
    };
    connection.abort();
    Ok(fetched)
}
