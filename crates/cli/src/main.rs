//! The `avfs` binary: words in, text and exit code out.

mod args;
mod commands;
mod environment;
mod error;
mod exit;
mod output;
mod session;

use args::Cli;
use clap::FromArgMatches;
use clap::error::ErrorKind as UsageError;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    // These roles are run by the daemon: before anything else, with nothing else loaded.
    match std::env::args_os()
        .nth(1)
        .as_deref()
        .and_then(|role| role.to_str())
    {
        Some("__keeper") => return avfs_sandbox::keeper_main(),
        Some("__scanner") => return avfs_view::scanner_main(),
        _ => {}
    }
    let parsed = args::command().try_get_matches();
    match parsed.and_then(|words| Cli::from_arg_matches(&words)) {
        Ok(cli) => ExitCode::from(commands::run(cli)),
        Err(error) => refuse(&error),
    }
}

/// Answers words that make no sense, or asked for help.
fn refuse(error: &clap::Error) -> ExitCode {
    let asked_for = matches!(
        error.kind(),
        UsageError::DisplayHelp | UsageError::DisplayVersion
    );
    let in_json = std::env::args_os()
        .take_while(|word| word != "--")
        .any(|word| word == "--json");
    if in_json && !asked_for {
        let text = error.render().to_string();
        let message = text.lines().next().unwrap_or_default();
        let message = message
            .strip_prefix("error: ")
            .unwrap_or(message)
            .to_owned();
        let error = error::Error::Invalid {
            text: message,
            hint: Some("see `avfs --help`".into()),
        };
        Output::json().error(&error);
    } else {
        // There is nowhere left to tell that printing failed.
        let _ = error.print();
    }
    ExitCode::from(if asked_for { exit::OK } else { exit::USAGE })
}
