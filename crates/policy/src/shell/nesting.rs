//! How deeply the parser nests at each token, never less than it really does.
//!
//! `}` closes a group only where a command may begin: in `{ echo }; { echo }; …` it is a plain word, and the groups nest.
//! So a closing word counts only where the parser cannot take it for a plain word. An opening word counts wherever a
//! command might begin. Text that is read wrongly here is refused too early, not too late.

use brush_parser::Token;

/// Something that is open, by what closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Parenthesis,
    Case,
    Test,
    Brace,
    If,
    Loop,
    /// It ends with its command.
    Coprocess,
}

impl Open {
    fn by(word: &str) -> Option<Open> {
        Some(match word {
            "case" => Open::Case,
            "[[" => Open::Test,
            "{" => Open::Brace,
            "if" => Open::If,
            "while" | "until" | "for" | "select" => Open::Loop,
            "coproc" => Open::Coprocess,
            _ => return None,
        })
    }

    fn closed_by(word: &str) -> Option<Open> {
        Some(match word {
            "esac" => Open::Case,
            "]]" => Open::Test,
            "}" => Open::Brace,
            "fi" => Open::If,
            "done" => Open::Loop,
            _ => return None,
        })
    }
}

/// What is before the current token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Before {
    /// Nothing, or an operator or word after which a command may begin.
    #[default]
    Lead,
    /// `;` or `&`, or a word that closed something: no plain word can follow.
    End,
    /// The end of a case's arm, or `in`: a pattern can follow.
    Arm,
    /// `coproc`, `function` or `time`. The word after it may be a name or an option, with a command after it.
    Named,
    /// `)`, which may end a pattern, an array or a command.
    Parenthesis,
    Word,
}

/// Everything that is open at a token.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    open: Vec<Open>,
    /// The last token that is not a line break, and whether line breaks follow it.
    before: Before,
    breaks: bool,
}

impl Nesting {
    /// Takes the next token. `next` is the one after it.
    pub fn read(&mut self, token: &Token, next: Option<&Token>) {
        let text = token.to_str();
        if text == "\n" {
            self.breaks = true;
            if matches!(self.before, Before::End | Before::Word) {
                self.end_command();
            }
            return;
        }
        let before = match token {
            Token::Operator(..) => self.operator(text),
            Token::Word(..) => self.word(text, next),
        };
        (self.before, self.breaks) = (before, false);
    }

    pub fn parentheses(&self) -> usize {
        self.count(Open::Parenthesis)
    }

    pub fn cases(&self) -> usize {
        self.count(Open::Case)
    }

    /// How many others are open.
    pub fn others(&self) -> usize {
        self.open.len() - self.parentheses() - self.cases()
    }

    fn count(&self, kind: Open) -> usize {
        self.open.iter().filter(|open| **open == kind).count()
    }

    fn operator(&mut self, text: &str) -> Before {
        match text {
            "(" => {
                self.open.push(Open::Parenthesis);
                Before::Lead
            }
            ")" => {
                // Inside a case it ends a pattern, unless a parenthesis was opened there.
                let ends = |open: &Open| matches!(open, Open::Parenthesis | Open::Case);
                let last = self.open.iter().rposition(ends);
                if let Some(at) = last.filter(|at| self.open[*at] == Open::Parenthesis) {
                    self.open.truncate(at);
                }
                Before::Parenthesis
            }
            ";" | "&" => {
                self.end_command();
                Before::End
            }
            ";;" | ";&" | ";;&" => Before::Arm,
            _ => Before::Lead,
        }
    }

    fn end_command(&mut self) {
        while self.open.last() == Some(&Open::Coprocess) {
            self.open.pop();
        }
    }

    fn word(&mut self, text: &str, next: Option<&Token>) -> Before {
        if let Some(kind) = Open::closed_by(text)
            && self.is_certain(kind, next)
            && self.close(kind)
        {
            return Before::End;
        }
        // Behind a plain word on the same line there are only more of them.
        let is_argument = self.before == Before::Word && !self.breaks;
        if let Some(kind) = Open::by(text).filter(|_| !is_argument) {
            self.open.push(kind);
        }
        match (text, self.before) {
            ("in", _) => Before::Arm,
            ("coproc" | "function" | "time", _) => Before::Named,
            (_, Before::Named) => Before::Lead,
            _ if !is_argument && is_keyword(text) => Before::Lead,
            _ => Before::Word,
        }
    }

    /// Whether the parser cannot take the closing word for a plain one.
    fn is_certain(&self, kind: Open, next: Option<&Token>) -> bool {
        let in_pattern = next.is_some_and(|next| matches!(next.to_str(), ")" | "|"));
        match self.before {
            // A test has only words in it.
            _ if kind == Open::Test => true,
            Before::End => true,
            Before::Word | Before::Parenthesis => self.breaks,
            Before::Arm => kind == Open::Case && !in_pattern,
            Before::Lead | Before::Named => false,
        }
    }

    /// Closes the last such thing, and what was never closed in it. False when none is open in these parentheses.
    fn close(&mut self, kind: Open) -> bool {
        let walls = [Open::Parenthesis, Open::Test];
        let stops = |open: &Open| *open == kind || walls.contains(open);
        let last = self.open.iter().rposition(stops);
        let Some(at) = last.filter(|at| self.open[*at] == kind) else {
            return false;
        };
        self.open.truncate(at);
        true
    }
}

/// Whether a command may begin after this word, where it is not an argument.
fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "!" | "{" | "[[" | "do" | "elif" | "else" | "if" | "then" | "until" | "while"
    )
}
