//! Walks over one request, command by command, and collects what is found out about each. It knows no rule.

mod command;
mod condition;
mod finding;
#[cfg(test)]
mod fold_tests;
mod program;
mod request;
mod simple;
mod state;
mod text;
mod variables;

pub use request::{CommandForm, Network, Request};

pub(crate) use finding::{Finding, NamedPath};
pub(crate) use state::Judge;
