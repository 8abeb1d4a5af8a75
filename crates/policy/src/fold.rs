//! Folds plain commands out of masked text, so that the parser has only what is left to parse.
//!
//! Most lines of a script are words joined by `|`, `&&`, `;` and line breaks, which need no grammar. A run of such commands is
//! replaced by one mark, a word that stands for all of it. The parser then reads the rest, and only if
//! it takes every mark for a command of its own is the folding trusted: a mark that turned out to be part of an
//! array, a pattern or a condition means that the text is parsed whole. Words are only cut here, never
//! read, and whatever is not plain beyond doubt is left to the parser.

use std::ops::Range;

/// One step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Assign {
        name: &'a str,
        value: &'a str,
    },
    Word(&'a str),
    Redirect {
        kind: Redirection,
        target: &'a str,
    },
    /// The command ends; `piped` says whether the next one reads its output.
    End {
        piped: bool,
    },
}

/// What a redirection does, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirection {
    Read,
    Write,
    DuplicateInput,
    DuplicateOutput,
    Text,
}

/// Masked text with a mark in the place of each run.
#[derive(Debug)]
pub(crate) struct Folded<'a> {
    pub text: String,
    pub steps: Vec<Step<'a>>,
    pub runs: Vec<Range<usize>>,
}

/// Marks of runs are characters of another private plane; text that holds any is not folded.
const FIRST_MARK: u32 = 0x10_0000;
const MOST_RUNS: usize = 0xFFFD;
/// All characters of that plane begin with this byte, and no other that is assigned does.
const MARK_BYTE: u8 = 0xF4;

/// Words that mean something to the grammar, or to the guards before the parser.
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];
/// Those after which a command begins.
const OPENERS: &[&str] = &[
    "!", "do", "elif", "else", "if", "then", "until", "while", "{",
];

impl Folded<'_> {
    /// Whether nothing but runs is left.
    pub fn is_all(&self) -> bool {
        let ends = |c: char| matches!(c, ' ' | '\t' | '\n');
        run_of(self.text.trim_matches(ends)).is_some()
    }
}

/// The run that a word stands for.
pub(crate) fn run_of(word: &str) -> Option<usize> {
    let mut chars = word.chars();
    let mark = u32::from(chars.next()?).checked_sub(FIRST_MARK)?;
    chars.as_str().is_empty().then_some(mark as usize)
}

/// Folds all runs of plain commands; `None` when there are none, or the quotes are of the kinds that shells read
/// differently.
pub(crate) fn fold(masked: &str) -> Option<Folded<'_>> {
    let bytes = masked.as_bytes();
    let odd = |pair: &[u8]| matches!(pair, [b'$', b'\'' | b'"']);
    if bytes.contains(&MARK_BYTE) || bytes.windows(2).any(odd) {
        return None;
    }
    let mut folder = Folder {
        cutter: Cutter {
            text: masked,
            at: 0,
            steps: Vec::with_capacity(masked.len() / 8),
        },
        out: String::with_capacity(masked.len()),
        runs: Vec::new(),
        begins: true,
        after_pipe: false,
    };
    while folder.cutter.at < masked.len() {
        folder.next()?;
    }
    (!folder.runs.is_empty()).then_some(Folded {
        text: folder.out,
        steps: folder.cutter.steps,
        runs: folder.runs,
    })
}

struct Folder<'a> {
    cutter: Cutter<'a>,
    out: String,
    runs: Vec<Range<usize>>,
    /// A command may begin here.
    begins: bool,
    after_pipe: bool,
}

impl Folder<'_> {
    /// Folds the run at the cursor, or copies one token of what is none. `None` when a quote does not close.
    fn next(&mut self) -> Option<()> {
        let start = self.cutter.at;
        let byte = self.cutter.peek()?;
        if matches!(byte, b' ' | b'\t') {
            self.cutter.at += 1;
        } else if matches!(byte, b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>') {
            self.operator(byte);
        } else if self.begins && self.run() {
            return Some(());
        } else {
            let word = self.cutter.any_word()?;
            self.begins &= OPENERS.contains(&word);
            self.after_pipe = false;
        }
        self.out.push_str(&self.cutter.text[start..self.cutter.at]);
        Some(())
    }

    fn operator(&mut self, byte: u8) {
        let rest = self.cutter.rest();
        let is = |operator: &str| rest.starts_with(operator);
        let (length, begins) = match byte {
            b'\n' => (1, !self.after_pipe),
            b';' if is(";;&") => (3, false),
            b';' if is(";;") || is(";&") => (2, false),
            b'&' if is("&&") => (2, true),
            b'|' if is("||") => (2, true),
            b'|' if is("|&") => (2, false),
            b'&' if is("&>") => (2, false),
            b';' | b'&' => (1, true),
            _ => (1, false),
        };
        self.after_pipe = match byte {
            b'\n' => self.after_pipe,
            _ => byte == b'|' && !begins,
        };
        self.begins = begins;
        self.cutter.at += length;
    }

    fn run(&mut self) -> bool {
        let first = self.cutter.steps.len();
        if self.runs.len() == MOST_RUNS || !self.cutter.run() {
            return false;
        }
        let mark = FIRST_MARK + self.runs.len() as u32;
        self.out.extend(char::from_u32(mark));
        self.runs.push(first..self.cutter.steps.len());
        self.begins = false;
        self.after_pipe = false;
        true
    }
}

/// Cuts plain commands into steps.
struct Cutter<'a> {
    text: &'a str,
    at: usize,
    steps: Vec<Step<'a>>,
}

impl<'a> Cutter<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, any: &[u8]) {
        while self.peek().is_some_and(|byte| any.contains(&byte)) {
            self.at += 1;
        }
    }

    /// As many plain pipelines as follow each other; the cursor is left behind the last of them. False when there
    /// is none.
    fn run(&mut self) -> bool {
        let start = self.at;
        let mut end = start;
        loop {
            let steps = self.steps.len();
            if !(self.pipeline().is_some() && self.ends()) {
                self.steps.truncate(steps);
                break;
            }
            end = self.at;
            self.at += match self.rest().as_bytes() {
                [b'&', b'&', ..] | [b'|', b'|', ..] => 2,
                [] => break,
                _ => 1,
            };
            self.skip(b" \t\n");
        }
        self.at = end;
        end > start
    }

    /// Whether a list may go on or end here.
    fn ends(&self) -> bool {
        match self.rest().as_bytes() {
            [] | [b'\n', ..] | [b'&', b'&', ..] | [b'|', b'|', ..] => true,
            [b';', next, ..] => !matches!(next, b';' | b'&'),
            [b'&', next, ..] => *next != b'>',
            [b';' | b'&'] => true,
            _ => false,
        }
    }

    /// Plain commands joined by `|`; `None` when there is something else, and the cursor is anywhere.
    fn pipeline(&mut self) -> Option<()> {
        loop {
            self.simple()?;
            let piped = match self.rest().as_bytes() {
                [b'|', b'|', ..] => false,
                [b'|', b'&', ..] => return None,
                [b'|', ..] => true,
                _ => false,
            };
            self.steps.push(Step::End { piped });
            if !piped {
                return Some(());
            }
            self.at += 1;
            self.skip(b" \t\n");
        }
    }

    fn simple(&mut self) -> Option<()> {
        let mut named = false;
        let first = self.steps.len();
        loop {
            self.skip(b" \t");
            match self.rest().as_bytes() {
                [] | [b'\n' | b';' | b'|' | b')', ..] => break,
                [b'&', b'>', ..] => self.redirect()?,
                [b'&', ..] => break,
                [b'<' | b'>', ..] => self.redirect()?,
                [b'0'..=b'9', b'<' | b'>', ..] => {
                    self.at += 1;
                    self.redirect()?;
                }
                _ => {
                    let word = self.plain_word()?;
                    let step = match (named, assignment(word)) {
                        (false, Some((name, value))) => Step::Assign { name, value },
                        (false, None) if !is_name(word) => return None,
                        _ => Step::Word(word),
                    };
                    named |= matches!(step, Step::Word(_));
                    self.steps.push(step);
                }
            }
        }
        (self.steps.len() > first).then_some(())
    }

    /// The redirection whose operator is at the cursor.
    fn redirect(&mut self) -> Option<()> {
        let (kind, length) = match self.rest().as_bytes() {
            [b'<', b'<', b'<', ..] => (Redirection::Text, 3),
            [b'&', b'>', b'>', ..] => (Redirection::Write, 3),
            [b'>', b'>' | b'|', ..] | [b'&', b'>', ..] => (Redirection::Write, 2),
            [b'>', b'&', ..] => (Redirection::DuplicateOutput, 2),
            [b'<', b'&' | b'<' | b'>' | b'(', ..] | [b'>', b'(', ..] => return None,
            [b'>', ..] => (Redirection::Write, 1),
            _ => (Redirection::Read, 1),
        };
        self.at += length;
        self.skip(b" \t");
        let target = self.plain_word()?;
        self.steps.push(Step::Redirect { kind, target });
        Some(())
    }

    /// A word that means nothing to the grammar, and does not run into something that does.
    fn plain_word(&mut self) -> Option<&'a str> {
        let word = self.any_word()?;
        let bytes = word.as_bytes();
        let long_number = bytes.len() > 9 && bytes.iter().all(u8::is_ascii_digit);
        let meets = matches!(self.peek(), Some(b'(' | b'<' | b'>'));
        let odd = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t');
        let plain = !word.is_empty() && !meets && !long_number && !bytes.iter().any(odd);
        (plain && !RESERVED.contains(&word) && bytes[0] != b'#').then_some(word)
    }

    /// A word up to its end; `None` when a quote does not close.
    fn any_word(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'\\' => {
                    let next = self.text[self.at + 1..].chars().next()?;
                    self.at += 1 + next.len_utf8();
                }
                b'\'' => {
                    self.at += 1;
                    self.at += self.rest().find('\'')? + 1;
                }
                b'"' => {
                    self.at += 1;
                    while *bytes.get(self.at)? != b'"' {
                        self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
                    }
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        self.text.get(start..self.at)
    }
}

/// `name=value`, if the word is an assignment beyond doubt.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let first = name.bytes().next()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!first.is_ascii_digit() && name.bytes().all(fits)).then_some((name, value))
}

/// Whether the word can be a program's name and nothing else, such as `a[1]=x` or `{fd}`.
fn is_name(word: &str) -> bool {
    word == "[" || !word.contains(['=', '[', '{'])
}
