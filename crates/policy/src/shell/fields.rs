//! From the characters of a word to the words that it expands to.

use super::arithmetic::NUMBER;
use super::brace::{Atom, expand};
use super::literal::whole_variable;
use super::word::{Mode, Reader, Reading, UNKNOWN, Word};

impl Reader<'_> {
    pub fn finish(mut self) -> Reading {
        if let Some(earlier) = whole_variable(self.cursor.text, self.vars) {
            (self.alternatives, self.one_of_several) = (to_texts(earlier), false);
        }
        let brace = Atom::Char {
            value: '{',
            quoted: false,
        };
        let expanded = if self.mode == Mode::Plain && self.atoms.contains(&brace) {
            expand(&self.atoms)
        } else {
            vec![self.atoms]
        };
        let single = expanded.len() == 1;
        let mut words = Vec::new();
        for atoms in &expanded {
            for field in atoms.split(|a| *a == Atom::Split) {
                let nothing_here = field.is_empty() && !self.quoted_any;
                if nothing_here && (atoms.len() > field.len() || self.guess) {
                    continue;
                }
                let mut word = to_word(field);
                word.dynamic |= self.guess;
                word.any_text = self.any_text && word.dynamic;
                word.may_split = self.may_split && word.text.contains(UNKNOWN);
                word.one_of_several = self.one_of_several;
                if single {
                    word.alternatives = self.alternatives.clone();
                }
                words.push(word);
            }
        }
        if words.is_empty() {
            words.extend(fallback(&self.alternatives, self.one_of_several));
        }
        Reading {
            words,
            commands: self.commands,
            assumes: self.assumes,
            assigned: self.assigned,
        }
    }

    /// One word of these characters, without splitting.
    pub fn word_of(&self, atoms: &[Atom]) -> Word {
        let word = to_word(atoms);
        Word {
            dynamic: word.dynamic || self.guess,
            any_text: self.any_text,
            one_of_several: self.one_of_several,
            ..word
        }
    }
}

/// The characters as text of an arithmetic expression.
pub(crate) fn as_expression(atoms: &[Atom]) -> String {
    let character = |atom: &Atom| match *atom {
        Atom::Char { value, .. } => value,
        Atom::Number => NUMBER,
        Atom::Unknown => UNKNOWN,
        Atom::Split => ' ',
    };
    atoms.iter().map(character).collect()
}

/// The word to use when the last value of a variable expands to no word, but another value does.
fn fallback(alternatives: &[String], one_of_several: bool) -> Option<Word> {
    if one_of_several {
        return Some(Word::unknown());
    }
    let text = alternatives
        .iter()
        .rfind(|other| !other.trim().is_empty())?;
    let mut alternatives: Vec<String> = alternatives
        .iter()
        .filter(|other| *other != text)
        .cloned()
        .collect();
    alternatives.push(String::new());
    Some(Word {
        text: text.clone(),
        dynamic: true,
        any_text: true,
        one_of_several: text.contains(char::is_whitespace),
        alternatives,
        ..Word::default()
    })
}

/// The stored value of a variable as the text of a word: an unknown number is just unknown there.
pub(crate) fn to_text(value: &str) -> String {
    value.replace(NUMBER, UNKNOWN.encode_utf8(&mut [0; 4]))
}

/// The stored values of a variable as texts of words.
pub(crate) fn to_texts(values: &[String]) -> Vec<String> {
    values.iter().map(|value| to_text(value)).collect()
}

const CLOSING_BRACKET: Atom = Atom::Char {
    value: ']',
    quoted: false,
};

fn to_word(field: &[Atom]) -> Word {
    let mut word = Word::default();
    for (i, atom) in field.iter().enumerate() {
        match *atom {
            Atom::Char { value, quoted } => {
                // A quoted tilde is a plain character. `./~` keeps it from being read as a home.
                if i == 0 && value == '~' && quoted {
                    word.text.push_str("./");
                }
                let bracket = value == '[' && field[i..].contains(&CLOSING_BRACKET);
                word.glob |= !quoted && (matches!(value, '*' | '?') || bracket);
                word.text.push(value);
            }
            Atom::Unknown | Atom::Number => {
                word.text.push(UNKNOWN);
                word.dynamic = true;
            }
            Atom::Split => {}
        }
    }
    word
}
