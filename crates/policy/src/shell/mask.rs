//! Takes substitutions and here-documents out of shell text before the parser sees it.
//!
//! The parser can be made to panic, to loop and to lose text by nested text. So each `$(…)`, `${…}`, backquote and
//! here-document is cut out here by the rules of bash, and one mark is left in its place. The parser reads the
//! grammar of the rest. The pieces are judged afterwards. Text on which shells differ is refused.

use std::cell::Cell;

use super::cursor::Cursor;
use super::heredoc::Pending;
use super::word::Unreadable;

/// Something that was cut out of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The text of a command substitution.
    Command(String),
    /// The inside of `$((…))`.
    Arithmetic(String),
    /// The inside of `${…}`.
    Parameter(String),
    /// A here-document: its text, and whether it is expanded.
    Document { body: String, expands: bool },
}

/// Text with a mark in the place of each piece.
#[derive(Debug, Default)]
pub(crate) struct Masked {
    pub text: String,
    pub pieces: Vec<Piece>,
}

/// Marks are characters of a private-use plane. Text that already has one is refused.
const FIRST_MARK: u32 = 0xF0000;
const MARKS: std::ops::RangeInclusive<u32> = FIRST_MARK..=0xFFFFD;
/// Deeper nesting than this is refused.
const DEEPEST: usize = 24;
/// Nested texts are tried as arithmetic and as commands. More tries than this are refused.
const MOST_TRIES: u32 = 2000;
/// The characters that end a word.
pub(crate) const SEPARATORS: &str = " \t\n;&|<>()";

/// The piece that a mark stands for.
pub(crate) fn marked(c: char, pieces: &[Piece]) -> Option<&Piece> {
    let index = u32::from(c).checked_sub(FIRST_MARK)?;
    pieces.get(usize::try_from(index).ok()?)
}

/// Masks a whole program.
pub(crate) fn mask(text: &str) -> Result<Masked, Unreadable> {
    let marks = |c: char| MARKS.contains(&u32::from(c));
    if !text.is_ascii() && text.chars().any(marks) {
        return Err(Unreadable);
    }
    let tries = Cell::new(0);
    let mut masker = Masker::new(text, 0, &tries)?;
    masker.masked.text.reserve(text.len());
    masker.program(None)?;
    Ok(masker.masked)
}

/// Reads the expansion at the start of `text`: `$(`, `${`, `$[` or a backquote. Returns it with its length in bytes.
pub(crate) fn piece_at(text: &str, quoted: bool) -> Result<(Piece, usize), Unreadable> {
    let tries = Cell::new(0);
    let mut masker = Masker::new(text, 0, &tries)?;
    let piece = masker.piece(quoted)?;
    Ok((piece, masker.cursor.at))
}

/// Reads shell text and writes the masked text.
pub(crate) struct Masker<'a> {
    pub cursor: Cursor<'a>,
    depth: usize,
    tries: &'a Cell<u32>,
    pub masked: Masked,
    /// What is before the cursor, which decides whether `#` begins a comment.
    pub before: Before,
    pub pending: Vec<Pending>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing, a blank, or the end of a command. A comment may begin here.
    Gap,
    /// A bracket or a redirection. Shells differ on whether a comment may begin here.
    Bracket,
    Word,
}

impl<'a> Masker<'a> {
    fn new(source: &'a str, depth: usize, tries: &'a Cell<u32>) -> Result<Self, Unreadable> {
        tries.set(tries.get() + 1);
        if depth > DEEPEST || tries.get() > MOST_TRIES {
            return Err(Unreadable);
        }
        Ok(Masker {
            cursor: Cursor::new(source),
            depth,
            tries,
            masked: Masked::default(),
            before: Before::Gap,
            pending: Vec::new(),
        })
    }

    /// Copies one character as it is.
    fn copy(&mut self) -> Result<char, Unreadable> {
        let c = self.cursor.next_char().ok_or(Unreadable)?;
        self.masked.text.push(c);
        Ok(c)
    }

    /// Masks commands up to the closing parenthesis, or to the end of the text.
    fn program(&mut self, close: Option<char>) -> Result<(), Unreadable> {
        let mut parentheses = 0usize;
        while let Some(c) = self.cursor.peek() {
            if self.copy_plain() {
                continue;
            }
            match c {
                ')' if parentheses == 0 && close.is_some() => return self.documents_are_read(),
                '(' if self.cursor.rest().starts_with("((") && self.arithmetic_command()? => {}
                '(' => {
                    parentheses += 1;
                    if parentheses > DEEPEST {
                        return Err(Unreadable);
                    }
                    // The parser would read `( (` as arithmetic. A line break prevents that.
                    if self.masked.text.trim_end().ends_with('(') {
                        self.masked.text.push('\n');
                    }
                    self.separator(Before::Bracket)?;
                }
                ')' => {
                    parentheses = parentheses.saturating_sub(1);
                    self.separator(Before::Bracket)?;
                }
                '\n' => {
                    self.separator(Before::Gap)?;
                    self.documents()?;
                }
                ' ' | '\t' | ';' | '&' | '|' => self.separator(Before::Gap)?,
                '#' if self.before == Before::Gap => {
                    self.cursor.at += self
                        .cursor
                        .rest()
                        .find('\n')
                        .unwrap_or(self.cursor.rest().len());
                }
                '#' if self.before == Before::Bracket => return Err(Unreadable),
                '<' if self.cursor.rest().starts_with("<<")
                    && !self.cursor.rest().starts_with("<<<") =>
                {
                    self.document()?;
                }
                '<' | '>' if self.cursor.rest()[1..].starts_with('(') => {
                    // A process substitution: its parenthesis never begins arithmetic.
                    parentheses += 1;
                    self.separator(Before::Bracket)?;
                    self.separator(Before::Bracket)?;
                }
                '<' | '>' => {
                    let here_string = self.cursor.rest().starts_with("<<<");
                    for _ in 0..if here_string { 3 } else { 1 } {
                        self.separator(Before::Bracket)?;
                    }
                }
                _ => self.word_char()?,
            }
        }
        if close.is_some() {
            Err(Unreadable)
        } else {
            self.documents_are_read()
        }
    }

    fn documents_are_read(&self) -> Result<(), Unreadable> {
        if self.pending.is_empty() {
            Ok(())
        } else {
            Err(Unreadable)
        }
    }

    fn separator(&mut self, before: Before) -> Result<(), Unreadable> {
        // Every character with a meaning in shell text is one byte.
        self.copy_str(1);
        self.before = before;
        Ok(())
    }

    /// Masks one character, quoted string or expansion of a word.
    fn word_char(&mut self) -> Result<(), Unreadable> {
        if self.cursor.rest().starts_with("\\\n") {
            self.cursor.at += 2;
            return Ok(());
        }
        self.before = Before::Word;
        match self.cursor.peek().ok_or(Unreadable)? {
            '\\' => {
                self.copy()?;
                self.copy()?;
            }
            '\'' => {
                let length = self.cursor.rest()[1..].find('\'').ok_or(Unreadable)?;
                self.copy_str(length + 2);
            }
            '"' => self.double_quoted()?,
            '$' if self.cursor.rest().starts_with("$'") => self.ansi_c()?,
            '`' => self.cut_expansion(false)?,
            '$' if self.opens_piece() => self.cut_expansion(false)?,
            _ => {
                self.copy()?;
            }
        }
        Ok(())
    }

    /// Copies characters without any meaning in shell text, and blanks. False when there are none.
    fn copy_plain(&mut self) -> bool {
        let bytes = &self.cursor.text.as_bytes()[self.cursor.at..];
        let length = bytes.iter().take_while(|byte| is_plain(**byte)).count();
        self.before = match bytes[..length].last() {
            None => return false,
            Some(b' ') => Before::Gap,
            Some(_) => Before::Word,
        };
        self.copy_str(length);
        true
    }

    fn copy_str(&mut self, length: usize) {
        self.masked.text.push_str(&self.cursor.rest()[..length]);
        self.cursor.at += length;
    }

    fn opens_piece(&self) -> bool {
        ["$(", "${", "$["]
            .iter()
            .any(|open| self.cursor.rest().starts_with(open))
    }

    fn double_quoted(&mut self) -> Result<(), Unreadable> {
        self.copy()?;
        loop {
            let special = |byte: u8| matches!(byte, b'"' | b'\\' | b'`' | b'$');
            let length = self
                .cursor
                .rest()
                .bytes()
                .position(special)
                .ok_or(Unreadable)?;
            self.copy_str(length);
            match self.cursor.peek().ok_or(Unreadable)? {
                '"' => {
                    self.copy()?;
                    return Ok(());
                }
                '\\' if self.cursor.rest().starts_with("\\\n") => self.cursor.at += 2,
                '\\' => {
                    self.copy()?;
                    self.copy()?;
                }
                '`' => self.cut_expansion(true)?,
                '$' if self.opens_piece() => self.cut_expansion(true)?,
                _ => {
                    self.copy()?;
                }
            }
        }
    }

    fn ansi_c(&mut self) -> Result<(), Unreadable> {
        self.copy()?;
        self.copy()?;
        loop {
            match self.copy()? {
                '\'' => return Ok(()),
                '\\' => {
                    self.copy()?;
                }
                _ => {}
            }
        }
    }

    /// Cuts out the expansion at the cursor and leaves a mark.
    fn cut_expansion(&mut self, quoted: bool) -> Result<(), Unreadable> {
        let start = self.cursor.at;
        let piece = self.piece(quoted)?;
        // Shells differ on where a here-document begins when the line ends inside an expansion.
        if !self.pending.is_empty() && self.cursor.text[start..self.cursor.at].contains('\n') {
            return Err(Unreadable);
        }
        self.leave_mark(piece)
    }

    pub fn leave_mark(&mut self, piece: Piece) -> Result<(), Unreadable> {
        let index = u32::try_from(self.masked.pieces.len()).map_err(|_| Unreadable)?;
        let mark = FIRST_MARK + index;
        self.masked.text.push(
            char::from_u32(mark)
                .filter(|_| MARKS.contains(&mark))
                .ok_or(Unreadable)?,
        );
        self.masked.pieces.push(piece);
        Ok(())
    }

    /// Reads the expansion at the cursor.
    fn piece(&mut self, quoted: bool) -> Result<Piece, Unreadable> {
        let rest = self.cursor.rest();
        if rest.starts_with('`') {
            return self.backquoted(quoted);
        }
        if let Some(inner) = rest.strip_prefix("$((")
            && let Some(length) = self.arithmetic_length(inner)?
        {
            self.cursor.at += "$((".len() + length + "))".len();
            return Ok(Piece::Arithmetic(inner[..length].to_owned()));
        }
        let inner = &rest["$(".len()..];
        let (piece, length): (fn(String) -> Piece, _) = match &rest[..2] {
            "$(" => (Piece::Command, self.command_length(inner)?),
            "${" => (Piece::Parameter, self.braces_length(inner, quoted)?),
            _ => (
                Piece::Arithmetic,
                inner
                    .find(['$', '`', ']', '\n', '\'', '"'])
                    .ok_or(Unreadable)?,
            ),
        };
        let close = inner[length..].chars().next();
        if close
            != Some(match &rest[..2] {
                "$(" => ')',
                "${" => '}',
                _ => ']',
            })
        {
            return Err(Unreadable);
        }
        self.cursor.at += "$(".len() + length + 1;
        Ok(piece(inner[..length].to_owned()))
    }

    fn backquoted(&mut self, quoted: bool) -> Result<Piece, Unreadable> {
        self.cursor.next_char();
        let mut command = String::new();
        loop {
            match self.cursor.next_char().ok_or(Unreadable)? {
                '`' => return Ok(Piece::Command(command)),
                '\\' => match self.cursor.next_char().ok_or(Unreadable)? {
                    c @ ('$' | '`' | '\\') => command.push(c),
                    '"' if quoted => command.push('"'),
                    c => command.extend(['\\', c]),
                },
                c => command.push(c),
            }
        }
    }

    /// The length of a command up to its closing parenthesis.
    fn command_length(&self, inner: &str) -> Result<usize, Unreadable> {
        let mut masker = Masker::new(inner, self.depth + 1, self.tries)?;
        masker.program(Some(')'))?;
        Ok(masker.cursor.at)
    }

    /// The length of the inside of `${…}`.
    fn braces_length(&self, inner: &str, quoted: bool) -> Result<usize, Unreadable> {
        let mut masker = Masker::new(inner, self.depth + 1, self.tries)?;
        while let Some(c) = masker.cursor.peek() {
            match c {
                '}' => return Ok(masker.cursor.at),
                // Inside double quotes, a single quote is a quote in some expansions and a plain character in others.
                '\'' if quoted => return Err(Unreadable),
                '<' | '>' if masker.cursor.rest()[1..].starts_with(['<', '(']) => {
                    return Err(Unreadable);
                }
                _ => masker.word_char()?,
            }
        }
        Err(Unreadable)
    }

    /// The length of an arithmetic expression up to its `))`. `None` when it is a command.
    fn arithmetic_length(&self, inner: &str) -> Result<Option<usize>, Unreadable> {
        let mut masker = Masker::new(inner, self.depth + 1, self.tries)?;
        let mut parentheses = 0usize;
        while let Some(c) = masker.cursor.peek() {
            match c {
                ')' if parentheses == 0 => {
                    let closed = masker.cursor.rest().starts_with("))");
                    return Ok(closed.then_some(masker.cursor.at));
                }
                ')' => parentheses -= 1,
                '(' if parentheses == DEEPEST => return Ok(None),
                '(' => parentheses += 1,
                // After a line break, a shift `<<` could be taken for a here-document.
                '\n' => return Ok(None),
                _ => {}
            }
            if matches!(c, '(' | ')') {
                masker.copy()?;
            } else if masker.word_char().is_err() {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Copies `((…))` with `+` for each `<`, `>` and `#`, which the tokenizer would misread. False when it is two
    /// subshells.
    fn arithmetic_command(&mut self) -> Result<bool, Unreadable> {
        let Some(length) = self.arithmetic_length(&self.cursor.rest()[2..])? else {
            return Ok(false);
        };
        let end = self.cursor.at + 2 + length;
        // In `[[ x =~ ((…)) ]]` this is a pattern, and `<(…)` in it is a process substitution.
        if ["<(", ">("]
            .iter()
            .any(|open| self.cursor.text[self.cursor.at..end].contains(open))
        {
            return Ok(false);
        }
        self.cursor.at += 2;
        self.masked.text.push_str("((");
        while self.cursor.at < end {
            if matches!(self.cursor.peek(), Some('<' | '>' | '#')) {
                self.cursor.next_char();
                self.masked.text.push('+');
            } else {
                self.word_char()?;
            }
        }
        self.cursor.at = end + 2;
        self.masked.text.push_str("))");
        self.before = Before::Bracket;
        Ok(true)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b' ' | b'-' | b'_' | b'.' | b'/' | b'=' | b':' | b',')
}

#[cfg(test)]
mod tests;
