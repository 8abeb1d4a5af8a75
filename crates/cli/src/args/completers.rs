//! Which arguments are completed with what a home holds.

use crate::complete::{Kind, candidates};
use clap::Command;
use clap_complete::engine::ArgValueCompleter;
use std::ffi::OsStr;

/// The command line with completers for names and paths.
pub fn with_completers(command: Command) -> Command {
    decorate(command, "")
}

fn decorate(command: Command, verb: &str) -> Command {
    // One by one, arguments would change their places.
    let command = command.mut_args(|arg| {
        let takes_value = arg.get_action().takes_values();
        match kind(verb, arg.get_id().as_str()).filter(|_| takes_value) {
            Some(kind) => arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
                candidates(kind, typed)
            })),
            None => arg,
        }
    });
    let below: Vec<String> = command
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect();
    below.into_iter().fold(command, |command, name| {
        let words = format!("{verb} {name}");
        command.mut_subcommand(name, |it| decorate(it, words.trim_start()))
    })
}

/// What an argument of a verb names.
fn kind(verb: &str, argument: &str) -> Option<Kind> {
    Some(match (verb, argument) {
        ("", "vault") => Kind::Vault,
        ("vault info" | "vault use" | "vault rename" | "vault delete" | "vault log", "name") => {
            Kind::Vault
        }
        ("vault fork", "source") | ("port forward" | "port remove", "vault") => Kind::Vault,
        ("vault fork", "checkpoint") => Kind::Checkpoint,
        ("checkpoint info" | "checkpoint restore" | "checkpoint delete", "name") => {
            Kind::Checkpoint
        }
        ("vault fork" | "cat" | "checkout", "version") => Kind::Version,
        ("mount", "at") | ("diff", "what") => Kind::State,
        (_, "job") => Kind::Job,
        ("mv" | "cp", "source" | "destination") => Kind::Path,
        (_, "path" | "cwd") => Kind::Path,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        crate::args::completing().debug_assert();
    }
}
