//! What one request may ask for at most, so that no caller can use up the daemon's memory or the journal.
//!
//! `docs/limits.md` has these numbers; a test compares them.

use crate::options::ExecOptions;
use crate::{Error, ExecCommand, Result};

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
/// Bytes of a command that the journal and the record of a job hold; a longer one is told by its head, its length and its
/// hash.
pub const COMMAND_KEPT_MAX: usize = 4 << 10;
/// Bytes of content in one answer in JSON.
pub const CONTENT_MAX: u64 = 1 << 20;
/// Names, paths, changes or versions in one answer.
pub const LISTED_MAX: usize = 10_000;
/// Bytes of these names and paths together.
pub const LISTED_BYTES_MAX: usize = 4 << 20;
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

/// Each string, its closing NUL and the pointer to it.
const PER_STRING: usize = 1 + size_of::<usize>();

/// Refuses a command that no kernel would start, before anything is made of it.
pub(crate) fn check_command(command: &ExecCommand, env: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
    check_strings(command, env)?;
    let words: Vec<usize> = match command {
        ExecCommand::Argv(argv) => argv.iter().map(Vec::len).collect(),
        ExecCommand::Shell(text) => vec![text.len()],
    };
    let variables = env.iter().map(|(name, value)| name.len() + 1 + value.len());
    let mut total = 0;
    for length in words.into_iter().chain(variables) {
        if length > ARGUMENT_MAX {
            return Err(Error::Invalid {
                what: "command",
                reason: format!(
                    "one of its words or variables has {length} bytes, and {ARGUMENT_MAX} are the most"
                ),
            });
        }
        total += length + PER_STRING;
    }
    match total > COMMAND_MAX {
        true => Err(Error::Invalid {
            what: "command",
            reason: format!(
                "it has {total} bytes with its variables, and {COMMAND_MAX} are the most"
            ),
        }),
        false => Ok(()),
    }
}

/// Refuses what no program can be given: strings end at their first NUL, names of variables at `=`.
fn check_strings(command: &ExecCommand, env: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
    let holds_nul = match command {
        ExecCommand::Argv(argv) => argv.iter().any(|word| word.contains(&0)),
        ExecCommand::Shell(text) => text.contains('\0'),
    };
    if holds_nul {
        return Err(Error::Invalid {
            what: "command",
            reason: "it cannot hold a NUL byte".into(),
        });
    }
    let is_wrong = |(name, value): &&(Vec<u8>, Vec<u8>)| {
        name.is_empty() || name.iter().any(|byte| b"=\0".contains(byte)) || value.contains(&0)
    };
    match env.iter().find(is_wrong) {
        None => Ok(()),
        Some((name, _)) => Err(Error::Invalid {
            what: "environment",
            reason: format!("{:?} cannot be a variable", String::from_utf8_lossy(name)),
        }),
    }
}

/// Refuses an output limit that no report can hold.
pub(crate) fn check_output_limit(options: &ExecOptions) -> Result<()> {
    match options.output_limit {
        Some(limit) if limit > OUTPUT_LIMIT_MAX => Err(Error::Invalid {
            what: "output limit",
            reason: format!(
                "{limit} bytes, and {OUTPUT_LIMIT_MAX} are the most; `avfs output` reads what is above it"
            ),
        }),
        _ => Ok(()),
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
    fn a_command_is_bounded_by_its_words_and_by_their_sum() {
        let argv = |words: Vec<Vec<u8>>| check_command(&ExecCommand::Argv(words), &[]);
        assert!(argv(vec![vec![b'a'; ARGUMENT_MAX]]).is_ok());
        assert!(argv(vec![vec![b'a'; ARGUMENT_MAX + 1]]).is_err());
        let shell = ExecCommand::Shell("a".repeat(ARGUMENT_MAX + 1));
        assert!(check_command(&shell, &[]).is_err());
        let fits = COMMAND_MAX / PER_STRING;
        assert!(argv(vec![Vec::new(); fits]).is_ok());
        assert!(
            argv(vec![Vec::new(); fits + 1]).is_err(),
            "empty words count"
        );
        let variable = (b"A".to_vec(), vec![b'a'; ARGUMENT_MAX - 1]);
        let plain = ExecCommand::Shell("true".into());
        assert!(check_command(&plain, &[variable]).is_err());
    }

    #[test]
    fn no_program_is_given_what_it_cannot_be_given() {
        let argv = ExecCommand::Argv(vec![b"a\0b".to_vec()]);
        let shell = ExecCommand::Shell("a\0b".into());
        for command in [argv, shell] {
            let error = check_command(&command, &[]).unwrap_err().to_string();
            assert!(error.contains("NUL"), "{error}");
        }
        let plain = ExecCommand::Shell("true".into());
        let with =
            |name: &[u8], value: &[u8]| check_command(&plain, &[(name.to_vec(), value.to_vec())]);
        assert!(with(b"A", b"b=c").is_ok());
        for (name, value) in [
            (&b"A=B"[..], &b"c"[..]),
            (b"", b"c"),
            (b"A\0", b"c"),
            (b"A", b"c\0"),
        ] {
            assert!(with(name, value).is_err(), "{name:?}={value:?}");
        }
        let error = with(b"A=B", b"").unwrap_err().to_string();
        assert!(error.contains("A=B"), "{error}");
    }

    #[test]
    fn what_is_stored_of_a_long_command_is_short_and_tells_it_apart() {
        let long = |last: &str| head_of("ä".repeat(COMMAND_KEPT_MAX) + last);
        assert!(long("a").len() < COMMAND_KEPT_MAX + 128);
        assert_ne!(long("a"), long("b"));
        assert_eq!(head_of("short".into()), "short");
    }
}
