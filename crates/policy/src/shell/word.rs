//! A shell word read before it runs: quotes removed, expansions followed as far as they are known.
//!
//! It is also a second opinion on the tokenizer: a word in which an unquoted separator is left over was cut
//! differently than a shell would cut it, and is refused.

use super::arithmetic::{self, NUMBER, Reliance};
use super::brace::Atom;
use super::cursor::Cursor;
use super::escape::ansi_c;
use super::fields::{all_shown, evaluable};
use super::literal::{at_once, echoed, name_prefix};
use super::mask::{Piece, marked, piece_at};
use super::values::Vars;

/// Stands in a word's text for a part that is known only at run time.
pub(crate) const HOLE: char = '\u{F8FF}';

/// A word after expansion, as far as it can be known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// Some of it is known only at run time, or is a guess.
    pub dynamic: bool,
    /// Some of that may be anything, and not just a number.
    pub vague: bool,
    /// It may turn out to be several words.
    pub spreads: bool,
    /// A variable in it had several values, of which the text shows one.
    pub unsure: bool,
    /// It holds unquoted pattern characters.
    pub glob: bool,
    /// Other values it may have.
    pub others: Vec<String>,
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
            text: HOLE.to_string(),
            dynamic: true,
            vague: true,
            spreads: true,
            ..Word::default()
        }
    }

    /// The word may be anything at all, an option included.
    pub fn starts_unknown(&self) -> bool {
        self.text.starts_with(HOLE) || self.text.is_empty() && self.dynamic
    }
}

/// How a word is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A command's word: braces, splitting, separators refused.
    Plain,
    /// The same with extended patterns, where parentheses and bars are part of the word.
    Pattern,
    /// The right side of an assignment: no braces, no splitting.
    Value,
    /// A here-document, an arithmetic expression: no quotes, only `$` and backticks count.
    Text,
}

/// What reading a word gave.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub words: Vec<Word>,
    /// The commands of its substitutions.
    pub commands: Vec<String>,
    /// What its text relies on where bash evaluates it again.
    pub relies: Reliance,
    /// Variables given a value in passing, as by `${x:=y}`.
    pub assigned: Vec<(String, Word)>,
}

/// The word cannot be read with certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Nested expansions inside one word beyond this depth are refused.
const MOST_NESTING: usize = 12;

/// Reads a word; `pieces` are what the marks in it stand for.
pub(crate) fn read(
    source: &str,
    pieces: &[Piece],
    vars: &Vars,
    mode: Mode,
) -> Result<Reading, Unreadable> {
    match at_once(source, vars, mode) {
        Some(word) => Ok(Reading {
            words: vec![word],
            ..Reading::default()
        }),
        None => follow(source, pieces, vars, mode),
    }
}

/// Reads a word character by character.
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

/// Reads text that is expanded and then evaluated as an arithmetic expression.
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
        .relies
        .add(arithmetic::expression(&evaluable(&reader.atoms)));
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
    pub others: Vec<String>,
    pub commands: Vec<String>,
    pub relies: Reliance,
    pub assigned: Vec<(String, Word)>,
    pub quoted_any: bool,
    /// The text is evaluated when it has been expanded: a variable counts for a number, and must be one.
    pub evaluates: bool,
    pub vague: bool,
    pub spreads: bool,
    pub unsure: bool,
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
            others: Vec::new(),
            commands: Vec::new(),
            relies: Reliance::default(),
            assigned: Vec::new(),
            quoted_any: false,
            evaluates: false,
            vague: false,
            spreads: false,
            unsure: false,
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
            '$' => self.dollar(true)?,
            '`' => self.expansion(true)?,
            _ => self.plain(c, true)?,
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
            '$' => self.dollar(false)?,
            '`' => self.expansion(false)?,
            '(' | ')' | '|' if self.mode == Mode::Pattern => self.push(c, false),
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'
                if self.mode == Mode::Plain || self.mode == Mode::Value && self.depth == 0 =>
            {
                return Err(Unreadable);
            }
            _ => self.plain(c, false)?,
        }
        Ok(())
    }

    /// A character that means itself, or the mark of something that was cut out.
    fn plain(&mut self, c: char, quoted: bool) -> Result<(), Unreadable> {
        match marked(c, self.pieces) {
            Some(piece) => self.piece(piece, quoted),
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
                '$' => self.dollar(true)?,
                '`' => self.expansion(true)?,
                c => self.plain(c, true)?,
            }
        }
    }

    /// An expansion that was not cut out: the reader's cursor is right behind its first character.
    fn expansion(&mut self, quoted: bool) -> Result<(), Unreadable> {
        let start = self.cursor.at - 1;
        let (piece, length) = piece_at(&self.cursor.text[start..], quoted)?;
        self.cursor.at = start + length;
        self.piece(&piece, quoted)
    }

    fn piece(&mut self, piece: &Piece, quoted: bool) -> Result<(), Unreadable> {
        match piece {
            Piece::Command(command) => {
                self.substitution(command, quoted);
                Ok(())
            }
            Piece::Arithmetic(expression) => {
                self.number();
                self.expression(expression)
            }
            Piece::Parameter(inner) => self.parameter(inner, quoted),
            Piece::Document { .. } => Err(Unreadable),
        }
    }

    /// After a `$`: a substitution, a parameter, an ANSI-C string, or just a dollar sign.
    fn dollar(&mut self, quoted: bool) -> Result<(), Unreadable> {
        match self.cursor.peek() {
            Some('(' | '[' | '{') => self.expansion(quoted),
            Some('\'') if !quoted => self.ansi_c(),
            Some('"') if !quoted => Ok(()),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = name_prefix(self.cursor.rest());
                self.cursor.at += name.len();
                self.variable(name, quoted);
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.cursor.next_char();
                match c {
                    '#' | '?' | '$' | '!' => self.number(),
                    _ => self.hole(quoted && c != '@'),
                }
                Ok(())
            }
            _ => {
                self.push('$', true);
                Ok(())
            }
        }
    }

    /// Reads text only for the commands it may run.
    pub fn inner_text(&mut self, text: &str) -> Result<(), Unreadable> {
        let mut inner = Reader::new(text, &[], self.vars, Mode::Text, self.depth + 1);
        inner.run()?;
        self.took(inner);
        Ok(())
    }

    /// Reads text that is evaluated as an expression.
    pub fn expression(&mut self, text: &str) -> Result<(), Unreadable> {
        let mut inner = Reader::new(text, &[], self.vars, Mode::Text, self.depth + 1);
        inner.evaluates = true;
        inner.run()?;
        self.relies
            .add(arithmetic::expression(&evaluable(&inner.atoms)));
        self.took(inner);
        Ok(())
    }

    /// What was found beside the text of an inner expansion.
    pub fn took(&mut self, mut inner: Reader<'_>) {
        self.commands.append(&mut inner.commands);
        self.assigned.append(&mut inner.assigned);
        self.relies.add(inner.relies);
    }

    fn substitution(&mut self, command: &str, quoted: bool) {
        self.commands.push(command.to_owned());
        if let Some(program) = arithmetic::counting(command) {
            self.relies.programs.push(program);
            return self.number();
        }
        match echoed(command).filter(|_| !self.evaluates) {
            Some(value) => {
                self.guess = true;
                self.vague = true;
                for c in value.chars() {
                    match c {
                        ' ' if !quoted && self.mode == Mode::Plain => self.atoms.push(Atom::Split),
                        _ => self.push(c, true),
                    }
                }
            }
            None => self.hole(quoted),
        }
    }

    /// Whether the expansion that ends at the cursor is the whole word.
    pub fn is_whole(&self) -> bool {
        self.cursor.text.len() == self.cursor.at && self.atoms.is_empty()
    }

    /// Something that is known only at run time. What is not quoted may be any number of words.
    pub fn hole(&mut self, quoted: bool) {
        self.atoms.push(Atom::Hole);
        self.vague = true;
        self.spreads |= !quoted && self.mode == Mode::Plain;
    }

    pub fn number(&mut self) {
        self.atoms.push(Atom::Number);
    }

    pub fn variable(&mut self, name: &str, quoted: bool) {
        if self.evaluates {
            self.relies.reads.push(name.to_owned());
            return self.number();
        }
        if name == "IFS" && !quoted && !self.vars.contains_key(name) {
            self.atoms.push(Atom::Split);
            return;
        }
        let Some((last, earlier)) = self.vars.get(name).and_then(|v| v.split_last()) else {
            return match arithmetic::is_always_number(name) {
                true => self.number(),
                false => self.hole(quoted),
            };
        };
        if self.is_whole() {
            self.others = all_shown(earlier);
        } else {
            self.unsure |= !earlier.is_empty();
        }
        self.guess = true;
        self.vague |= !earlier
            .iter()
            .chain([last])
            .all(|v| arithmetic::is_number_value(v));
        let value = last.clone();
        self.value(&value, quoted);
    }

    pub fn value(&mut self, value: &str, quoted: bool) {
        for c in value.chars() {
            match c {
                HOLE => self.hole(quoted),
                NUMBER => self.number(),
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
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        let vars = Vars::from([("x".to_owned(), vec!["rm -rf".to_owned()])]);
        let reading = read(source, &[], &vars, Mode::Plain).unwrap();
        reading
            .words
            .into_iter()
            .map(|w| w.text.replace(HOLE, "%"))
            .collect()
    }

    #[test]
    fn quotes_are_removed() {
        assert_eq!(texts(r#"r"m"'x'\y"#), ["rmxy"]);
        assert_eq!(texts(r"$'\x72\155'"), ["rm"]);
        assert_eq!(texts("a\\\nb"), ["ab"]);
        assert_eq!(texts("''"), [""]);
    }

    #[test]
    fn expansions_are_followed_or_left_open() {
        assert_eq!(texts("$x"), ["rm", "-rf"]);
        assert_eq!(texts("\"$x\""), ["rm -rf"]);
        assert_eq!(texts("${y:-curl}"), ["curl"]);
        assert_eq!(texts("cat$IFS/etc/shadow"), ["cat", "/etc/shadow"]);
        assert_eq!(texts("a$(id)b"), ["a%b"]);
        assert_eq!(texts("${x:0:2}"), ["rm"]);
        assert_eq!(texts("$(echo git)"), ["git"]);
    }

    #[test]
    fn commands_of_substitutions_are_found_at_any_depth() {
        let vars = Vars::default();
        let of = |source: &str, mode| read(source, &[], &vars, mode).unwrap().commands;
        assert_eq!(of("\"a $(rm \")\" x) b\"", Mode::Plain), ["rm \")\" x"]);
        assert_eq!(of("${y:-$(id)}", Mode::Plain), ["id"]);
        assert_eq!(of("$((1 + $(id)))", Mode::Plain), ["id"]);
        assert_eq!(of("say `id` and \\`this\\`", Mode::Text), ["id"]);
        assert_eq!(
            of("\"$(cat <<'EOF'\nsay \"hi :) don't\nEOF\n)\"", Mode::Plain),
            ["cat <<'EOF'\nsay \"hi :) don't\nEOF\n"]
        );
    }

    #[test]
    fn a_word_cut_wrongly_is_refused() {
        let refused = |source: &str| read(source, &[], &Vars::default(), Mode::Plain).is_err();
        assert!(refused(r"\$'a\'; rm x #'"));
        assert!(refused("a b"));
        assert!(refused("'open"));
        assert!(refused("${open"));
    }
}
