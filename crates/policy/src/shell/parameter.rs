//! The inside of `${…}`: which parameter, and what is done with its value.

use super::arithmetic::{self, Reliance};
use super::brace::Atom;
use super::fields::{all_shown, evaluable};
use super::literal::name_prefix;
use super::mask::piece_at;
use super::word::{Mode, Reader, Unreadable};

/// The parts of `${name[subscript]operation}`.
struct Parts<'e> {
    name: &'e str,
    subscript: Option<&'e str>,
    operation: &'e str,
}

impl<'e> Parts<'e> {
    fn of(inner: &'e str) -> Result<Parts<'e>, Unreadable> {
        let name = match name_prefix(inner) {
            "" => special(inner),
            name => name,
        };
        let rest = &inner[name.len()..];
        let Some(opened) = rest.strip_prefix('[').filter(|_| !name.is_empty()) else {
            return Ok(Parts {
                name,
                subscript: None,
                operation: rest,
            });
        };
        let length = subscript_length(opened)?;
        Ok(Parts {
            name,
            subscript: Some(&opened[..length]),
            operation: &opened[length + 1..],
        })
    }

    /// `${a[@]}` is all elements, and no expression.
    fn is_all(&self) -> bool {
        matches!(self.subscript, Some("@" | "*"))
    }

    fn is_plain(&self) -> bool {
        name_prefix(self.name) == self.name && !self.name.is_empty() && self.subscript.is_none()
    }
}

/// `1`, `12`, `@`, `#` and the like.
fn special(inner: &str) -> &str {
    let digits = inner.len() - inner.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match digits {
        0 if inner.starts_with(['@', '*', '#', '?', '-', '$', '!']) => &inner[..1],
        digits => &inner[..digits],
    }
}

/// How long a subscript is up to its bracket; expansions inside it are skipped whole.
fn subscript_length(text: &str) -> Result<usize, Unreadable> {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let opens = ["$(", "${", "$[", "`"]
            .iter()
            .any(|open| rest.starts_with(open));
        match c {
            _ if opens => {
                at += piece_at(rest, true)?.1;
                continue;
            }
            '[' => depth += 1,
            ']' if depth == 0 => return Ok(at),
            ']' => depth -= 1,
            // Quotes may hide the bracket: shells differ.
            '\\' | '\'' => return Err(Unreadable),
            _ => {}
        }
        at += c.len_utf8();
    }
    Err(Unreadable)
}

impl Reader<'_> {
    pub fn parameter(&mut self, inner: &str, quoted: bool) -> Result<(), Unreadable> {
        if let Some(counted) = inner.strip_prefix('#').filter(|name| is_countable(name)) {
            self.number();
            return self.subscript(&Parts::of(counted)?);
        }
        if let Some(pointer) = inner.strip_prefix('!').filter(|name| !name.is_empty()) {
            return self.indirect(pointer, quoted);
        }
        let parts = Parts::of(inner)?;
        self.subscript(&parts)?;
        let operation = parts.operation;
        if operation.is_empty() {
            self.parameter_value(&parts, quoted);
            return Ok(());
        }
        let alternative = operation.strip_prefix(':').unwrap_or(operation);
        if let Some(word) = alternative.strip_prefix(['-', '=', '+']) {
            return self.alternative(&parts, alternative, word, quoted);
        }
        if let Some(part) = self.substring(&parts) {
            self.guess = true;
            self.vague = true;
            self.value(&part, quoted);
            return Ok(());
        }
        if parts.name == "IFS" && !quoted {
            self.atoms.push(Atom::Split);
        } else {
            self.hole(quoted && !parts.is_all() && parts.name != "@");
        }
        match operation.strip_prefix(':') {
            Some(range) if !range.starts_with('?') => self.expression(range),
            _ => {
                // A prompt is expanded anew.
                self.relies.unknown |= operation.starts_with('@') && operation.ends_with('P');
                self.inner_text(operation)
            }
        }
    }

    fn parameter_value(&mut self, parts: &Parts<'_>, quoted: bool) {
        match parts.name {
            "" => self.hole(quoted),
            name if parts.is_plain() => self.variable(name, quoted),
            "#" | "?" | "$" | "!" => self.number(),
            name if self.evaluates && parts.subscript.is_some() && !parts.is_all() => {
                self.variable(name, quoted);
            }
            "@" => self.hole(false),
            _ => self.hole(quoted && !parts.is_all()),
        }
    }

    /// The subscript of an array is an expression.
    fn subscript(&mut self, parts: &Parts<'_>) -> Result<(), Unreadable> {
        match parts.subscript {
            Some(subscript) if !parts.is_all() => self.expression(subscript),
            _ => Ok(()),
        }
    }

    /// `${!x}` follows the name that `x` holds, subscript and all; `${!x*}` and `${!a[@]}` only list names.
    fn indirect(&mut self, pointer: &str, quoted: bool) -> Result<(), Unreadable> {
        let name = name_prefix(pointer);
        let lists = matches!(&pointer[name.len()..], "*" | "@" | "[@]" | "[*]");
        if name.is_empty() || !lists {
            self.relies.add(Reliance::unknown());
        }
        self.hole(quoted);
        self.inner_text(pointer)
    }

    /// `${x:-word}` and its kin: the word is the best guess.
    fn alternative(
        &mut self,
        parts: &Parts<'_>,
        operator: &str,
        word: &str,
        quoted: bool,
    ) -> Result<(), Unreadable> {
        let mut inner = Reader::new(word, &[], self.vars, Mode::Value, self.depth + 1);
        inner.evaluates = self.evaluates;
        inner.run()?;
        if self.evaluates {
            self.relies
                .add(arithmetic::expression(&evaluable(&inner.atoms)));
            if !operator.starts_with('+') {
                self.parameter_value(parts, quoted);
            } else {
                self.number();
            }
            self.took(inner);
            return Ok(());
        }
        match (self.vars.get(parts.name), operator.starts_with('+')) {
            (_, true) if self.is_whole() => self.others.push(String::new()),
            (Some(values), false) if self.is_whole() => self.others.extend(all_shown(values)),
            (None, false) => {}
            _ => self.unsure = true,
        }
        self.guess = true;
        self.vague = true;
        self.spreads |= !quoted && self.mode == Mode::Plain;
        let atoms = std::mem::take(&mut inner.atoms);
        if operator.starts_with('=') {
            let value = inner.word_of(&atoms);
            self.assigned.push((parts.name.to_owned(), value));
        }
        self.took(inner);
        for atom in atoms {
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
    fn substring(&self, parts: &Parts<'_>) -> Option<String> {
        let value = self.vars.get(parts.name)?.last()?;
        let range = parts
            .operation
            .strip_prefix(':')
            .filter(|_| parts.is_plain() && !self.evaluates)?;
        let mut numbers = range.splitn(2, ':');
        let offset: usize = numbers.next()?.trim().parse().ok()?;
        let length: usize = match numbers.next() {
            Some(length) => length.trim().parse().ok()?,
            None => usize::MAX,
        };
        Some(value.chars().skip(offset).take(length).collect())
    }
}

/// Whether `${#…}` is the length of something.
fn is_countable(name: &str) -> bool {
    let name = match name.find('[') {
        Some(at) if name.ends_with(']') => &name[..at],
        _ => name,
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.is_empty() || matches!(name, "@" | "*" | "?" | "-" | "$" | "!") || name.chars().all(word)
}
