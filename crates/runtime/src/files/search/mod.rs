//! Finding things in a vault: by lines of content, by what they are, and by words.

mod find;
mod globs;
mod grep;
mod words;

pub use find::{AgeTest, FindRequest, Found, FoundPath, KindTest, LabelTest, SizeTest};
pub use grep::{GrepDetail, GrepFile, GrepFound, GrepLine, GrepMatch, GrepRequest};
pub(crate) use words::Indexes;
pub use words::{WordHit, WordHits};
