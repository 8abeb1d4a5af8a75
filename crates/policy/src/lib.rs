//! Request and rules in, decision out. Pure: no I/O, no clock, no environment.
//!
//! The sandbox is what holds a command; this crate only decides whether a command runs at
//! once, runs after a checkpoint, waits for the owner, or is refused, and says why. Shell text is
//! parsed by a real parser, every nested command is judged, and what cannot be understood is
//! never answered with `allow`.
//!
//! One request goes through the files in this order: `mask`, `documents`, `fold`, `tokens`, `shell`, `tested` and
//! `simple` (text to commands), `word`, `literal`, `parameter`, `fields`, `escape`
//! and `brace` (quotes and expansions), `again` (text that bash evaluates a second time), `judge`, `program`, `values` and `variables` (one command), `wrappers`, `runners` and `carriers` (commands that run commands),
//! `commands`, `vocabulary`, `tools`, `git`, `code`, `categories` (what a command is), `paths` (what it reaches for), `finding`,
//! `conditions` and `rules` (the decision). Rules come from `file`.

mod again;
mod brace;
mod carriers;
mod categories;
mod code;
mod commands;
mod conditions;
mod documents;
mod error;
mod escape;
mod fields;
mod file;
mod finding;
mod fold;
#[cfg(test)]
mod fold_tests;
mod git;
mod judge;
mod literal;
mod mask;
mod parameter;
mod paths;
mod program;
mod rules;
mod runners;
mod say;
mod shell;
mod simple;
mod tested;
mod tokens;
mod tools;
mod values;
mod variables;
mod vocabulary;
mod word;
mod wrappers;

use std::fmt;

pub use categories::{Categories, Category};
pub use error::Error;
pub use file::{Example, RuleFile};
pub use rules::{Level, ListedRule, RuleOrigin, Rules};

/// What is asked: a command, where it would run, and what it would be given.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub command: CommandForm<'a>,
    pub cwd: &'a [u8],
    pub network: Network,
    /// The variables the caller asked for, not the whole environment that is built.
    pub env: &'a [(Vec<u8>, Vec<u8>)],
}

/// The two ways to state a command.
#[derive(Debug, Clone, Copy)]
pub enum CommandForm<'a> {
    Argv(&'a [Vec<u8>]),
    Shell(&'a str),
}

/// The network the command would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    None,
    Host,
}

/// What happens with the request; a later action is stricter than an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    Allow,
    AllowWithCheckpoint,
    RequireApproval,
    Deny,
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Allow => "allow",
            Action::AllowWithCheckpoint => "allow_with_checkpoint",
            Action::RequireApproval => "require_approval",
            Action::Deny => "deny",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The verdict on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub action: Action,
    /// The union of the categories of all parts.
    pub categories: Categories,
    /// Why, where there is more to say than the rule's name; also hints for a command that runs.
    pub reason: Option<String>,
    /// The rule that decided, for example `default:mutating`.
    pub rule: String,
    /// Every simple command found, in the order of the text.
    pub parts: Vec<Part>,
    /// The smallest rule that would let this request run, when it does not.
    pub smallest_rule: Option<String>,
}

/// The verdict on one simple command of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub text: String,
    pub action: Action,
    pub categories: Categories,
    pub rule: String,
}

/// Decides on a request. The verdict of a compound is that of its strictest part.
pub fn decide(rules: &Rules, request: &Request) -> Decision {
    judge::Judge::new(request, rules.look_at_paths).decide(rules, request)
}
