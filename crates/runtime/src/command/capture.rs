//! What is kept of an output stream: its head and its tail, and how long it was.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bounds::OUTPUT_HELD_MAX;
use crate::command::report::Captured;
use crate::command::spill::Spill;

/// What every stream may hold, however much others do; half as much again goes to its tail.
const OWN: usize = 16 << 10;

/// The memory for captured output, which all commands share.
#[derive(Debug, Default)]
pub(crate) struct Room {
    taken: AtomicUsize,
}

/// A share of the memory for captured output, given back when dropped.
#[derive(Debug)]
pub struct HeldOutput {
    room: Arc<Room>,
    weight: usize,
}

impl HeldOutput {
    fn nothing(room: &Arc<Room>) -> HeldOutput {
        HeldOutput {
            room: room.clone(),
            weight: 0,
        }
    }

    /// Whether there was room for so much more.
    fn grow(&mut self, weight: usize) -> bool {
        let taken = &self.room.taken;
        let fits = |now: usize| {
            now.checked_add(weight)
                .filter(|new| *new <= OUTPUT_HELD_MAX)
        };
        let grown = taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok();
        if grown {
            self.weight += weight;
        }
        grown
    }

    fn shrink(&mut self, weight: usize) {
        let weight = weight.min(self.weight);
        self.weight -= weight;
        self.room.taken.fetch_sub(weight, Ordering::Relaxed);
    }
}

impl Drop for HeldOutput {
    fn drop(&mut self) {
        self.shrink(self.weight);
    }
}

/// Keeps at most so many bytes of a stream of any length; the whole of a longer one is spilled.
pub(crate) struct Capture {
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    spill: Spill,
    held: HeldOutput,
}

impl Capture {
    pub fn new(limit: usize, spill: Spill, room: &Arc<Room>) -> Capture {
        // Errors tend to stand at the end, so the tail gets the larger half of an odd limit.
        let head_limit = limit / 2;
        Capture {
            head_limit,
            tail_limit: limit - head_limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            spill,
            held: HeldOutput::nothing(room),
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.make_room(bytes);
        if self.total > (self.head_limit + self.tail_limit) as u64 {
            // Until now head and tail were all there was.
            let (first, second) = self.tail.as_slices();
            self.spill.add(&[&self.head, first, second], bytes);
        }
        let head_room = self.head_limit.saturating_sub(self.head.len());
        let (to_head, rest) = bytes.split_at(head_room.min(bytes.len()));
        self.head.extend_from_slice(to_head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        let dropped: usize = self.tail.drain(..excess).map(weight_of).sum();
        self.held.shrink(dropped);
        self.tail.extend(rest);
    }

    /// Takes memory for what is added; where there is none left, the stream keeps no more than it has by now.
    fn make_room(&mut self, bytes: &[u8]) {
        let kept = self.head.len() + self.tail.len();
        let added = bytes.len().min(self.head_limit + self.tail_limit);
        if kept + added <= OWN {
            return;
        }
        let weight: usize = bytes[bytes.len() - added..]
            .iter()
            .copied()
            .map(weight_of)
            .sum();
        if !self.held.grow(weight) {
            self.head_limit = self.head_limit.min(self.head.len().max(OWN / 2));
            self.tail_limit = self.tail_limit.min(self.tail.len().max(OWN / 2));
        }
    }

    /// What was kept, and the memory it takes.
    pub fn finish(self) -> (Captured, HeldOutput) {
        let mut bytes = self.head;
        bytes.extend(self.tail);
        let truncated = self.total > bytes.len() as u64;
        let captured = Captured {
            bytes,
            total: self.total,
            truncated,
            spilled: self.spill.written(),
        };
        (captured, self.held)
    }
}

/// What a byte takes in an answer, where it may have to be escaped.
fn weight_of(byte: u8) -> usize {
    match byte {
        b'\n' | b'\r' | b'\t' | b'"' | b'\\' => 2,
        0..0x20 => 6,
        0x20..0x80 => 1,
        0x80.. => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere() -> Spill {
        Spill::Over { written: 0 }
    }

    fn captured(limit: usize, pieces: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(limit, nowhere(), &Arc::default());
        pieces.iter().for_each(|piece| capture.push(piece));
        capture.finish().0
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

    #[test]
    fn all_streams_together_hold_no_more_than_the_room() {
        let room = Arc::<Room>::default();
        let piece = [b'a'; 64 << 10];
        let mut streams: Vec<Capture> = (0..64)
            .map(|_| Capture::new(4 << 20, nowhere(), &room))
            .collect();
        for _ in 0..80 {
            streams.iter_mut().for_each(|stream| stream.push(&piece));
        }
        let taken = room.taken.load(Ordering::Relaxed);
        assert!(taken <= OUTPUT_HELD_MAX && taken > OUTPUT_HELD_MAX / 2);
        let kept: Vec<_> = streams.into_iter().map(Capture::finish).collect();
        let bytes: usize = kept.iter().map(|(captured, _)| captured.bytes.len()).sum();
        assert!(bytes <= OUTPUT_HELD_MAX + 64 * OWN);
        let shortest = kept.iter().map(|(captured, _)| captured.bytes.len()).min();
        assert!(shortest >= Some(OWN), "nobody is left with nothing");
        assert!(kept.iter().all(|(captured, _)| captured.truncated));
        drop(kept);
        assert_eq!(room.taken.load(Ordering::Relaxed), 0, "it is given back");
    }

    #[test]
    fn what_does_not_fit_into_memory_is_spilled_from_its_first_byte() {
        let home = tempfile::tempdir().unwrap();
        let spills = crate::command::spill::Spills::new(home.path());
        let exec = avfs_vault::ExecId::new();
        let room = Arc::<Room>::default();
        let mut all = HeldOutput::nothing(&room);
        assert!(all.grow(OUTPUT_HELD_MAX));
        let spill = spills.of(exec).stream(crate::common::Stream::Stdout);
        let mut capture = Capture::new(1 << 20, spill, &room);
        for piece in 0..40_u8 {
            capture.push(&[piece + b'a'; 1024]);
        }
        let (captured, _) = capture.finish();
        let own = OWN + OWN / 2;
        assert_eq!((captured.bytes.len(), captured.total), (own, 40 << 10));
        assert_eq!(captured.spilled, 40 << 10, "all of it");
        assert_eq!(
            (captured.bytes[0], captured.bytes[own - 1]),
            (b'a', b'a' + 39)
        );
    }
}
