//! Expands one word: removes quotes and expands what is known before the run.
//!
//! It also checks the tokenizer: a word with an unquoted separator in it was cut differently than bash cuts it, and
//! is refused.

use super::arithmetic::{self, Assumptions, NUMBER};
use super::brace::Atom;
use super::cursor::Cursor;
use super::escape::ansi_c;
use super::fields::{as_expression, to_texts};
use super::literal::{echoed, name_prefix, read_plain};
use super::mask::{Piece, marked, piece_at};
use super::values::Vars;

/// Stands in the text of a word for a part that is known only at run time.
pub(crate) const UNKNOWN: char = '\u{F8FF}';

/// A word after expansion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// A part of it is known only at run time, or is taken from a variable's value.
    pub dynamic: bool,
    /// The part that is not known may be any text, and not only a number.
    pub any_text: bool,
    /// It may become several words at run time.
    pub may_split: bool,
    /// A variable in it has several possible values. The text has one of them.
    pub one_of_several: bool,
    /// It has unquoted pattern characters.
    pub glob: bool,
    /// Other texts that it may have.
    pub alternatives: Vec<String>,
}

impl Word {
    pub fn fixed(text: impl Into<String>) -> Word {
        Word {
            text: text.into(),
            ..Word::default()
        }
    }

    pub fn unknown() -> Word {
        Word {
            text: UNKNOWN.to_string(),
            dynamic: true,
            any_text: true,
            may_split: true,
            ..Word::default()
        }
    }

    /// Whether its beginning is not known, so that it may be an option.
    pub fn starts_unknown(&self) -> bool {
        self.text.starts_with(UNKNOWN) || self.text.is_empty() && self.dynamic
    }
}

/// Where a word stands, which decides how it is expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A word of a command: braces are expanded, values are split, separators are refused.
    Plain,
    /// A word of a command under `extglob`: parentheses and bars are part of it.
    Pattern,
    /// The right side of an assignment: neither braces nor splitting.
    Value,
    /// A here-document or an arithmetic expression: only `$` and backquotes have a meaning.
    Text,
}

/// What expanding a word gave.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub words: Vec<Word>,
    /// The commands of its command substitutions.
    pub commands: Vec<String>,
    /// What must hold for the parts that bash evaluates a second time.
    pub assumes: Assumptions,
    /// Variables that it assigns, as `${x:=y}` does.
    pub assigned: Vec<(String, Word)>,
}

/// The word cannot be read with certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Expansions nested deeper than this in one word are refused.
const MOST_NESTING: usize = 12;

/// Expands a word. `pieces` are what its marks stand for.
pub(crate) fn read(
    source: &str,
    pieces: &[Piece],
    vars: &Vars,
    mode: Mode,
) -> Result<Reading, Unreadable> {
    match read_plain(source, vars, mode) {
        Some(word) => Ok(Reading {
            words: vec![word],
            ..Reading::default()
        }),
        None => follow(source, pieces, vars, mode),
    }
}

/// Expands a word character by character, without the fast path.
pub(crate) fn follow(
    source: &str,
    pieces: &[Piece],
    vars: &Vars,
    mode: Mode,
) -> Result<Reading, Unreadable> {
    let mut reader = Reader::new(source, pieces, vars, mode, 0);
    reader.run()?;
    Ok(reader.finish())
}

/// Expands text that bash then evaluates as an arithmetic expression.
pub(crate) fn evaluated(
    source: &str,
    pieces: &[Piece],
    vars: &Vars,
    mode: Mode,
) -> Result<Reading, Unreadable> {
    let mut reader = Reader::new(source, pieces, vars, mode, 0);
    reader.evaluates = true;
    reader.run()?;
    reader
        .assumes
        .add(arithmetic::expression(&as_expression(&reader.atoms)));
    Ok(reader.finish())
}

pub(crate) struct Reader<'a> {
    pub cursor: Cursor<'a>,
    pieces: &'a [Piece],
    pub vars: &'a Vars,
    pub mode: Mode,
    pub depth: usize,
    pub atoms: Vec<Atom>,
    pub guess: bool,
    pub alternatives: Vec<String>,
    pub commands: Vec<String>,
    pub assumes: Assumptions,
    pub assigned: Vec<(String, Word)>,
    pub quoted_any: bool,
    /// The expanded text is evaluated as an expression. A variable in it is assumed to be a number.
    pub evaluates: bool,
    pub any_text: bool,
    pub may_split: bool,
    pub one_of_several: bool,
}

impl<'a> Reader<'a> {
    pub fn new(
        source: &'a str,
        pieces: &'a [Piece],
        vars: &'a Vars,
        mode: Mode,
        depth: usize,
    ) -> Self {
        Reader {
            cursor: Cursor::new(source),
            pieces,
            vars,
            mode,
            depth,
            atoms: Vec::with_capacity(source.len()),
            guess: false,
            alternatives: Vec::new(),
            commands: Vec::new(),
            assumes: Assumptions::default(),
            assigned: Vec::new(),
            quoted_any: false,
            evaluates: false,
            any_text: false,
            may_split: false,
            one_of_several: false,
        }
    }

    fn push(&mut self, value: char, quoted: bool) {
        self.atoms.push(Atom::Char { value, quoted });
    }

    pub fn run(&mut self) -> Result<(), Unreadable> {
        if self.depth > MOST_NESTING {
            return Err(Unreadable);
        }
        while let Some(c) = self.cursor.next_char() {
            if self.mode == Mode::Text {
                self.text_char(c)?;
            } else {
                self.unquoted_char(c)?;
            }
        }
        Ok(())
    }

    fn text_char(&mut self, c: char) -> Result<(), Unreadable> {
        match c {
            '\\' if self
                .cursor
                .peek()
                .is_some_and(|n| matches!(n, '$' | '`' | '\\')) =>
            {
                let escaped = self.cursor.next_char().ok_or(Unreadable)?;
                self.push(escaped, true);
            }
            '$' => self.read_dollar(true)?,
            '`' => self.read_expansion(true)?,
            _ => self.char_or_mark(c, true)?,
        }
        Ok(())
    }

    fn unquoted_char(&mut self, c: char) -> Result<(), Unreadable> {
        match c {
            '\\' => match self.cursor.next_char() {
                Some('\n') => {}
                Some(escaped) => self.push(escaped, true),
                None => return Err(Unreadable),
            },
            '\'' => self.single_quoted()?,
            '"' => self.double_quoted()?,
            '$' => self.read_dollar(false)?,
            '`' => self.read_expansion(false)?,
            '(' | ')' | '|' if self.mode == Mode::Pattern => self.push(c, false),
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'
                if self.mode == Mode::Plain || self.mode == Mode::Value && self.depth == 0 =>
            {
                return Err(Unreadable);
            }
            _ => self.char_or_mark(c, false)?,
        }
        Ok(())
    }

    /// Reads a plain character, or the mark of a piece.
    fn char_or_mark(&mut self, c: char, quoted: bool) -> Result<(), Unreadable> {
        match marked(c, self.pieces) {
            Some(piece) => self.expand_piece(piece, quoted),
            None => {
                self.push(c, quoted);
                Ok(())
            }
        }
    }

    fn single_quoted(&mut self) -> Result<(), Unreadable> {
        let end = self.cursor.rest().find('\'').ok_or(Unreadable)?;
        for c in self.cursor.rest()[..end].chars() {
            self.push(c, true);
        }
        self.quoted_any = true;
        self.cursor.at += end + 1;
        Ok(())
    }

    fn double_quoted(&mut self) -> Result<(), Unreadable> {
        self.quoted_any = true;
        loop {
            match self.cursor.next_char().ok_or(Unreadable)? {
                '"' => return Ok(()),
                '\\' => match self.cursor.next_char().ok_or(Unreadable)? {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => self.push(c, true),
                    c => {
                        self.push('\\', true);
                        self.push(c, true);
                    }
                },
                '$' => self.read_dollar(true)?,
                '`' => self.read_expansion(true)?,
                c => self.char_or_mark(c, true)?,
            }
        }
    }

    /// Reads an expansion that was not cut out. The cursor is behind its first character.
    fn read_expansion(&mut self, quoted: bool) -> Result<(), Unreadable> {
        let start = self.cursor.at - 1;
        let (piece, length) = piece_at(&self.cursor.text[start..], quoted)?;
        self.cursor.at = start + length;
        self.expand_piece(&piece, quoted)
    }

    fn expand_piece(&mut self, piece: &Piece, quoted: bool) -> Result<(), Unreadable> {
        match piece {
            Piece::Command(command) => {
                self.expand_substitution(command, quoted);
                Ok(())
            }
            Piece::Arithmetic(expression) => {
                self.push_number();
                self.evaluate(expression)
            }
            Piece::Parameter(inner) => self.expand_parameter(inner, quoted),
            Piece::Document { .. } => Err(Unreadable),
        }
    }

    /// Reads what follows a `$`: a substitution, a parameter, an ANSI-C string, or nothing special.
    fn read_dollar(&mut self, quoted: bool) -> Result<(), Unreadable> {
        match self.cursor.peek() {
            Some('(' | '[' | '{') => self.read_expansion(quoted),
            Some('\'') if !quoted => self.ansi_c(),
            Some('"') if !quoted => Ok(()),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = name_prefix(self.cursor.rest());
                self.cursor.at += name.len();
                self.expand_variable(name, quoted);
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.cursor.next_char();
                match c {
                    '#' | '?' | '$' | '!' => self.push_number(),
                    _ => self.push_unknown(quoted && c != '@'),
                }
                Ok(())
            }
            _ => {
                self.push('$', true);
                Ok(())
            }
        }
    }

    /// Reads inner text only for the commands in it.
    pub fn read_inner(&mut self, text: &str) -> Result<(), Unreadable> {
        let mut inner = Reader::new(text, &[], self.vars, Mode::Text, self.depth + 1);
        inner.run()?;
        self.merge(inner);
        Ok(())
    }

    /// Reads inner text that is evaluated as an expression.
    pub fn evaluate(&mut self, text: &str) -> Result<(), Unreadable> {
        let mut inner = Reader::new(text, &[], self.vars, Mode::Text, self.depth + 1);
        inner.evaluates = true;
        inner.run()?;
        self.assumes
            .add(arithmetic::expression(&as_expression(&inner.atoms)));
        self.merge(inner);
        Ok(())
    }

    /// Takes over the commands, assignments and assumptions of an inner expansion.
    pub fn merge(&mut self, mut inner: Reader<'_>) {
        self.commands.append(&mut inner.commands);
        self.assigned.append(&mut inner.assigned);
        self.assumes.add(inner.assumes);
    }

    fn expand_substitution(&mut self, command: &str, quoted: bool) {
        self.commands.push(command.to_owned());
        if let Some(program) = arithmetic::counting(command) {
            self.assumes.programs.push(program);
            return self.push_number();
        }
        match echoed(command).filter(|_| !self.evaluates) {
            Some(value) => {
                self.guess = true;
                self.any_text = true;
                for c in value.chars() {
                    match c {
                        ' ' if !quoted && self.mode == Mode::Plain => self.atoms.push(Atom::Split),
                        _ => self.push(c, true),
                    }
                }
            }
            None => self.push_unknown(quoted),
        }
    }

    /// Whether the expansion that ends at the cursor is the whole word.
    pub fn is_whole(&self) -> bool {
        self.cursor.text.len() == self.cursor.at && self.atoms.is_empty()
    }

    /// Adds a part that is known only at run time. Without quotes it may be any number of words.
    pub fn push_unknown(&mut self, quoted: bool) {
        self.atoms.push(Atom::Unknown);
        self.any_text = true;
        self.may_split |= !quoted && self.mode == Mode::Plain;
    }

    pub fn push_number(&mut self) {
        self.atoms.push(Atom::Number);
    }

    pub fn expand_variable(&mut self, name: &str, quoted: bool) {
        if self.evaluates {
            self.assumes.reads.push(name.to_owned());
            return self.push_number();
        }
        if name == "IFS" && !quoted && !self.vars.contains_key(name) {
            self.atoms.push(Atom::Split);
            return;
        }
        let Some((last, earlier)) = self.vars.get(name).and_then(|v| v.split_last()) else {
            return match arithmetic::is_always_number(name) {
                true => self.push_number(),
                false => self.push_unknown(quoted),
            };
        };
        if self.is_whole() {
            self.alternatives = to_texts(earlier);
        } else {
            self.one_of_several |= !earlier.is_empty();
        }
        self.guess = true;
        self.any_text |= !earlier
            .iter()
            .chain([last])
            .all(|v| arithmetic::is_number_value(v));
        let value = last.clone();
        self.push_value(&value, quoted);
    }

    pub fn push_value(&mut self, value: &str, quoted: bool) {
        for c in value.chars() {
            match c {
                UNKNOWN => self.push_unknown(quoted),
                NUMBER => self.push_number(),
                ' ' | '\t' | '\n' if !quoted && self.mode == Mode::Plain => {
                    self.atoms.push(Atom::Split);
                }
                _ => self.push(c, quoted),
            }
        }
    }

    fn ansi_c(&mut self) -> Result<(), Unreadable> {
        self.cursor.next_char();
        self.quoted_any = true;
        loop {
            match self.cursor.next_char().ok_or(Unreadable)? {
                '\'' => return Ok(()),
                '\\' => {
                    let (value, length) = ansi_c(self.cursor.rest()).ok_or(Unreadable)?;
                    self.cursor.at += length;
                    self.push(value, true);
                }
                c => self.push(c, true),
            }
        }
    }
}

#[cfg(test)]
mod tests;
