//! The `avfs` binary: arguments in, text and exit code out.

mod args;
mod cast;
mod commands;
mod complete;
mod environment;
mod error;
mod exit;
mod here;
mod output;
mod screen;
mod session;
mod terminal;
mod usage;

use args::Cli;
use clap::FromArgMatches;
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Helpers are run by the daemon: before anything else, with nothing else loaded.
    let first = std::env::args_os().nth(1);
    if let Some(ended) = avfs_runtime::helper_main(first.as_deref()) {
        return ended;
    }
    match first.as_deref().and_then(|role| role.to_str()) {
        // In a sandbox, by `avfs doctor --attack`.
        Some("__attack") => return commands::attack::from_inside(),
        // For authors of documents; not a verb, so that it is not in help and completions.
        Some("__docs") => return print_reference(),
        _ => {}
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(ended) = complete::answered(&words) {
        return ended;
    }
    let parsed = args::command().try_get_matches_from(&words);
    ExitCode::from(match parsed.and_then(|it| Cli::from_arg_matches(&it)) {
        Ok(cli) => commands::run(cli),
        Err(error) => usage::refuse(&error, &words),
    })
}

fn print_reference() -> ExitCode {
    let says = |word: &str| std::env::args_os().any(|it| it == word);
    let output = Output::new(says("--json"));
    let done = if says("http") {
        output::raw(avfs_api::table::reference().as_bytes())
    } else if says("openapi") {
        output::raw(format!("{:#}\n", avfs_api::table::openapi()).as_bytes())
    } else if says("schemas") {
        commands::docs::schemas(std::env::args_os().nth(3))
    } else {
        commands::docs::run(output)
    };
    match done {
        Ok(()) => ExitCode::from(exit::OK),
        Err(error) => {
            output.error(&error);
            ExitCode::FAILURE
        }
    }
}
