//! Words that can be read at once, without following them character by character.

use super::arithmetic::{NUMBER, is_always_number, is_number_value};
use super::fields::all_shown;
use super::values::Vars;
use super::word::{HOLE, Mode, Word};

/// Reads a word of plain characters, quoted strings and variables in double quotes, as almost every word is.
/// `None` for all others, and those in which something is special.
pub(crate) fn at_once(source: &str, vars: &Vars, mode: Mode) -> Option<Word> {
    if !matches!(mode, Mode::Plain | Mode::Value) || source.is_empty() {
        return None;
    }
    let mut word = Word {
        text: String::with_capacity(source.len()),
        ..Word::default()
    };
    let mut rest = source;
    while let Some(first) = rest.bytes().next() {
        rest = match first {
            b'\'' => {
                let (inner, after) = rest[1..].split_once('\'')?;
                word.text.push_str(inner);
                after
            }
            b'"' => double_quoted(&rest[1..], vars, &mut word)?,
            _ => {
                let length = rest.bytes().take_while(is_plain).count();
                word.text.push_str(&rest[..length]);
                rest.get(length..).filter(|_| length > 0)?
            }
        };
    }
    if let Some(earlier) = whole_variable(source, vars) {
        (word.others, word.unsure) = (all_shown(earlier), false);
    }
    // A quoted tilde is written in a way of its own.
    (!word.text.starts_with('~')).then_some(word)
}

fn is_plain(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'_' | b'.' | b'/' | b':' | b',' | b'=' | b'+' | b'@' | b'%' | b'^'
        )
}

/// Adds a string in double quotes to the word; returns what comes after it.
fn double_quoted<'s>(inner: &'s str, vars: &Vars, word: &mut Word) -> Option<&'s str> {
    let mut rest = inner;
    loop {
        let kept = |byte: &u8| {
            matches!(byte, b' '..=b'~' | b'\t' | b'\n')
                && !matches!(byte, b'"' | b'\\' | b'$' | b'`')
        };
        let length = rest.bytes().take_while(kept).count();
        word.text.push_str(&rest[..length]);
        rest = &rest[length..];
        if let Some(after) = rest.strip_prefix('"') {
            return Some(after);
        }
        let after = rest.strip_prefix('$')?;
        let name = name_prefix(after);
        let value = vars.get(name).filter(|_| !name.is_empty());
        match value.and_then(|values| values.split_last()) {
            Some((value, earlier)) => {
                match value.is_ascii() {
                    true => word.text.push_str(value),
                    false => word.text.extend(value.chars().map(|c| match c {
                        NUMBER => HOLE,
                        c => c,
                    })),
                }
                word.unsure |= !earlier.is_empty();
                word.vague |= !earlier.iter().chain([value]).all(|v| is_number_value(v));
            }
            None => {
                word.text.push(HOLE);
                word.vague |= !name.is_empty() && !is_always_number(name);
            }
        }
        word.dynamic = true;
        rest = match name.is_empty() {
            true => special_parameter(after, word)?,
            false => &after[name.len()..],
        };
    }
}

/// The earlier values of a variable that is, in double quotes, the whole of the word.
pub(crate) fn whole_variable<'v>(source: &str, vars: &'v Vars) -> Option<&'v [String]> {
    let name = source.strip_prefix("\"$")?.strip_suffix('"')?;
    let values = vars.get(name).filter(|_| name_prefix(name) == name)?;
    values.split_last().map(|(_, earlier)| earlier)
}

/// `$1`, `$@`, `$#` and the like; returns what comes after it.
fn special_parameter<'s>(after: &'s str, word: &mut Word) -> Option<&'s str> {
    match after.bytes().next()? {
        b'#' | b'?' | b'$' | b'!' => {}
        b'@' => (word.vague, word.spreads) = (true, true),
        b'0'..=b'9' | b'*' | b'-' => word.vague = true,
        _ => return None,
    }
    Some(&after[1..])
}

/// The name of a variable at the beginning of the text.
pub(crate) fn name_prefix(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        ""
    } else {
        &text[..end]
    }
}

/// The value of `$(echo words)`, the simplest way to hide a command.
pub(crate) fn echoed(command: &str) -> Option<&str> {
    let command = command.trim();
    let value = ["echo ", "printf ", "printf %s "]
        .iter()
        .find_map(|p| command.strip_prefix(p))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || " _./:,@%+=-".contains(c);
    (!value.is_empty() && value.chars().all(plain)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::word::follow;

    #[test]
    fn a_word_read_at_once_is_read_as_any_other() {
        let parts = [
            "a", "~", "{b,c}", "*", "'", "\"", "\\", "$", "x", "y", " ", "=", "é", "1", "",
        ];
        let words = (0..parts.len().pow(5)).map(|n| {
            let digits = (0..5).map(|place| n / parts.len().pow(place) % parts.len());
            digits.map(|digit| parts[digit]).collect::<String>()
        });
        let value = |text: &str| vec!["other".to_owned(), text.to_owned()];
        let vars = Vars::from([
            ("x".to_owned(), value("~ *")),
            ("y".to_owned(), value(&format!("{HOLE}z"))),
            ("xy".to_owned(), Vec::new()),
        ]);
        let mut read = 0;
        for (word, mode) in words.flat_map(|w| [(w.clone(), Mode::Plain), (w, Mode::Value)]) {
            if let Some(at_once) = at_once(&word, &vars, mode) {
                let followed = follow(&word, &[], &vars, mode).unwrap();
                assert_eq!(followed.words, [at_once], "{word} {mode:?}");
                assert!(followed.commands.is_empty() && followed.relies.is_empty());
                read += 1;
            }
        }
        assert!(read > 10_000, "{read}");
    }
}
