//! Shell text walked command by command, with the parser's help.

use brush_parser::ast::{
    self, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item,
    CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget,
    IoRedirect, RedirectList, SimpleCommand,
};
use brush_parser::{ParserOptions, parse_tokens};

use crate::Category;
use crate::commands::may_hold_commands;
use crate::finding::Finding;
use crate::judge::{Judge, Stdin};
use crate::mask::{Piece, marked, mask};
use crate::tokens::tokenize;
use crate::vocabulary::changes_meaning;
use crate::word::{HOLE, Mode, Unreadable, Word, read};

/// Longer text than this is not judged, and no more than this in all nested texts together.
const LONGEST_TEXT: usize = 512 * 1024;
/// The same without the here-documents.
const LONGEST_PROGRAM: usize = 32 * 1024;

/// The parsed text, what was cut out of it, and whether extended patterns were needed to parse it.
struct Parsed {
    program: ast::Program,
    pieces: Vec<Piece>,
    mode: Mode,
}

/// Parses as a non-interactive bash would; failing that, with extended patterns.
fn parse(text: &str) -> Option<Parsed> {
    if text.len() > LONGEST_TEXT || text.contains(['\0', HOLE]) {
        return None;
    }
    let masked = mask(text)
        .ok()
        .filter(|masked| masked.text.len() <= LONGEST_PROGRAM)?;
    let (program, mode) = [Mode::Plain, Mode::Pattern]
        .into_iter()
        .find_map(|mode| parse_as(&masked.text, mode).map(|program| (program, mode)))?;
    Some(Parsed {
        program,
        pieces: masked.pieces,
        mode,
    })
}

fn parse_as(masked: &str, mode: Mode) -> Option<ast::Program> {
    let extended = mode == Mode::Pattern;
    let tokens = tokenize(masked, extended)?;
    let options = ParserOptions {
        enable_extended_globbing: extended,
        ..ParserOptions::default()
    };
    parse_tokens(&tokens, &options).ok()
}

/// Whether the text reads as shell text at all.
pub(crate) fn parses(text: &str) -> bool {
    parse(text).is_some()
}

impl Judge {
    /// Judges shell text: every simple command in it becomes a finding.
    pub(crate) fn text(&mut self, text: &str) {
        self.parsed += text.len();
        // `${x:=y}` sets a variable in passing.
        self.altered |= text.contains("${") && text.contains('=') && sets_in_passing(text);
        if self.parsed > LONGEST_TEXT || !self.enter() {
            return self.unparseable(text, "it is too long or nested too deeply");
        }
        match parse(text) {
            None => self.unparseable(text, "it cannot be parsed as shell text"),
            Some(parsed) => {
                let outer = std::mem::replace(&mut self.mode, parsed.mode);
                let outer_pieces = std::mem::replace(&mut self.pieces, parsed.pieces);
                if parsed.mode == Mode::Pattern {
                    self.remark(text, Category::Unknown);
                }
                for list in &parsed.program.complete_commands {
                    if self.list(list).is_err() {
                        self.unparseable(text, "a word in it cannot be read with certainty");
                    }
                }
                self.mode = outer;
                self.pieces = outer_pieces;
            }
        }
        self.leave();
    }

    fn list(&mut self, list: &CompoundList) -> Result<(), Unreadable> {
        for item in &list.0 {
            for (_, pipeline) in &item.0 {
                let mut stdin = Stdin::Inherited;
                for command in &pipeline.seq {
                    stdin = self.command(command, stdin)?;
                }
            }
        }
        Ok(())
    }

    /// Judges one command of a pipeline; returns what the next one reads.
    fn command(&mut self, command: &Command, stdin: Stdin) -> Result<Stdin, Unreadable> {
        match command {
            Command::Simple(simple) => return self.simple(simple, stdin),
            Command::Compound(compound, redirects) => {
                self.compound(compound)?;
                self.redirect_list(redirects.as_ref())?;
            }
            Command::Function(function) => {
                let name = self.single(&function.fname.value)?;
                self.functions.insert(name.text);
                self.compound(&function.body.0)?;
                self.redirect_list(function.body.1.as_ref())?;
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr)?;
                self.redirect_list(redirects.as_ref())?;
            }
        }
        Ok(Stdin::Piped)
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Result<(), Unreadable> {
        match compound {
            CompoundCommand::Arithmetic(c) => self.expression(&c.expr.value),
            CompoundCommand::ArithmeticForClause(c) => {
                for part in [&c.initializer, &c.condition, &c.updater]
                    .into_iter()
                    .flatten()
                {
                    self.expression(&part.value)?;
                }
                self.list(&c.body.list)
            }
            CompoundCommand::BraceGroup(c) => self.list(&c.list),
            CompoundCommand::Subshell(c) => self.subshell(&c.list),
            CompoundCommand::ForClause(c) => {
                self.loop_variable(&c.variable_name, c.values.as_deref())?;
                self.list(&c.body.list)
            }
            CompoundCommand::CaseClause(c) => {
                self.words(&c.value.value, Mode::Pattern)?;
                for case in &c.cases {
                    for pattern in &case.patterns {
                        self.words(&pattern.value, Mode::Pattern)?;
                    }
                    case.cmd.as_ref().map_or(Ok(()), |list| self.list(list))?;
                }
                Ok(())
            }
            CompoundCommand::IfClause(c) => {
                self.list(&c.condition)?;
                self.list(&c.then)?;
                for clause in c.elses.iter().flatten() {
                    clause
                        .condition
                        .as_ref()
                        .map_or(Ok(()), |list| self.list(list))?;
                    self.list(&clause.body)?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(c) | CompoundCommand::UntilClause(c) => {
                self.list(&c.0)?;
                self.list(&c.1.list)
            }
            CompoundCommand::Coprocess(c) => {
                self.command(&c.body, Stdin::Piped)?;
                Ok(())
            }
        }
    }

    /// A list whose changes of directory and variables do not outlive it.
    fn subshell(&mut self, list: &CompoundList) -> Result<(), Unreadable> {
        let (cwd, vars) = (self.cwd.clone(), self.vars.clone());
        let result = self.list(list);
        (self.cwd, self.vars) = (cwd, vars);
        result
    }

    fn loop_variable(
        &mut self,
        name: &str,
        values: Option<&[ast::Word]>,
    ) -> Result<(), Unreadable> {
        let mut candidates = Vec::new();
        for value in values.unwrap_or_default() {
            candidates.extend(self.words(&value.value, self.mode)?);
        }
        self.altered |= changes_meaning(name);
        self.check_paths(&format!("for {name} in …"), &candidates);
        let open = values.is_none() || candidates.iter().any(|w| w.dynamic || w.glob);
        if open || candidates.is_empty() {
            self.vars.remove(name);
        } else {
            self.vars.insert(
                name.to_owned(),
                candidates.into_iter().map(|w| w.text).collect(),
            );
        }
        Ok(())
    }

    fn test(&mut self, test: &ExtendedTestExpr) -> Result<(), Unreadable> {
        match test {
            ExtendedTestExpr::And(a, b) | ExtendedTestExpr::Or(a, b) => {
                self.test(a)?;
                self.test(b)
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner)
            }
            ExtendedTestExpr::UnaryTest(_, word) => self.tested(&word.value),
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.tested(&left.value)?;
                self.tested(&right.value)
            }
        }
    }

    /// A word inside `[[ ]]`; arithmetic tests evaluate even quoted text.
    fn tested(&mut self, source: &str) -> Result<(), Unreadable> {
        // A pattern may hold a process substitution, which the parser takes for plain text.
        if source.contains("<(") || source.contains(">(") {
            return Err(Unreadable);
        }
        for word in self.words(source, Mode::Pattern)? {
            if may_hold_commands(&word) {
                self.remark(source, Category::Unknown);
            }
        }
        self.remark("[[", Category::ReadOnly);
        Ok(())
    }

    /// An arithmetic expression: only its substitutions matter.
    fn expression(&mut self, source: &str) -> Result<(), Unreadable> {
        self.words(source, Mode::Text)?;
        self.remark("((", Category::ReadOnly);
        Ok(())
    }

    /// Reads a word and judges the commands of its substitutions.
    fn words(&mut self, source: &str, mode: Mode) -> Result<Vec<Word>, Unreadable> {
        let reading = read(source, &self.pieces, &self.vars, mode)?;
        if reading.opaque {
            self.remark(source, Category::Unknown);
        }
        if !reading.commands.is_empty() {
            let (cwd, vars) = (self.cwd.clone(), self.vars.clone());
            for command in &reading.commands {
                self.text(command);
            }
            (self.cwd, self.vars) = (cwd, vars);
        }
        Ok(reading.words)
    }

    fn single(&mut self, source: &str) -> Result<Word, Unreadable> {
        Ok(self
            .words(source, Mode::Value)?
            .into_iter()
            .next()
            .unwrap_or_default())
    }

    fn simple(&mut self, simple: &SimpleCommand, stdin: Stdin) -> Result<Stdin, Unreadable> {
        let mut finding = Finding::default();
        let mut stdin = stdin;
        let mut words = Vec::new();
        let prefix = simple.prefix.iter().flat_map(|p| &p.0);
        let suffix = simple.suffix.iter().flat_map(|s| &s.0);
        let mut assigned = Vec::new();
        for item in prefix {
            match item {
                Item::AssignmentWord(assignment, _) => assigned.push(self.assignment(assignment)?),
                other => self.item(other, &mut words, &mut finding, &mut stdin)?,
            }
        }
        if let Some(name) = &simple.word_or_name {
            words.extend(self.words(&name.value, self.mode)?);
        }
        for item in suffix {
            self.item(item, &mut words, &mut finding, &mut stdin)?;
        }
        for (name, value) in assigned {
            self.assigned(&name, value, &words, &mut finding);
        }
        let output = echo_output(&words, &stdin);
        self.simple_words(words, stdin, finding);
        Ok(output)
    }

    fn item(
        &mut self,
        item: &Item,
        words: &mut Vec<Word>,
        finding: &mut Finding,
        stdin: &mut Stdin,
    ) -> Result<(), Unreadable> {
        match item {
            Item::IoRedirect(redirect) => self.redirect(redirect, finding, stdin)?,
            Item::Word(word) => words.extend(self.words(&word.value, self.mode)?),
            Item::AssignmentWord(assignment, word) => match &assignment.value {
                AssignmentValue::Scalar(_) => words.extend(self.words(&word.value, self.mode)?),
                AssignmentValue::Array(_) => {
                    let (name, _) = self.assignment(assignment)?;
                    words.push(Word::fixed(format!("{name}=()")));
                }
            },
            Item::ProcessSubstitution(_, subshell) => {
                self.subshell(&subshell.list)?;
                words.push(Word::fixed("/dev/fd/63"));
            }
        }
        Ok(())
    }

    fn assignment(&mut self, assignment: &ast::Assignment) -> Result<(String, Word), Unreadable> {
        let name = match &assignment.name {
            AssignmentName::VariableName(name) => name.clone(),
            AssignmentName::ArrayElementName(name, index) => {
                self.words(index, Mode::Text)?;
                name.clone()
            }
        };
        let value = match &assignment.value {
            AssignmentValue::Scalar(word) => self.single(&word.value)?,
            AssignmentValue::Array(elements) => {
                for (key, value) in elements {
                    key.as_ref()
                        .map_or(Ok(()), |k| self.words(&k.value, Mode::Text).map(drop))?;
                    let values = self.words(&value.value, self.mode)?;
                    self.check_paths(&name, &values);
                }
                Word::unknown()
            }
        };
        let value = match self.vars.get(&name).and_then(|v| v.last()) {
            Some(before) if assignment.append => Word {
                text: format!("{before}{}", value.text),
                ..value
            },
            _ => value,
        };
        Ok((name, value))
    }

    fn redirect_list(&mut self, redirects: Option<&RedirectList>) -> Result<(), Unreadable> {
        let Some(redirects) = redirects else {
            return Ok(());
        };
        let mut finding = Finding::default();
        for redirect in &redirects.0 {
            self.redirect(redirect, &mut finding, &mut Stdin::Inherited)?;
        }
        self.simple_words(Vec::new(), Stdin::Inherited, finding);
        Ok(())
    }

    fn redirect(
        &mut self,
        redirect: &IoRedirect,
        finding: &mut Finding,
        stdin: &mut Stdin,
    ) -> Result<(), Unreadable> {
        match redirect {
            IoRedirect::File(_, kind, target) => self.file_redirect(kind, target, finding, stdin),
            IoRedirect::OutputAndError(word, _) => {
                let target = self.single(&word.value)?;
                self.written(&target, finding);
                Ok(())
            }
            IoRedirect::HereString(_, word) => self.input_text(&word.value, stdin),
            // Masked text has none of these.
            IoRedirect::HereDocument(..) => Err(Unreadable),
        }
    }

    /// A here-string, or the mark of a here-document.
    fn input_text(&mut self, source: &str, stdin: &mut Stdin) -> Result<(), Unreadable> {
        let document = source
            .chars()
            .next()
            .and_then(|c| marked(c, &self.pieces))
            .cloned();
        *stdin = Stdin::Text(match document {
            Some(Piece::Document { body, expands }) => {
                if expands {
                    self.words(&body, Mode::Text)?;
                }
                body
            }
            _ => as_script(&self.single(source)?),
        });
        Ok(())
    }

    fn file_redirect(
        &mut self,
        kind: &IoFileRedirectKind,
        target: &IoFileRedirectTarget,
        finding: &mut Finding,
        stdin: &mut Stdin,
    ) -> Result<(), Unreadable> {
        let word = match target {
            IoFileRedirectTarget::Fd(_) => return Ok(()),
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                *stdin = Stdin::Piped;
                return self.subshell(&subshell.list);
            }
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                self.single(&word.value)?
            }
        };
        match kind {
            IoFileRedirectKind::Read => {
                *stdin = Stdin::Piped;
                self.opened(&word, finding);
            }
            IoFileRedirectKind::DuplicateInput => *stdin = Stdin::Piped,
            IoFileRedirectKind::DuplicateOutput if is_descriptor(&word.text) => {}
            _ => self.written(&word, finding),
        }
        Ok(())
    }
}

/// The word as shell text, with a variable in the place of what is not known.
pub(crate) fn as_script(word: &Word) -> String {
    word.text.replace(HOLE, "$_")
}

/// Whether an expansion gives a variable a value, as `${x=y}` and `${x:=y}` do.
fn sets_in_passing(text: &str) -> bool {
    text.split("${").skip(1).any(|after| {
        let name = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        name.starts_with('=') || name.starts_with(":=")
    })
}

fn is_descriptor(text: &str) -> bool {
    text == "-"
        || text
            .trim_end_matches('-')
            .bytes()
            .all(|b| b.is_ascii_digit())
}

/// What `echo`, `printf` or `cat` of a here-document pass down the pipe, if it is known.
fn echo_output(words: &[Word], stdin: &Stdin) -> Stdin {
    let Some((name, arguments)) = words.split_first() else {
        return Stdin::Piped;
    };
    match (name.text.as_str(), stdin) {
        ("echo" | "printf", _) => {
            let text: Vec<String> = arguments
                .iter()
                .map(as_script)
                .skip_while(|t| matches!(t.as_str(), "-n" | "-e" | "-ne" | "-en"))
                .collect();
            Stdin::Text(text.join(" ").replace("\\n", "\n"))
        }
        ("cat" | "tee", Stdin::Text(text)) => Stdin::Text(text.clone()),
        _ => Stdin::Piped,
    }
}
