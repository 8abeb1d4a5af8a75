//! Requests that are answered before their body was read.
//!
//! A client that still sends when the connection closes gets EPIPE and never reads the answer. So the rest of such a body
//! is read and discarded for a while, beside the answer.

use crate::bounds::DRAIN_TIME;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A request's body. If it is dropped before its end, the rest is still read.
pub(crate) struct Heard(Option<Incoming>);

impl Heard {
    pub fn new(body: Incoming) -> Heard {
        Heard(Some(body))
    }
}

impl Body for Heard {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let rest = self.0.take().filter(|body| !body.is_end_stream());
        let (Some(mut rest), Ok(event_loop)) = (rest, tokio::runtime::Handle::try_current()) else {
            return;
        };
        event_loop.spawn(async move {
            let all = async { while let Some(Ok(_)) = rest.frame().await {} };
            let _ = tokio::time::timeout(DRAIN_TIME, all).await;
        });
    }
}
