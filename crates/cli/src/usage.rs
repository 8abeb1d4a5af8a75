//! Wrong usage: what is wrong, and what to write instead.

use crate::args;
use crate::error::Error;
use crate::exit;
use crate::output::changes::printable;
use crate::output::{self, Output};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::{OsStr, OsString};

/// What `avfs` without arguments prints.
const BEGINNING: &str = "\
avfs demo                          see it work, in one minute
avfs vault create NAME             create a vault; the first one becomes current
avfs import .                      copy this directory into it, to /workspace
avfs exec -- make test             run a command in it; the report lists what changed
avfs help                          all commands, in groups";

/// Reports a usage error, or prints help; returns the exit code.
pub fn refuse(error: &clap::Error, words: &[OsString]) -> u8 {
    let asked_for = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    let in_json = words
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "--json");
    // If printing fails, there is nowhere to report it.
    let _ = if in_json && !asked_for {
        let text = error.render().to_string();
        Output::json().error(&Error::Invalid {
            text: what_is_wrong(&text),
            hint: Some(match instead(error, words) {
                Some(instead) => format!("write `{instead}`"),
                None => format!("see `{} --help`", verb_in(&text)),
            }),
        });
        Ok(())
    } else if words.len() == 1 {
        output::note(&BEGINNING)
    } else if let Some(instead) = instead(error, words) {
        let text = what_is_wrong(&error.render().to_string());
        Output::new(false).error(&Error::Invalid {
            text,
            hint: Some(format!("write `{instead}`")),
        });
        Ok(())
    } else {
        error.print().map_err(Error::output)
    };
    if asked_for { exit::OK } else { exit::USAGE }
}

/// For a command without `--` before it: the line that was meant.
fn instead(error: &clap::Error, words: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let runs = ["exec", "start", "explain"];
    let verb = words
        .iter()
        .position(|word| runs.iter().any(|verb| word == verb))?;
    let at = |(place, word): (usize, &OsString)| {
        (place > verb && word == OsStr::new(unknown) && !unknown.starts_with('-')).then_some(place)
    };
    words.iter().enumerate().filter_map(at).find_map(|place| {
        let option = match is_shell_text(&words[place..]) {
            true => "--shell",
            false => "--",
        };
        let mut meant = words.to_vec();
        meant.insert(place, option.into());
        let accepted = args::command().try_get_matches_from(&meant).is_ok();
        accepted.then(|| line(&meant))
    })
}

/// Whether the words are one text that a shell would take apart.
fn is_shell_text(words: &[OsString]) -> bool {
    match words {
        [text] => text
            .to_string_lossy()
            .contains(|c: char| c.is_whitespace() || "|&;<>$`".contains(c)),
        _ => false,
    }
}

/// The words as a line for a shell.
fn line(words: &[OsString]) -> String {
    let words = words
        .iter()
        .skip(1)
        .map(|word| quoted(&word.to_string_lossy()));
    let words: Vec<String> = words.collect();
    format!("avfs {}", words.join(" "))
}

/// A word as a shell reads it back, except for characters that cannot be shown.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", printable(word).replace('\'', "'\\''")),
    }
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

    fn meant(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        let error = args::command().try_get_matches_from(&words).unwrap_err();
        instead(&error, &words)
    }

    #[test]
    fn what_is_suggested_is_what_was_meant_and_is_accepted() {
        let is = |words: &[&str], line: &str| assert_eq!(meant(words).as_deref(), Some(line));
        is(&["avfs", "exec", "ls"], "avfs exec -- ls");
        is(&["avfs", "exec", "ls -la"], "avfs exec --shell 'ls -la'");
        is(&["avfs", "exec", "ls", "-la"], "avfs exec -- ls -la");
        is(
            &["avfs", "proxy", "exec", "--cwd", "ls", "ls", "a b"],
            "avfs proxy exec --cwd ls -- ls 'a b'",
        );
        is(
            &["avfs", "job", "start", "it's; x"],
            "avfs job start --shell 'it'\\''s; x'",
        );
        is(
            &["avfs", "exec", "a|\u{1b}[2J"],
            "avfs exec --shell 'a|\\u{1b}[2J'",
        );
        assert_eq!(meant(&["avfs", "exec", "--nonsense", "ls"]), None);
        assert_eq!(meant(&["avfs", "ls", "/a", "/b"]), None);
        assert_eq!(meant(&["avfs", "exec", "--shell", "a", "ls"]), None);
    }
}
