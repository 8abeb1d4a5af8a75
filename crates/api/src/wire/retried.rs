//! What was retried because a process of avfs had died.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The response header that lists it, separated by commas; absent if there was nothing.
pub const RETRIED_HEADER: &str = "avfs-retried";

/// The event that lists it, before the last event of a stream.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RetriedEvent {
    /// What was tried again.
    pub retried: Vec<RetriedWord>,
}

/// Which process had died.
#[derive(
    Copy, Clone, Debug, Eq, PartialEq, Ord, PartialOrd, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RetriedWord {
    /// The keeper was started again, with its mounts and sandboxes.
    Keeper,
    /// A sandbox was started again.
    Sandbox,
    /// Reading a layer was repeated.
    Scanner,
    /// Removing files was repeated.
    Sweeper,
    /// Writing through a view was repeated.
    Writer,
    /// The daemon ended before it accepted the request; the next one was asked.
    Daemon,
    /// A word of a newer daemon.
    #[serde(other)]
    Other,
}

impl RetriedWord {
    const ALL: [RetriedWord; 7] = [
        RetriedWord::Keeper,
        RetriedWord::Sandbox,
        RetriedWord::Scanner,
        RetriedWord::Sweeper,
        RetriedWord::Writer,
        RetriedWord::Daemon,
        RetriedWord::Other,
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            RetriedWord::Keeper => "keeper",
            RetriedWord::Sandbox => "sandbox",
            RetriedWord::Scanner => "scanner",
            RetriedWord::Sweeper => "sweeper",
            RetriedWord::Writer => "writer",
            RetriedWord::Daemon => "daemon",
            RetriedWord::Other => "other",
        }
    }
}

/// Parses a header; unknown words are skipped.
pub(crate) fn retried_in(header: &str) -> impl Iterator<Item = RetriedWord> {
    let words = header.split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(|word| RetriedWord::ALL.into_iter().find(|it| it.as_str() == word))
        .map(|word| word.unwrap_or(RetriedWord::Other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for word in RetriedWord::ALL {
            let json = serde_json::to_value(word).unwrap();
            assert_eq!(json, word.as_str());
            assert_eq!(serde_json::from_value::<RetriedWord>(json).unwrap(), word);
            assert_eq!(retried_in(word.as_str()).collect::<Vec<_>>(), [word]);
        }
        let words: Vec<_> = retried_in("keeper, scanner,later").collect();
        let (keeper, scanner) = (RetriedWord::Keeper, RetriedWord::Scanner);
        assert_eq!(words, [keeper, scanner, RetriedWord::Other]);
        assert_eq!(retried_in("").count(), 0);
        let later: RetriedWord = serde_json::from_str("\"later\"").unwrap();
        assert_eq!(later, RetriedWord::Other);
    }
}
