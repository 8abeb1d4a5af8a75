//! `avfs mcp`: standard input and output pumped to the daemon, which has the only MCP server.

use super::{LINES_ROUTE, PROTOCOL};
use crate::daemon_paths::DaemonPaths;
use crate::error::{Error, Result};
use crate::wire::{
    CLASS_HEADER, Class, NAME_HEADER, Problem, SCOPES_HEADER, VAULTS_HEADER, VERSION,
    VERSION_HEADER,
};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONNECTION, HOST, UPGRADE};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as Stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::UnixStream;

/// What a client is to be given.
pub struct Ask {
    /// The names of toolsets, with commas between them.
    pub toolset: Option<String>,
    /// The vault that is meant where a call names none.
    pub vault: Option<String>,
    /// All vaults but these are given up.
    pub only_vaults: Option<String>,
    /// All scopes but these are given up.
    pub scopes: Option<String>,
}

/// A line to the daemon.
pub struct Line {
    stream: Stream,
    /// What came with the answer already.
    first: Bytes,
}

/// Connects to the daemon of a place; [`Error::NoDaemon`] when there is none.
pub fn connect(place: &DaemonPaths, ask: &Ask) -> Result<Line> {
    let event_loop = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Setup)?;
    event_loop.block_on(open(place, ask))
}

async fn open(place: &DaemonPaths, ask: &Ask) -> Result<Line> {
    let socket = place.reachable_socket()?;
    let Ok(stream) = UnixStream::connect(&socket).await else {
        return Err(Error::NoDaemon { socket });
    };
    let (mut sender, driver) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(driver.with_upgrades());
    let answer = sender.send_request(request(place, ask)?).await;
    let answer = answer.map_err(broken)?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        let body = answer.into_body().collect().await.map_err(broken)?;
        let problem = serde_json::from_slice::<Problem>(&body.to_bytes());
        let problem = problem.map_err(|error| Error::Nonsense {
            what: error.to_string(),
        })?;
        return Err(Error::Refused(Box::new(problem)));
    }
    let upgraded = hyper::upgrade::on(answer).await.map_err(broken)?;
    let parts = upgraded.downcast::<TokioIo<UnixStream>>();
    let parts = parts.map_err(|_| broken("the connection is of another kind"))?;
    let stream = parts.io.into_inner().into_std();
    let stream = stream.and_then(|stream| stream.set_nonblocking(false).map(|()| stream));
    Ok(Line {
        stream: stream.map_err(broken)?,
        first: parts.read_buf,
    })
}

fn request(place: &DaemonPaths, ask: &Ask) -> Result<Request<Empty<Bytes>>> {
    let fields = [("toolset", &ask.toolset), ("vault", &ask.vault)];
    let fields = fields.map(|(name, value)| Some((name, value.as_ref()?)));
    let fields: Vec<_> = fields.into_iter().flatten().collect();
    let query = serde_html_form::to_string(fields).map_err(nonsense)?;
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("{LINES_ROUTE}?{query}"))
        .header(HOST, "avfs")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, PROTOCOL)
        .header(VERSION_HEADER, VERSION)
        .header(CLASS_HEADER, Class::Agent.as_str());
    let limits = [
        (NAME_HEADER, place.caller_name()),
        (VAULTS_HEADER, ask.only_vaults.as_deref()),
        (SCOPES_HEADER, ask.scopes.as_deref()),
    ];
    for (name, value) in limits {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    request.body(Empty::new()).map_err(nonsense)
}

fn nonsense(error: impl ToString) -> Error {
    Error::Nonsense {
        what: error.to_string(),
    }
}

fn broken(error: impl ToString) -> Error {
    Error::Broken {
        what: error.to_string(),
    }
}

impl Line {
    /// Pumps until the daemon closes its end, which it does when all of `input` was answered. If it goes before, the
    /// client is to know: it can begin anew.
    pub fn pump(
        self,
        mut input: impl Read + Send + 'static,
        output: &mut impl Write,
    ) -> Result<()> {
        let Line { stream, first } = self;
        let mut there = stream.try_clone().map_err(Error::Output)?;
        let at_end = Arc::<AtomicBool>::default();
        let ended = Arc::clone(&at_end);
        // It may wait for input for ever: nobody waits for it.
        std::thread::spawn(move || {
            let _ = io::copy(&mut input, &mut there);
            ended.store(true, Ordering::Release);
            let _ = there.shutdown(Shutdown::Write);
        });
        output.write_all(&first).map_err(Error::Output)?;
        let mut back = stream;
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = back.read(&mut piece).map_err(broken)?;
            if length == 0 {
                return match at_end.load(Ordering::Acquire) {
                    true => Ok(()),
                    false => Err(broken("it has ended")),
                };
            }
            output.write_all(&piece[..length]).map_err(Error::Output)?;
            output.flush().map_err(Error::Output)?;
        }
    }
}
