//! Knows programs: what each does by its name and arguments, what it runs, and which paths belong to the host.

mod builtins;
mod category;
mod code;
mod commands;
mod dry_run;
mod embedded;
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
pub(crate) use code::code_on_stdin;
pub(crate) use commands::{
    Effects, classify, is_known, is_program_directory, may_hold_commands, names_like,
    path_arguments,
};
pub(crate) use dry_run::{DRY_RUN, is_dry_run};
pub(crate) use embedded::{commands_in, embedded_commands};
pub(crate) use paths::{HOME, host_path, host_paths_in, normalise};
pub(crate) use stdin::Stdin;
pub(crate) use vocabulary::{Meaning, is_special_variable, meaning};
pub(crate) use wrappers::{Unwrapped, unwrap_command};
