//! What one request may ask for at most, so that no caller can use up the daemon's memory or the journal.
//!
//! `docs/limits.md` has these numbers; a test compares them.

/// Bytes of each output stream that a report can be asked to keep. What is above is spilled.
pub const OUTPUT_LIMIT_MAX: usize = 4 << 20;
/// Bytes of captured output that all reports together hold in memory.
pub const OUTPUT_HELD_MAX: usize = 8 << 20;
/// One word of a command, a variable with its name, or shell text: the kernel takes no longer ones.
pub const ARGUMENT_MAX: usize = (128 << 10) - 1;
/// All words and variables of a command together, each with its end and a pointer, as the kernel counts them.
pub const COMMAND_MAX: usize = 2 << 20;
/// Words that fit into a command, if all are empty.
pub const WORDS_MAX: usize = COMMAND_MAX / PER_STRING;
/// Each string, its closing NUL and the pointer to it.
pub(crate) const PER_STRING: usize = 1 + size_of::<usize>();
/// Bytes of a command that the journal and the record of a job hold; a longer one is told by its head, its length and its
/// hash.
pub const COMMAND_KEPT_MAX: usize = 4 << 10;
/// Bytes of content in one answer in JSON.
pub const CONTENT_MAX: u64 = 1 << 20;
/// Names, paths, changes or versions in one answer.
pub const LISTED_MAX: usize = 10_000;
/// Bytes of these names and paths together.
pub const LISTED_BYTES_MAX: usize = 4 << 20;
/// Changes that the report of a command lists, unless its caller says how many.
pub const CHANGES_LISTED: usize = 1_000;
/// Bytes that these take in the report, as JSON.
pub const CHANGES_BYTES: usize = 64 << 10;
/// Entries of the journal in one answer.
pub const JOURNAL_MAX: usize = 1_000;
/// Bytes of a patch in one answer.
pub const PATCH_MAX: usize = 2 << 20;
/// Bytes of all lines that one search gives.
pub const GREP_BYTES_MAX: usize = 2 << 20;
/// A file with a longer line is no text, and is not searched.
pub const LINE_MAX: usize = 4 << 20;
/// Lines around each match.
pub const CONTEXT_MAX: usize = 100;
/// The largest file that `edit` changes.
pub const EDIT_MAX: u64 = 16 << 20;

/// What one answer has room for of names and paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListRoom {
    names: usize,
    bytes: usize,
    refused: bool,
}

impl ListRoom {
    /// The room of a list that was made before.
    pub fn left(refused: bool) -> ListRoom {
        ListRoom {
            refused,
            ..ListRoom::default()
        }
    }

    /// Whether there is room for one more; once there was none, there is none.
    pub fn take(&mut self, name: &[u8]) -> bool {
        self.names += 1;
        self.bytes += name.len();
        self.refused |= self.names > LISTED_MAX || self.bytes > LISTED_BYTES_MAX;
        !self.refused
    }

    /// Whether something had no room.
    pub fn is_exceeded(&self) -> bool {
        self.refused
    }
}

/// Text that is stored for people: whole when it is short, else its head with its length and its hash.
pub(crate) fn head_of(text: String) -> String {
    if text.len() <= COMMAND_KEPT_MAX {
        return text;
    }
    let mut end = COMMAND_KEPT_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("{}… ({} bytes, blake3 {hash})", &text[..end], text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_of_a_long_command_is_short_and_tells_it_apart() {
        let long = |last: &str| head_of("ä".repeat(COMMAND_KEPT_MAX) + last);
        assert!(long("a").len() < COMMAND_KEPT_MAX + 128);
        assert_ne!(long("a"), long("b"));
        assert_eq!(head_of("short".into()), "short");
    }
}
