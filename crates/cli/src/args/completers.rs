//! Which arguments are completed with what a home holds.

use crate::complete::{Kind, candidates};
use clap::Command;
use clap_complete::engine::ArgValueCompleter;

/// The command line with completers for names and paths.
pub fn with_completers(command: Command) -> Command {
    decorate(command, "")
}

fn decorate(command: Command, verb: &str) -> Command {
    let found: Vec<(String, Kind)> = command
        .get_arguments()
        .filter(|arg| arg.get_action().takes_values())
        .filter_map(|arg| Some((arg.get_id().to_string(), kind(verb, arg.get_id().as_str())?)))
        .collect();
    let command = found.into_iter().fold(command, |command, (id, kind)| {
        command.mut_arg(id, |arg| {
            arg.add(ArgValueCompleter::new(move |typed: &std::ffi::OsStr| {
                candidates(kind, typed)
            }))
        })
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
