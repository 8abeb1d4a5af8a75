//! What was read of a word, made into the words that it becomes.

use super::arithmetic::NUMBER;
use super::brace::{Atom, expand};
use super::literal::whole_variable;
use super::word::{HOLE, Mode, Reader, Reading, Word};

impl Reader<'_> {
    pub fn finish(mut self) -> Reading {
        if let Some(earlier) = whole_variable(self.cursor.text, self.vars) {
            (self.others, self.unsure) = (all_shown(earlier), false);
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
                word.vague = self.vague && word.dynamic;
                word.spreads = self.spreads && word.text.contains(HOLE);
                word.unsure = self.unsure;
                if single {
                    word.others = self.others.clone();
                }
                words.push(word);
            }
        }
        if words.is_empty() {
            words.extend(otherwise(&self.others, self.unsure));
        }
        Reading {
            words,
            commands: self.commands,
            relies: self.relies,
            assigned: self.assigned,
        }
    }

    /// The text of a value that was read on its own.
    pub fn word_of(&self, atoms: &[Atom]) -> Word {
        let word = to_word(atoms);
        Word {
            dynamic: word.dynamic || self.guess,
            vague: self.vague,
            unsure: self.unsure,
            ..word
        }
    }
}

/// What was read as an expression sees it.
pub(crate) fn evaluable(atoms: &[Atom]) -> String {
    let character = |atom: &Atom| match *atom {
        Atom::Char { value, .. } => value,
        Atom::Number => NUMBER,
        Atom::Hole => HOLE,
        Atom::Split => ' ',
    };
    atoms.iter().map(character).collect()
}

/// The word that stands where the last value of a variable leaves none.
fn otherwise(others: &[String], unsure: bool) -> Option<Word> {
    if unsure {
        return Some(Word::unknown());
    }
    let text = others.iter().rfind(|other| !other.trim().is_empty())?;
    let mut others: Vec<String> = others
        .iter()
        .filter(|other| *other != text)
        .cloned()
        .collect();
    others.push(String::new());
    Some(Word {
        text: text.clone(),
        dynamic: true,
        vague: true,
        unsure: text.contains(char::is_whitespace),
        others,
        ..Word::default()
    })
}

/// A remembered value as the text of a word has it.
pub(crate) fn shown(value: &str) -> String {
    value.replace(NUMBER, HOLE.encode_utf8(&mut [0; 4]))
}

/// The same for several.
pub(crate) fn all_shown(values: &[String]) -> Vec<String> {
    values.iter().map(|value| shown(value)).collect()
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
                // A quoted tilde is a plain character; `./~` keeps it from being read as a home.
                if i == 0 && value == '~' && quoted {
                    word.text.push_str("./");
                }
                let bracket = value == '[' && field[i..].contains(&CLOSING_BRACKET);
                word.glob |= !quoted && (matches!(value, '*' | '?') || bracket);
                word.text.push(value);
            }
            Atom::Hole | Atom::Number => {
                word.text.push(HOLE);
                word.dynamic = true;
            }
            Atom::Split => {}
        }
    }
    word
}
