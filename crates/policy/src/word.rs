//! A shell word read before it runs: quotes removed, expansions followed as far as they are known.
//!
//! It is also a second opinion on the tokenizer: a word in which an unquoted separator is left over was cut
//! differently than a shell would cut it, and is refused.

use std::collections::BTreeMap;

use crate::brace::{Atom, expand};
use crate::escape::ansi_c;
use crate::literal::{at_once, echoed, name_prefix};
use crate::mask::{Piece, marked, piece_at};

/// Stands in a word's text for a part that is known only at run time.
pub(crate) const HOLE: char = '\u{F8FF}';

/// The values a variable may have at this point of the text.
pub(crate) type Vars = BTreeMap<String, Vec<String>>;

/// A word after expansion, as far as it can be known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// Some of it is known only at run time, or is a guess.
    pub dynamic: bool,
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
    /// It may run more than it shows, as `${x@P}` does.
    pub opaque: bool,
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

struct Reader<'a> {
    source: &'a str,
    at: usize,
    pieces: &'a [Piece],
    vars: &'a Vars,
    mode: Mode,
    depth: usize,
    atoms: Vec<Atom>,
    guess: bool,
    others: Vec<String>,
    commands: Vec<String>,
    opaque: bool,
    quoted_any: bool,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str, pieces: &'a [Piece], vars: &'a Vars, mode: Mode, depth: usize) -> Self {
        Reader {
            source,
            at: 0,
            pieces,
            vars,
            mode,
            depth,
            atoms: Vec::with_capacity(source.len()),
            guess: false,
            others: Vec::new(),
            commands: Vec::new(),
            opaque: false,
            quoted_any: false,
        }
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn push(&mut self, value: char, quoted: bool) {
        self.atoms.push(Atom::Char { value, quoted });
    }

    fn run(&mut self) -> Result<(), Unreadable> {
        if self.depth > MOST_NESTING {
            return Err(Unreadable);
        }
        while let Some(c) = self.next() {
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
            '\\' if self.peek().is_some_and(|n| matches!(n, '$' | '`' | '\\')) => {
                let escaped = self.next().ok_or(Unreadable)?;
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
            '\\' => match self.next() {
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
        let end = self.rest().find('\'').ok_or(Unreadable)?;
        for c in self.rest()[..end].chars() {
            self.push(c, true);
        }
        self.quoted_any = true;
        self.at += end + 1;
        Ok(())
    }

    fn double_quoted(&mut self) -> Result<(), Unreadable> {
        self.quoted_any = true;
        loop {
            match self.next().ok_or(Unreadable)? {
                '"' => return Ok(()),
                '\\' => match self.next().ok_or(Unreadable)? {
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
        let start = self.at - 1;
        let (piece, length) = piece_at(&self.source[start..], quoted)?;
        self.at = start + length;
        self.piece(&piece, quoted)
    }

    fn piece(&mut self, piece: &Piece, quoted: bool) -> Result<(), Unreadable> {
        match piece {
            Piece::Command(command) => {
                self.substitution(command, quoted);
                Ok(())
            }
            Piece::Arithmetic(expression) => {
                self.hole();
                self.inner_text(expression)
            }
            Piece::Parameter(inner) => self.parameter_expression(inner, quoted),
            Piece::Document { .. } => Err(Unreadable),
        }
    }

    /// After a `$`: a substitution, a parameter, an ANSI-C string, or just a dollar sign.
    fn dollar(&mut self, quoted: bool) -> Result<(), Unreadable> {
        match self.peek() {
            Some('(' | '[' | '{') => self.expansion(quoted),
            Some('\'') if !quoted => self.ansi_c(),
            Some('"') if !quoted => Ok(()),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = name_prefix(self.rest());
                self.at += name.len();
                self.variable(name, quoted);
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.next();
                self.hole();
                Ok(())
            }
            _ => {
                self.push('$', true);
                Ok(())
            }
        }
    }

    /// Reads text only for the commands it may run.
    fn inner_text(&mut self, text: &str) -> Result<(), Unreadable> {
        let mut inner = Reader::new(text, &[], self.vars, Mode::Text, self.depth + 1);
        inner.run()?;
        self.commands.append(&mut inner.commands);
        self.opaque |= inner.opaque;
        Ok(())
    }

    fn substitution(&mut self, command: &str, quoted: bool) {
        match echoed(command) {
            Some(value) => {
                self.guess = true;
                for c in value.chars() {
                    match c {
                        ' ' if !quoted && self.mode == Mode::Plain => self.atoms.push(Atom::Split),
                        _ => self.push(c, true),
                    }
                }
            }
            None => self.hole(),
        }
        self.commands.push(command.to_owned());
    }

    fn hole(&mut self) {
        self.atoms.push(Atom::Hole);
    }

    fn variable(&mut self, name: &str, quoted: bool) {
        if name == "IFS" && !quoted && !self.vars.contains_key(name) {
            self.atoms.push(Atom::Split);
            return;
        }
        let Some((last, earlier)) = self.vars.get(name).and_then(|v| v.split_last()) else {
            self.hole();
            return;
        };
        if self.source.len() == self.at && self.atoms.is_empty() {
            self.others = earlier.to_vec();
        }
        self.guess = true;
        let value = last.clone();
        self.value(&value, quoted);
    }

    fn value(&mut self, value: &str, quoted: bool) {
        for c in value.chars() {
            match c {
                HOLE => self.hole(),
                ' ' | '\t' | '\n' if !quoted && self.mode == Mode::Plain => {
                    self.atoms.push(Atom::Split);
                }
                _ => self.push(c, quoted),
            }
        }
    }

    /// The inside of `${…}`.
    fn parameter_expression(&mut self, inner: &str, quoted: bool) -> Result<(), Unreadable> {
        let name = name_prefix(inner);
        let operation = &inner[name.len()..];
        if name.is_empty() || operation.contains('@') && operation.ends_with('P') {
            self.opaque |= !name.is_empty();
            self.hole();
            return self.inner_text(inner);
        }
        if operation.is_empty() {
            self.variable(name, quoted);
            return Ok(());
        }
        let alternative = operation.strip_prefix(':').unwrap_or(operation);
        if let Some(word) = alternative.strip_prefix(['-', '=', '+']) {
            return self.alternative(word, quoted);
        }
        if let Some(part) = self.substring(name, operation) {
            self.guess = true;
            self.value(&part, quoted);
            return Ok(());
        }
        if name == "IFS" && !quoted {
            self.atoms.push(Atom::Split);
        } else {
            self.hole();
        }
        self.inner_text(operation)
    }

    /// `${x:-word}` and its kin: the word is the best guess.
    fn alternative(&mut self, word: &str, quoted: bool) -> Result<(), Unreadable> {
        let mut inner = Reader::new(word, &[], self.vars, Mode::Value, self.depth + 1);
        inner.run()?;
        self.guess = true;
        self.commands.append(&mut inner.commands);
        self.opaque |= inner.opaque;
        for atom in inner.atoms {
            match atom {
                Atom::Char {
                    value: ' ' | '\t' | '\n',
                    quoted: false,
                } if !quoted => {
                    self.atoms.push(Atom::Split);
                }
                other => self.atoms.push(other),
            }
        }
        Ok(())
    }

    /// `${x:1:2}` of a known variable with plain numbers.
    fn substring(&self, name: &str, operation: &str) -> Option<String> {
        let value = self.vars.get(name)?.last()?;
        let mut numbers = operation.strip_prefix(':')?.splitn(2, ':');
        let offset: usize = numbers.next()?.trim().parse().ok()?;
        let length: usize = match numbers.next() {
            Some(length) => length.trim().parse().ok()?,
            None => usize::MAX,
        };
        Some(value.chars().skip(offset).take(length).collect())
    }

    fn ansi_c(&mut self) -> Result<(), Unreadable> {
        self.next();
        self.quoted_any = true;
        loop {
            match self.next().ok_or(Unreadable)? {
                '\'' => return Ok(()),
                '\\' => {
                    let (value, length) = ansi_c(self.rest()).ok_or(Unreadable)?;
                    self.at += length;
                    self.push(value, true);
                }
                c => self.push(c, true),
            }
        }
    }

    fn finish(self) -> Reading {
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
                if single {
                    word.others = self.others.clone();
                }
                words.push(word);
            }
        }
        Reading {
            words,
            commands: self.commands,
            opaque: self.opaque,
        }
    }
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
            Atom::Hole => {
                word.text.push(HOLE);
                word.dynamic = true;
            }
            Atom::Split => {}
        }
    }
    word
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
        let vars = Vars::new();
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
        let refused = |source: &str| read(source, &[], &Vars::new(), Mode::Plain).is_err();
        assert!(refused(r"\$'a\'; rm x #'"));
        assert!(refused("a b"));
        assert!(refused("'open"));
        assert!(refused("${open"));
    }
}
