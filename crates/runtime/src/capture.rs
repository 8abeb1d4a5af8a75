//! What is kept of an output stream: its head and its tail, and how long it was.

use std::collections::VecDeque;

use crate::report::Captured;
use crate::spill::Spill;

/// Keeps at most `limit` bytes of a stream of any length; the whole of a longer one is spilled.
pub(crate) struct Capture {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    spill: Spill,
}

impl Capture {
    pub fn new(limit: usize, spill: Spill) -> Capture {
        Capture {
            limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            spill,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.total > self.limit as u64 {
            // Until now head and tail were all there was.
            let (first, second) = self.tail.as_slices();
            self.spill.add(&[&self.head, first, second], bytes);
        }
        let head_room = self.head_limit().saturating_sub(self.head.len());
        let (to_head, rest) = bytes.split_at(head_room.min(bytes.len()));
        self.head.extend_from_slice(to_head);
        let tail_limit = self.limit - self.head_limit();
        let rest = &rest[rest.len().saturating_sub(tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    pub fn finish(self) -> Captured {
        let mut bytes = self.head;
        bytes.extend(self.tail);
        let truncated = self.total > bytes.len() as u64;
        Captured {
            bytes,
            total: self.total,
            truncated,
            spilled: self.spill.written(),
        }
    }

    /// Errors tend to stand at the end, so the tail gets the larger half of an odd limit.
    fn head_limit(&self) -> usize {
        self.limit / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, pieces: &[&[u8]]) -> Captured {
        let nowhere = Spill::Over { written: 0 };
        let mut capture = Capture::new(limit, nowhere);
        pieces.iter().for_each(|piece| capture.push(piece));
        capture.finish()
    }

    #[test]
    fn short_output_is_kept_whole() {
        let kept = captured(10, &[b"abc", b"", b"defghij"]);
        assert_eq!(kept.bytes, b"abcdefghij");
        assert_eq!((kept.total, kept.truncated), (10, false));
    }

    #[test]
    fn long_output_keeps_head_and_tail() {
        let kept = captured(4, &[b"ab", b"cdefgh", b"ij"]);
        assert_eq!(kept.bytes, b"abij");
        assert_eq!((kept.total, kept.truncated), (10, true));
    }

    #[test]
    fn a_limit_of_nothing_counts_only() {
        let kept = captured(0, &[b"abc"]);
        assert_eq!((kept.bytes.len(), kept.total, kept.truncated), (0, 3, true));
    }
}
