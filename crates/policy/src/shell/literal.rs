//! The fast path for words without special characters.

use super::arithmetic::{NUMBER, is_always_number, is_number_value};
use super::fields::to_texts;
use super::values::Vars;
use super::word::{Mode, UNKNOWN, Word};

/// Reads a word of plain characters, quoted strings and variables in double quotes. Almost every word is one. `None`
/// for every other word.
pub(crate) fn read_plain(source: &str, vars: &Vars, mode: Mode) -> Option<Word> {
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
        (word.alternatives, word.one_of_several) = (to_texts(earlier), false);
    }
    // A quoted tilde is left to the full reader, which marks it.
    (!word.text.starts_with('~')).then_some(word)
}

fn is_plain(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'_' | b'.' | b'/' | b':' | b',' | b'=' | b'+' | b'@' | b'%' | b'^'
        )
}

/// Adds a string in double quotes to the word. Returns the text after it.
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
                        NUMBER => UNKNOWN,
                        c => c,
                    })),
                }
                word.one_of_several |= !earlier.is_empty();
                word.any_text |= !earlier.iter().chain([value]).all(|v| is_number_value(v));
            }
            None => {
                word.text.push(UNKNOWN);
                word.any_text |= !name.is_empty() && !is_always_number(name);
            }
        }
        word.dynamic = true;
        rest = match name.is_empty() {
            true => special_parameter(after, word)?,
            false => &after[name.len()..],
        };
    }
}

/// The earlier values of a variable, if the word is `"$variable"` and nothing else.
pub(crate) fn whole_variable<'v>(source: &str, vars: &'v Vars) -> Option<&'v [String]> {
    let name = source.strip_prefix("\"$")?.strip_suffix('"')?;
    let values = vars.get(name).filter(|_| name_prefix(name) == name)?;
    values.split_last().map(|(_, earlier)| earlier)
}

/// Reads `$1`, `$@`, `$#` and the like. Returns the text after it.
fn special_parameter<'s>(after: &'s str, word: &mut Word) -> Option<&'s str> {
    match after.bytes().next()? {
        b'#' | b'?' | b'$' | b'!' => {}
        b'@' => (word.any_text, word.may_split) = (true, true),
        b'0'..=b'9' | b'*' | b'-' => word.any_text = true,
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

/// The output of `$(echo words)`, if all its characters are plain.
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
            ("y".to_owned(), value(&format!("{UNKNOWN}z"))),
            ("xy".to_owned(), Vec::new()),
        ]);
        let mut read = 0;
        for (word, mode) in words.flat_map(|w| [(w.clone(), Mode::Plain), (w, Mode::Value)]) {
            if let Some(read_plain) = read_plain(&word, &vars, mode) {
                let followed = follow(&word, &[], &vars, mode).unwrap();
                assert_eq!(followed.words, [read_plain], "{word} {mode:?}");
                assert!(followed.commands.is_empty() && followed.assumes.is_empty());
                read += 1;
            }
        }
        assert!(read > 10_000, "{read}");
    }
}
