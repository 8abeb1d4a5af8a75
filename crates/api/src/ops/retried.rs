//! What was tried again for a request.

use crate::wire::RetriedWord;
use avfs_runtime::Retried;

/// The wire's words for it.
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
