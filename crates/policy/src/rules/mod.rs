//! From findings to a decision: the rules of files, and the defaults behind them.

mod conditions;
mod decision;
mod display;
mod error;
mod file;
mod ruleset;

pub use decision::{Action, Decision, Part};
pub use error::Error;
pub use file::{Example, RuleFile};
pub use ruleset::{Level, ListedRule, RuleOrigin, Rules};

pub(crate) use decision::conclude;
