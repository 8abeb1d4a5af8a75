//! Folds plain commands out of masked text, so that the parser has only the rest to parse.
//!
//! It is there for speed alone. In callgrind's instructions the benchmark's script of 200 lines takes 4.0 million to decide
//! instead of 7.8, `cd sub && cargo test 2>&1 | tail -20` 47,000 instead of 97,000, and the everyday commands of the tests
//! 34,000 each instead of 57,000.
//!
//! Most lines of a script are words joined by `|`, `&&`, `;` and line breaks, which need no grammar. A run of such
//! commands is replaced by one mark, which the parser takes for a word. The folding counts only if the parser took every
//! mark for a command by itself. Otherwise a mark was part of an array, a pattern or a condition, and the text is parsed
//! whole. Words are only cut here, never read. What is not certainly plain is left to the parser.

use std::ops::Range;
use std::sync::Arc;

use brush_parser::{SourcePosition, SourceSpan, Token};

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
    /// The end of the command. `piped` says whether the next one reads its output.
    End {
        piped: bool,
    },
}

/// The kinds of redirections that are judged differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirection {
    Read,
    Write,
    DuplicateInput,
    DuplicateOutput,
    Text,
}

/// The tokens of masked text with a mark in the place of each run.
#[derive(Debug)]
pub(crate) struct Folded<'a> {
    pub tokens: Vec<Token>,
    pub steps: Vec<Step<'a>>,
    pub runs: Vec<Range<usize>>,
}

/// Marks of runs are characters of the second private-use plane. Text that has one is not folded.
const FIRST_MARK: u32 = 0x10_0000;
const MOST_RUNS: usize = 0xFFFD;
/// The first UTF-8 byte of all characters of that plane, and of no other assigned character.
const MARK_BYTE: u8 = 0xF4;

/// Whether a word is special to the grammar, or to the guards before the parser.
fn is_reserved(word: &str) -> bool {
    precedes_command(word)
        || matches!(
            word,
            "[[" | "]]"
                | "case"
                | "coproc"
                | "done"
                | "esac"
                | "fi"
                | "for"
                | "function"
                | "in"
                | "select"
                | "time"
                | "}"
        )
}

/// Whether a command begins after this word.
fn precedes_command(word: &str) -> bool {
    matches!(
        word,
        "!" | "do" | "elif" | "else" | "if" | "then" | "until" | "while" | "{"
    )
}

impl Folded<'_> {
    /// Whether the whole text is one run.
    pub fn is_all(&self) -> bool {
        let mut solid = self.tokens.iter().filter(|token| token.to_str() != "\n");
        let first = solid.next().and_then(|token| run_of(token.to_str()));
        first.is_some() && solid.next().is_none()
    }
}

/// The run that a word stands for.
pub(crate) fn run_of(word: &str) -> Option<usize> {
    let mut chars = word.chars();
    let mark = u32::from(chars.next()?).checked_sub(FIRST_MARK)?;
    chars.as_str().is_empty().then_some(mark as usize)
}

/// Folds all runs of plain commands. `None` when there are none, or when the end of a word is not certain.
pub(crate) fn fold(masked: &str) -> Option<Folded<'_>> {
    if masked.as_bytes().contains(&MARK_BYTE) {
        return None;
    }
    let mut folder = Folder {
        cutter: Cutter {
            text: masked,
            at: 0,
            steps: Vec::with_capacity(masked.len() / 8),
        },
        tokens: Vec::new(),
        runs: Vec::new(),
        begins: true,
        nowhere: SourceSpan::default(),
    };
    while folder.cutter.at < masked.len() {
        folder.next()?;
    }
    (!folder.runs.is_empty()).then_some(Folded {
        tokens: folder.tokens,
        steps: folder.cutter.steps,
        runs: folder.runs,
    })
}

struct Folder<'a> {
    cutter: Cutter<'a>,
    tokens: Vec<Token>,
    runs: Vec<Range<usize>>,
    /// A command may begin here.
    begins: bool,
    nowhere: SourceSpan,
}

impl Folder<'_> {
    /// Folds the run at the cursor, or takes one token that is in no run. `None` when the end of a word is not
    /// certain.
    fn next(&mut self) -> Option<()> {
        let start = self.cutter.at;
        let byte = self.cutter.peek()?;
        if matches!(byte, b' ' | b'\t') {
            self.cutter.skip(b" \t");
        } else if let Some((operator, begins)) = operator(self.cutter.rest().as_bytes()) {
            self.begins = begins && !(byte == b'\n' && self.after_pipe());
            self.cutter.at += operator.len();
            let span = match byte {
                b'<' | b'>' => span(start, self.cutter.at),
                _ => self.nowhere.clone(),
            };
            self.tokens.push(Token::Operator(operator.to_owned(), span));
        } else if !(self.begins && self.run()) {
            let word = self.cutter.any_word()?;
            self.begins &= precedes_command(word);
            // The parser checks whether a number is next to the redirection after it.
            let span = match word.bytes().all(|byte| byte.is_ascii_digit()) {
                true => span(start, self.cutter.at),
                false => self.nowhere.clone(),
            };
            self.tokens.push(Token::Word(word.to_owned(), span));
        }
        Some(())
    }

    /// Whether the pipeline goes on after this line break.
    fn after_pipe(&self) -> bool {
        let mut before = self.tokens.iter().rev().map(Token::to_str);
        let last = before.find(|token| *token != "\n");
        matches!(last, Some("|" | "|&"))
    }

    fn run(&mut self) -> bool {
        let first = self.cutter.steps.len();
        if self.runs.len() == MOST_RUNS || !self.cutter.run() {
            return false;
        }
        let mark = char::from_u32(FIRST_MARK + self.runs.len() as u32);
        let word = mark.into_iter().collect();
        self.tokens.push(Token::Word(word, self.nowhere.clone()));
        self.runs.push(first..self.cutter.steps.len());
        self.begins = false;
        true
    }
}

fn span(start: usize, end: usize) -> SourceSpan {
    let position = |index| {
        Arc::new(SourcePosition {
            index,
            ..SourcePosition::default()
        })
    };
    SourceSpan {
        start: position(start),
        end: position(end),
    }
}

/// The operator at the beginning of the text, and whether a command may begin after it.
fn operator(text: &[u8]) -> Option<(&'static str, bool)> {
    Some(match text {
        [b'\n', ..] => ("\n", true),
        [b';', b';', b'&', ..] => (";;&", false),
        [b';', b';', ..] => (";;", false),
        [b';', b'&', ..] => (";&", false),
        [b';', ..] => (";", true),
        [b'&', b'&', ..] => ("&&", true),
        [b'&', b'>', b'>', ..] => ("&>>", false),
        [b'&', b'>', ..] => ("&>", false),
        [b'&', ..] => ("&", true),
        [b'|', b'|', ..] => ("||", true),
        [b'|', b'&', ..] => ("|&", false),
        [b'|', ..] => ("|", false),
        [b'(', ..] => ("(", false),
        [b')', ..] => (")", false),
        [b'<', b'<', b'<', ..] => ("<<<", false),
        [b'<', b'&', ..] => ("<&", false),
        [b'<', b'>', ..] => ("<>", false),
        [b'<', ..] => ("<", false),
        [b'>', b'>', ..] => (">>", false),
        [b'>', b'&', ..] => (">&", false),
        [b'>', b'|', ..] => (">|", false),
        [b'>', ..] => (">", false),
        _ => return None,
    })
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

    /// Cuts as many plain pipelines as follow each other, and leaves the cursor behind the last one. False when there
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

    /// Cuts plain commands joined by `|`. `None` when there is anything else; the cursor may then be anywhere.
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

    /// Cuts the redirection at the cursor.
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

    /// Cuts a word without any meaning in the grammar. `None` if a bracket or a redirection touches it.
    fn plain_word(&mut self) -> Option<&'a str> {
        let word = self.any_word()?;
        let bytes = word.as_bytes();
        let long_number = bytes.len() > 9 && bytes.iter().all(u8::is_ascii_digit);
        let meets = matches!(self.peek(), Some(b'(' | b'<' | b'>'));
        let odd = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t');
        let plain = !word.is_empty() && !meets && !long_number && !bytes.iter().any(odd);
        (plain && !is_reserved(word)).then_some(word)
    }

    /// Cuts a word. `None` when a quote is not closed, or is one that shells read differently.
    fn any_word(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        // Masked text has no comments, so `#` is something else here.
        if bytes.get(start) == Some(&b'#') {
            return None;
        }
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'$' if matches!(bytes.get(self.at + 1), Some(b'\'' | b'"')) => return None,
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

/// The name and the value, if the word is certainly an assignment.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let first = name.bytes().next()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!first.is_ascii_digit() && name.bytes().all(fits)).then_some((name, value))
}

/// Whether the word is certainly a program's name, and not `a[1]=x` or `{fd}`.
fn is_name(word: &str) -> bool {
    word == "[" || !word.contains(['=', '[', '{'])
}
