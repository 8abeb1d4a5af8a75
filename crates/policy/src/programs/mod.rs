//! Knows programs: what each does by its name and arguments, what it runs, and which paths belong to the host.

mod builtins;
mod carriers;
mod category;
mod code;
mod commands;
mod git;
mod options;
mod paths;
mod runners;
mod stdin;
mod tools;
mod vocabulary;
mod wrappers;

pub use category::{Categories, Category};

pub(crate) use builtins::{changes_later_words, evaluates};
pub(crate) use carriers::{carried, within};
pub(crate) use code::on_input;
pub(crate) use commands::{
    Known, classify, is_known, is_program_directory, may_hold_commands, names_like, path_arguments,
};
pub(crate) use paths::{HOME, forbidden, forbidden_path, normalise};
pub(crate) use stdin::Stdin;
pub(crate) use vocabulary::{Meaning, changes_meaning, meaning};
pub(crate) use wrappers::{Unwrapped, unwrap};
