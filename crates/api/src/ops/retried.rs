//! What was retried for a request.

use crate::wire::RetriedWord;
use avfs_runtime::Retried;

/// As words of the API.
pub(crate) fn words(retried: Vec<Retried>) -> Vec<RetriedWord> {
    let word = |what| match what {
        Retried::Keeper => RetriedWord::Keeper,
        Retried::Sandbox => RetriedWord::Sandbox,
        Retried::Scanner => RetriedWord::Scanner,
        Retried::Sweeper => RetriedWord::Sweeper,
        Retried::Writer => RetriedWord::Writer,
    };
    retried.into_iter().map(word).collect()
}
