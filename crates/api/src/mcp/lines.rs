//! JSON-RPC in lines, one message each, over any pair of streams. Every line and every queue has a bound.

use crate::bounds::{MCP_LINE_MAX, MCP_UNSENT_MAX};
use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

/// A client that sends and reads lines.
pub(crate) struct Lines<R, W> {
    read: BufReader<R>,
    /// What has come of the next line by now.
    line: Vec<u8>,
    /// The line is too long: its rest is thrown away.
    is_too_long: bool,
    write: Arc<Mutex<W>>,
    /// Messages that may wait for a client that does not read.
    room: Arc<Semaphore>,
    /// When it is cancelled, nothing more is written.
    cut: CancellationToken,
}

/// What came.
enum Next {
    Line,
    TooLong,
    End,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub fn new(read: R, write: W, cut: CancellationToken) -> Lines<R, W> {
        Lines {
            read: BufReader::new(read),
            line: Vec::new(),
            is_too_long: false,
            write: Arc::new(Mutex::new(write)),
            room: Arc::new(Semaphore::new(MCP_UNSENT_MAX)),
            cut,
        }
    }

    /// Reads to the end of a line. It may be given up at any time: what has come is kept.
    async fn next(&mut self) -> Next {
        loop {
            let Ok(arrived) = self.read.fill_buf().await else {
                return Next::End;
            };
            if arrived.is_empty() {
                return Next::End;
            }
            let end = arrived.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(arrived.len(), |end| end + 1);
            self.is_too_long |= self.line.len() + length > MCP_LINE_MAX;
            match self.is_too_long {
                true => self.line.clear(),
                false => self.line.extend_from_slice(&arrived[..length]),
            }
            self.read.consume(length);
            if end.is_some() {
                return match std::mem::take(&mut self.is_too_long) {
                    true => Next::TooLong,
                    false => Next::Line,
                };
            }
        }
    }

    async fn refuse(&mut self, error: ErrorData, id: Option<RequestId>) {
        // A client that cannot be told is found to be gone by the next read.
        let _ = self
            .send(TxJsonRpcMessage::<RoleServer>::error(error, id))
            .await;
    }
}

/// A message, or why it is none and whose it is; none where nobody waits for an answer.
type Read = Result<RxJsonRpcMessage<RoleServer>, Option<(ErrorData, Option<RequestId>)>>;

fn read(line: &[u8]) -> Read {
    let parse = serde_json::from_slice(line);
    parse.map_err(|_| {
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return Some((ErrorData::parse_error("this is no JSON", None), None));
        };
        let id = value.get("id").cloned();
        let id = id.and_then(|id| serde_json::from_value(id).ok());
        // What has no id is a notification of a kind that is not known here.
        let is_request = id.is_some() || value.get("method").is_none();
        is_request.then(|| (ErrorData::invalid_request("this is no request", None), id))
    })
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let text = serde_json::to_vec(&message);
        let write = Arc::clone(&self.write);
        let place = Arc::clone(&self.room).try_acquire_owned();
        let cut = self.cut.clone();
        async move {
            let _place = place;
            let mut text = text?;
            text.push(b'\n');
            let writing = async {
                let mut write = write.lock().await;
                write.write_all(&text).await?;
                write.flush().await
            };
            let written = cut.run_until_cancelled(writing).await;
            written.unwrap_or_else(|| Err(io::ErrorKind::ConnectionAborted.into()))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Who does not read its answers is not listened to.
            drop(self.room.acquire().await);
            match self.next().await {
                Next::End => return None,
                Next::TooLong => {
                    let what = format!("a message has at most {MCP_LINE_MAX} bytes");
                    let error = ErrorData::invalid_request(what, None);
                    self.refuse(error, None).await;
                    continue;
                }
                Next::Line => {}
            }
            let line = std::mem::take(&mut self.line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            match read(&line) {
                Ok(message) => return Some(message),
                Err(Some((error, id))) => self.refuse(error, id).await,
                Err(None) => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        let closing = async { self.write.lock().await.shutdown().await };
        // Whoever was cut off is not waited for: the connection closes when this is dropped.
        let closed = self.cut.run_until_cancelled(closing).await;
        closed.unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn received(input: &[u8]) -> (usize, String) {
        let mut written = Vec::new();
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let mut lines = Lines::new(input, ours, CancellationToken::new());
        let mut count = 0;
        while lines.receive().await.is_some() {
            count += 1;
        }
        lines.close().await.unwrap();
        drop(lines);
        theirs.read_to_end(&mut written).await.unwrap();
        (count, String::from_utf8(written).unwrap())
    }

    const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

    #[tokio::test]
    async fn what_is_no_message_is_refused_and_the_next_one_is_heard() {
        let input = format!("\n{{nonsense\n\r\n[1,2]\n{{\"id\":7,\"a\":1}}\n{PING}\r\n{PING}\n");
        let (count, said) = received(input.as_bytes()).await;
        assert_eq!(count, 2, "{said}");
        let lines: Vec<Value> = said
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let codes: Vec<_> = lines.iter().map(|it| it["error"]["code"].clone()).collect();
        assert_eq!(codes, [-32700, -32600, -32600]);
        assert_eq!(lines[2]["id"], 7, "who asked is told");
    }

    #[tokio::test]
    async fn a_line_without_an_end_takes_no_memory() {
        let mut input = vec![b'a'; 3 * MCP_LINE_MAX];
        input.extend_from_slice(format!("\n{PING}\n").as_bytes());
        let (count, said) = received(&input).await;
        assert_eq!(count, 1);
        assert!(said.contains("at most"), "{said}");
    }

    #[tokio::test]
    async fn deep_nesting_is_refused() {
        let deep = format!("{}{}\n{PING}\n", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(received(deep.as_bytes()).await.0, 1);
    }
}
