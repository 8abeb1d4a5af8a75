//! Words written as shell text.

use super::word::{HOLE, Word};

/// The word as shell text, with a variable in the place of what is not known.
pub(crate) fn as_script(word: &Word) -> String {
    said(std::slice::from_ref(word))
}

/// The same for the words of a command.
pub(crate) fn said(words: &[Word]) -> String {
    let length: usize = words.iter().map(|word| word.text.len() + 1).sum();
    let mut said = String::with_capacity(length);
    for (i, word) in words.iter().enumerate() {
        said.push_str(if i > 0 { " " } else { "" });
        match word.text.is_ascii() {
            false => said.extend(word.text.split(HOLE).enumerate().flat_map(|(i, part)| {
                let hole = if i > 0 { "$_" } else { "" };
                [hole, part]
            })),
            true => said.push_str(&word.text),
        }
    }
    said
}

/// Words as one line of shell text that means just them.
pub(crate) fn line_of(words: &[Word]) -> String {
    let quoted = |word: &Word| {
        let text = word.text.replace('\'', "'\\''");
        format!("'{}'", text.replace(HOLE, "'$_'"))
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
