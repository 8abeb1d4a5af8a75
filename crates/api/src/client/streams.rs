//! Calls that take long or carry much data: progress, byte streams in and out.

use super::{Body, Client, Connection, broken, http_request, parse, sse::Parser};
use crate::error::{Error, Result};
use crate::wire::{Operation, ProgressEvent, RetriedEvent};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use std::io::{self, Read, Write};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Queued pieces of a stream.
const QUEUE: usize = 4;
const PIECE: usize = 256 << 10;

impl Client {
    /// Calls an operation that may take long, with progress. Dropping the connection cancels it.
    pub fn call_watched<O: Operation>(
        &mut self,
        vault: &str,
        request: &O,
        on_progress: &mut dyn FnMut(ProgressEvent),
    ) -> Result<O::Response> {
        self.event_loop
            .block_on(self.connection.call_watched(vault, request, on_progress))
    }

    /// Calls an operation whose request has a byte stream.
    pub fn upload<O: Operation>(
        &mut self,
        vault: &str,
        request: &O,
        bytes: impl Read + Send + 'static,
    ) -> Result<O::Response> {
        self.event_loop
            .block_on(self.connection.upload(vault, request, bytes))
    }

    /// Calls an operation whose answer is bytes; returns how many.
    pub fn download<O: Operation>(
        &mut self,
        vault: &str,
        request: &O,
        out: &mut dyn Write,
    ) -> Result<u64> {
        self.event_loop
            .block_on(self.connection.download(vault, request, out))
    }
}

impl Connection {
    async fn call_watched<O: Operation>(
        &mut self,
        vault: &str,
        request: &O,
        on_progress: &mut dyn FnMut(ProgressEvent),
    ) -> Result<O::Response> {
        let answer = self.send(vault, request, "text/event-stream").await?;
        let mut body = answer.into_body();
        let mut parser = Parser::default();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(broken)?.into_data() else {
                continue;
            };
            for message in parser.push(&data) {
                let data = message.data.as_bytes();
                match message.event.as_str() {
                    "progress" => on_progress(parse(data)?),
                    "retried" => self.retried.extend(parse::<RetriedEvent>(data)?.retried),
                    "result" => return parse(data),
                    "error" => return Err(Error::Refused(Box::new(parse(data)?))),
                    // A newer daemon may send events that this client does not know.
                    _ => {}
                }
            }
        }
        Err(Error::Broken {
            what: "it ended before the work did".into(),
        })
    }

    pub(super) async fn upload<O: Operation>(
        &mut self,
        vault: &str,
        request: &O,
        bytes: impl Read + Send + 'static,
    ) -> Result<O::Response> {
        if self.sender.ready().await.is_err() {
            *self = Connection::open(&self.place).await?;
        }
        let request = http_request(vault, request, "application/json", Some(stream(bytes)))?;
        let answer = self.send_made(request).await?;
        let bytes = answer.into_body().collect().await.map_err(broken)?;
        parse(&bytes.to_bytes())
    }

    async fn download<O: Operation>(
        &mut self,
        vault: &str,
        request: &O,
        out: &mut dyn Write,
    ) -> Result<u64> {
        let mut body = self.send(vault, request, "*/*").await?.into_body();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Error::Broken {
                what: "the stream broke off; the received data is incomplete".into(),
            })?;
            if let Ok(data) = frame.into_data() {
                out.write_all(&data).map_err(Error::Output)?;
                size += data.len() as u64;
            }
        }
        out.flush().map_err(Error::Output)?;
        Ok(size)
    }
}

/// Reads from a reader in a separate thread.
fn stream(mut bytes: impl Read + Send + 'static) -> Body {
    let (pieces, queue) = mpsc::channel::<io::Result<Frame<Bytes>>>(QUEUE);
    std::thread::spawn(move || {
        loop {
            let mut piece = vec![0; PIECE];
            let read = match bytes.read(&mut piece) {
                Ok(0) => return,
                Ok(size) => {
                    piece.truncate(size);
                    Ok(Frame::data(Bytes::from(piece)))
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            // The request has ended.
            if pieces.blocking_send(read).is_err() || failed {
                return;
            }
        }
    });
    StreamBody::new(ReceiverStream::new(queue)).boxed_unsync()
}
