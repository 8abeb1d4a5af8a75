//! The `avfs` binary: arguments in, text and exit code out.

mod args;
mod cast;
mod commands;
mod environment;
mod error;
mod exit;
mod output;
mod screen;
mod session;
mod terminal;

use args::Cli;
use clap::FromArgMatches;
use clap::error::ErrorKind as UsageError;
use output::Output;
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
    let parsed = args::command().try_get_matches();
    match parsed.and_then(|words| Cli::from_arg_matches(&words)) {
        Ok(cli) => ExitCode::from(commands::run(cli)),
        Err(error) => refuse(&error),
    }
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

/// Reports a usage error, or prints help.
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
        let error = error::Error::Invalid {
            text: what_is_wrong(&text),
            hint: Some(format!("see `{} --help`", verb_in(&text))),
        };
        Output::json().error(&error);
    } else {
        // If printing fails, there is nowhere to report it.
        let _ = error.print();
    }
    ExitCode::from(if asked_for { exit::OK } else { exit::USAGE })
}

/// The first paragraph of a usage error, in one line.
fn what_is_wrong(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let message = paragraph.strip_prefix("error: ").unwrap_or(&paragraph);
    message.to_owned()
}

/// The verb a usage error is about, from the usage it shows.
fn verb_in(text: &str) -> String {
    let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
    let words = usage.unwrap_or("avfs").split(' ');
    let is_word = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    words.take_while(is_word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_error_is_one_line_and_names_its_verb() {
        let text =
            "error: these are missing:\n  <A>\n  <B>\n\nUsage: avfs vault fork <A> <B>\n\nFor";
        assert_eq!(what_is_wrong(text), "these are missing: <A> <B>");
        assert_eq!(verb_in(text), "avfs vault fork");
        assert_eq!(verb_in("error: what?"), "avfs");
    }
}
