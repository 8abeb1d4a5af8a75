//! Words as shell text again.

use super::word::{UNKNOWN, Word};

/// The text of a word, with `$_` for each unknown part.
pub(crate) fn word_text(word: &Word) -> String {
    command_text(std::slice::from_ref(word))
}

/// The text of a command's words, with `$_` for each unknown part.
pub(crate) fn command_text(words: &[Word]) -> String {
    let length: usize = words.iter().map(|word| word.text.len() + 1).sum();
    let mut text = String::with_capacity(length);
    for (i, word) in words.iter().enumerate() {
        text.push_str(if i > 0 { " " } else { "" });
        match word.text.is_ascii() {
            false => text.extend(word.text.split(UNKNOWN).enumerate().flat_map(|(i, part)| {
                let hole = if i > 0 { "$_" } else { "" };
                [hole, part]
            })),
            true => text.push_str(&word.text),
        }
    }
    text
}

/// Words as a line of shell text, quoted so that it has exactly these words.
pub(crate) fn quoted_line(words: &[Word]) -> String {
    let quoted = |word: &Word| {
        let text = word.text.replace('\'', "'\\''");
        format!("'{}'", text.replace(UNKNOWN, "'$_'"))
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
