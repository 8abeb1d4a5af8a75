//! What was tried again for a caller because a process of avfs's own had died.

use serde::{Deserialize, Serialize};

/// The header of an answer that names what was tried again, separated by commas; there only if something was.
pub const RETRIED_HEADER: &str = "avfs-retried";

/// The event that tells the same, before the last event of an answer that is told as it comes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RetriedEvent {
    pub retried: Vec<RetriedWord>,
}

/// Whose work was tried again.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetriedWord {
    /// The keeper was started again, with all that it holds.
    Keeper,
    /// A sandbox was opened again.
    Sandbox,
    /// A layer was read again.
    Scanner,
    /// What is no longer needed was removed again.
    Sweeper,
    /// A view was changed again.
    Writer,
    /// The daemon was gone before it had taken the request; the next one was asked.
    Daemon,
    /// One that a later daemon knows.
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

/// The words of a header; what is no word is none.
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
