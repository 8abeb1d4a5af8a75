//! Requests of the daemon to services that its owner named: an identity provider's keys, a collector of traces.
//!
//! Plain HTTP is for this machine alone. Redirects are not followed, and answers have a limit and a time.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Bytes of an answer.
const ANSWER_MAX: usize = 1 << 20;
/// How long a request may take, with its answer.
const TIME: Duration = Duration::from_secs(10);

/// The address of such a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceUrl {
    uri: Uri,
    host: String,
    port: u16,
    is_tls: bool,
}

impl ServiceUrl {
    /// Reads an address; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<ServiceUrl, String> {
        let uri: Uri = text.parse().map_err(|_| format!("{text:?} is no URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(format!("{text:?} begins with neither https:// nor http://")),
        };
        let authority = uri.authority().map(|it| it.as_str()).unwrap_or_default();
        let host = uri.host().unwrap_or_default();
        if host.is_empty() || authority.contains('@') {
            return Err(format!("{text:?} has no plain host"));
        }
        let host = host.trim_matches(['[', ']']).to_owned();
        let is_here = host == "localhost"
            || host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if !is_tls && !is_here {
            return Err(format!("{text:?} is not https, and not on this machine"));
        }
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(ServiceUrl {
            host,
            port,
            is_tls,
            uri,
        })
    }

    /// That service, at a path behind its own.
    pub fn join(&self, path: &str) -> Result<ServiceUrl, String> {
        let whole = self.uri.to_string();
        ServiceUrl::parse(&format!("{}{path}", whole.trim_end_matches('/')))
    }

    /// The content at the address, for a program that has no event loop yet.
    pub(crate) fn get_now(&self) -> Result<Vec<u8>, String> {
        let made = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        made.map_err(|error| error.to_string())?
            .block_on(self.get())
    }

    /// The content at the address.
    pub(crate) async fn get(&self) -> Result<Vec<u8>, String> {
        self.ask(Method::GET, Bytes::new()).await
    }

    /// Sends JSON.
    pub(crate) async fn post(&self, json: Vec<u8>) -> Result<(), String> {
        self.ask(Method::POST, json.into()).await.map(drop)
    }

    async fn ask(&self, method: Method, body: Bytes) -> Result<Vec<u8>, String> {
        let asked = tokio::time::timeout(TIME, self.connect_and_ask(method, body)).await;
        let seconds = TIME.as_secs();
        asked.unwrap_or_else(|_| Err(format!("no answer within {seconds} s")))
    }

    async fn connect_and_ask(&self, method: Method, body: Bytes) -> Result<Vec<u8>, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(|error| error.to_string())?;
        if !self.is_tls {
            return self.ask_over(stream, method, body).await;
        }
        let name = ServerName::try_from(self.host.clone()).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::clone(&TRUSTED));
        let stream = connector.connect(name, stream).await;
        let stream = stream.map_err(|error| error.to_string())?;
        self.ask_over(stream, method, body).await
    }

    async fn ask_over<S>(&self, stream: S, method: Method, body: Bytes) -> Result<Vec<u8>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let failed = |error: hyper::Error| error.to_string();
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(failed)?;
        let driver = tokio::spawn(connection);
        let path = self.uri.path_and_query().map_or("/", |it| it.as_str());
        let authority = self.uri.authority().map(|it| it.as_str());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, authority.unwrap_or_default())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        let answer = sender.send_request(request).await.map_err(failed)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
        driver.abort();
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        match status.is_success() {
            true => Ok(body.to_vec()),
            false => Err(format!("it answered {status}")),
        }
    }
}

impl std::fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.uri.fmt(f)
    }
}

/// The authorities that this machine trusts.
static TRUSTED: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    // Without any, every certificate is refused, which the error of a request says.
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_others_could_read_or_change_are_refused() {
        for fine in [
            "https://id.example/jwks.json",
            "https://id.example:8443/a?b=c",
            "http://127.0.0.1:9/keys",
            "http://localhost/keys",
            "http://[::1]:9/keys",
        ] {
            assert!(ServiceUrl::parse(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "http://id.example/jwks.json",
            "http://127.0.0.1.evil.example/",
            "http://user@127.0.0.1/",
            "https://user:secret@id.example/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "/keys",
            "https://",
            "",
        ] {
            assert!(ServiceUrl::parse(wrong).is_err(), "{wrong}");
        }
        let base = ServiceUrl::parse("http://127.0.0.1:4318/").unwrap();
        let traces = base.join("/v1/traces").unwrap();
        assert_eq!(traces.uri, "http://127.0.0.1:4318/v1/traces");
    }
}
