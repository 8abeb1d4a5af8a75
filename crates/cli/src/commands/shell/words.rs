//! A line as words, by the quoting that every shell has. Nothing is expanded.

use crate::error::{Error, Result};
use std::ffi::OsString;

/// Splits a line at blanks; quotes and backslashes keep blanks in a word.
pub fn split(line: &str) -> Result<Vec<OsString>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(character),
            (_, '\\') => {
                let next = characters.next().ok_or_else(|| unfinished("a backslash"))?;
                let kept = quote.is_some() && !"\"\\$`".contains(next);
                let word = word.get_or_insert_default();
                word.extend(kept.then_some('\\'));
                word.push(next);
            }
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    if quote.is_some() {
        return Err(unfinished("a quote"));
    }
    words.extend(word);
    Ok(words.into_iter().map(OsString::from).collect())
}

fn unfinished(what: &str) -> Error {
    Error::Invalid {
        text: format!("{what} is not closed"),
        hint: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        for (line, words) in [
            ("ls  -l\t/a", &["ls", "-l", "/a"][..]),
            (
                "write 'a b' \"it's \\\"x\\\"\"",
                &["write", "a b", "it's \"x\""],
            ),
            ("a\\ b c''d ''", &["a b", "cd", ""]),
            ("'$(id)' \"a\\nb\"", &["$(id)", "a\\nb"]),
            ("", &[]),
        ] {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
        for wrong in ["'a", "\"a", "a\\"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }
}
