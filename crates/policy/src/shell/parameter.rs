//! Parameter expansion: the inside of `${…}`.

use super::arithmetic::{self, Assumptions};
use super::brace::Atom;
use super::fields::{as_expression, to_texts};
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

    /// Whether it is `${a[@]}`: all elements, with no expression to evaluate.
    fn is_all(&self) -> bool {
        matches!(self.subscript, Some("@" | "*"))
    }

    fn is_plain(&self) -> bool {
        name_prefix(self.name) == self.name && !self.name.is_empty() && self.subscript.is_none()
    }
}

/// The special parameter at the beginning: `1`, `12`, `@`, `#` and the like.
fn special(inner: &str) -> &str {
    let digits = inner.len() - inner.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match digits {
        0 if inner.starts_with(['@', '*', '#', '?', '-', '$', '!']) => &inner[..1],
        digits => &inner[..digits],
    }
}

/// The length of a subscript up to its bracket. Expansions inside it are skipped.
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
            // Shells differ on whether quotes hide the bracket.
            '\\' | '\'' => return Err(Unreadable),
            _ => {}
        }
        at += c.len_utf8();
    }
    Err(Unreadable)
}

impl Reader<'_> {
    pub fn expand_parameter(&mut self, inner: &str, quoted: bool) -> Result<(), Unreadable> {
        if let Some(counted) = inner.strip_prefix('#').filter(|name| is_countable(name)) {
            self.push_number();
            return self.evaluate_subscript(&Parts::of(counted)?);
        }
        if let Some(pointer) = inner.strip_prefix('!').filter(|name| !name.is_empty()) {
            return self.expand_indirect(pointer, quoted);
        }
        let parts = Parts::of(inner)?;
        self.evaluate_subscript(&parts)?;
        let operation = parts.operation;
        if operation.is_empty() {
            self.expand_value(&parts, quoted);
            return Ok(());
        }
        let alternative = operation.strip_prefix(':').unwrap_or(operation);
        if let Some(word) = alternative.strip_prefix(['-', '=', '+']) {
            return self.expand_alternative(&parts, alternative, word, quoted);
        }
        if let Some(part) = self.substring(&parts) {
            self.guess = true;
            self.any_text = true;
            self.push_value(&part, quoted);
            return Ok(());
        }
        if parts.name == "IFS" && !quoted {
            self.atoms.push(Atom::Split);
        } else {
            self.push_unknown(quoted && !parts.is_all() && parts.name != "@");
        }
        match operation.strip_prefix(':') {
            Some(range) if !range.starts_with('?') => self.evaluate(range),
            _ => {
                // `${x@P}` expands the value a second time.
                self.assumes.unknown |= operation.starts_with('@') && operation.ends_with('P');
                self.read_inner(operation)
            }
        }
    }

    fn expand_value(&mut self, parts: &Parts<'_>, quoted: bool) {
        match parts.name {
            "" => self.push_unknown(quoted),
            name if parts.is_plain() => self.expand_variable(name, quoted),
            "#" | "?" | "$" | "!" => self.push_number(),
            name if self.evaluates && parts.subscript.is_some() && !parts.is_all() => {
                self.expand_variable(name, quoted);
            }
            "@" => self.push_unknown(false),
            _ => self.push_unknown(quoted && !parts.is_all()),
        }
    }

    /// Evaluates the subscript of an array, which is an expression.
    fn evaluate_subscript(&mut self, parts: &Parts<'_>) -> Result<(), Unreadable> {
        match parts.subscript {
            Some(subscript) if !parts.is_all() => self.evaluate(subscript),
            _ => Ok(()),
        }
    }

    /// `${!x}` expands the variable whose name `x` holds, with its subscript. `${!x*}` and `${!a[@]}` only list
    /// names.
    fn expand_indirect(&mut self, pointer: &str, quoted: bool) -> Result<(), Unreadable> {
        let name = name_prefix(pointer);
        let lists = matches!(&pointer[name.len()..], "*" | "@" | "[@]" | "[*]");
        if name.is_empty() || !lists {
            self.assumes.add(Assumptions::unknown());
        }
        self.push_unknown(quoted);
        self.read_inner(pointer)
    }

    /// `${x:-word}`, `${x:=word}` and `${x:+word}`: the word is taken for the value.
    fn expand_alternative(
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
            self.assumes
                .add(arithmetic::expression(&as_expression(&inner.atoms)));
            if !operator.starts_with('+') {
                self.expand_value(parts, quoted);
            } else {
                self.push_number();
            }
            self.merge(inner);
            return Ok(());
        }
        match (self.vars.get(parts.name), operator.starts_with('+')) {
            (_, true) if self.is_whole() => self.alternatives.push(String::new()),
            (Some(values), false) if self.is_whole() => self.alternatives.extend(to_texts(values)),
            (None, false) => {}
            _ => self.one_of_several = true,
        }
        self.guess = true;
        self.any_text = true;
        self.may_split |= !quoted && self.mode == Mode::Plain;
        let atoms = std::mem::take(&mut inner.atoms);
        if operator.starts_with('=') {
            let value = inner.word_of(&atoms);
            self.assigned.push((parts.name.to_owned(), value));
        }
        self.merge(inner);
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

    /// The value of `${x:1:2}`, if the variable is known and the numbers are literal.
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
