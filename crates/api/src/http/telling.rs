//! Events on their way to somebody who may read slowly.

use avfs_runtime::HeldOutput;
use axum::response::sse::Event;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio_stream::Stream;

/// An event, and the memory that what it was made from takes.
pub(crate) struct Told {
    event: Event,
    held: Vec<HeldOutput>,
}

impl Told {
    pub fn new(event: Event) -> Told {
        Told::holding(event, Vec::new())
    }

    pub fn holding(event: Event, held: Vec<HeldOutput>) -> Told {
        Told { event, held }
    }
}

/// The events of a queue. What an event holds is given back when the next one is asked for: the connection does so when
/// it has sent the one before.
pub(crate) struct Telling {
    queue: mpsc::Receiver<Told>,
    held: Vec<HeldOutput>,
}

impl Telling {
    pub fn new(queue: mpsc::Receiver<Told>) -> Telling {
        Telling {
            queue,
            held: Vec::new(),
        }
    }
}

impl Stream for Telling {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.held.clear();
        let told = ready!(self.queue.poll_recv(context));
        Poll::Ready(told.map(|told| {
            self.held = told.held;
            Ok(told.event)
        }))
    }
}

/// Bytes cut into pieces of at most `most`, where a character ends if there are characters.
pub(crate) fn pieces(mut bytes: &[u8], most: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let mut end = bytes.len().min(most);
        let is_middle = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        let begins = (end.saturating_sub(3)..=end)
            .rev()
            .find(|at| !is_middle(*at));
        end = begins.filter(|at| *at > 0).unwrap_or(end);
        let (piece, rest) = bytes.split_at(end);
        bytes = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stay_whole_and_nothing_is_lost() {
        let text = "aä€😀".repeat(50);
        for most in 4..40 {
            let cut: Vec<&[u8]> = pieces(text.as_bytes(), most).collect();
            assert!(
                cut.iter()
                    .all(|piece| piece.len() <= most && !piece.is_empty())
            );
            assert!(cut.iter().all(|piece| std::str::from_utf8(piece).is_ok()));
            assert_eq!(cut.concat(), text.as_bytes());
        }
        let noise = [0x80_u8; 100];
        assert_eq!(pieces(&noise, 7).collect::<Vec<_>>().concat(), noise);
    }
}
