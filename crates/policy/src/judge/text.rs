//! Shell text walked command by command, with the parser's help.

use brush_parser::ast::{self, Command, CompoundCommand, CompoundList};

use super::finding::Finding;
use super::state::{Judge, Parsing};
use crate::programs::{Category, Stdin, changes_meaning};
use crate::shell::{
    Folded, LONGEST_TEXT, Masked, Mode, Reading, Unreadable, Word, at_once, evaluated, fold,
    is_number, mark, masked, parse, parse_folded, read,
};

/// Longer lists of a loop than this are not followed value by value.
const LONGEST_LIST: usize = 64;

/// What the marks in the text being walked stand for, if it was folded.
pub(crate) type Runs<'t> = Option<&'t Folded<'t>>;

impl Judge {
    /// Judges shell text: every simple command in it becomes a finding.
    pub(crate) fn text(&mut self, text: &str) {
        self.parsed += text.len();
        // `${x:=y}` sets a variable in passing.
        self.altered |= text.contains("${") && text.contains('=') && sets_in_passing(text);
        if self.parsed > LONGEST_TEXT || !self.enter() {
            return self.unparseable(text, "it is too long or nested too deeply");
        }
        match masked(text) {
            None => self.unparseable(text, "it cannot be parsed as shell text"),
            Some(masked) => self.masked(text, masked),
        }
        self.leave();
    }

    fn masked(&mut self, text: &str, masked: Masked) {
        let folded = match self.parsing {
            Parsing::Folded => fold(&masked.text),
            Parsing::Misfolded | Parsing::Whole => None,
        };
        let folded = folded.and_then(|folded| Some((parse_folded(&folded)?, folded)));
        let parsed = match folded {
            Some((program, folded)) => Some((program, Mode::Plain, Some(folded))),
            None => parse(&masked.text).map(|(program, mode)| (program, mode, None)),
        };
        let Some((program, mode, folded)) = parsed else {
            return self.unparseable(text, "it cannot be parsed as shell text");
        };
        let outer = std::mem::replace(&mut self.mode, mode);
        let outer_pieces = std::mem::replace(&mut self.pieces, masked.pieces);
        if mode == Mode::Pattern {
            self.remark(text, Category::Unknown);
        }
        if let Some(folded) = folded {
            // What cannot be read is told with the whole text in view.
            if self.folded(&program, &folded).is_err() {
                self.parsing = Parsing::Misfolded;
            }
        } else {
            for list in &program.complete_commands {
                if self.list(list, None).is_err() {
                    self.unparseable(text, "a word in it cannot be read with certainty");
                }
            }
        }
        self.mode = outer;
        self.pieces = outer_pieces;
    }

    fn folded(&mut self, program: &ast::Program, folded: &Folded<'_>) -> Result<(), Unreadable> {
        if folded.is_all() {
            return self.run(&folded.steps);
        }
        for list in &program.complete_commands {
            self.list(list, Some(folded))?;
        }
        Ok(())
    }

    fn list(&mut self, list: &CompoundList, runs: Runs<'_>) -> Result<(), Unreadable> {
        for item in &list.0 {
            for (_, pipeline) in &item.0 {
                if let (Some(folded), [alone]) = (runs, pipeline.seq.as_slice())
                    && let Some(run) = mark(alone).and_then(|mark| folded.runs.get(mark))
                {
                    self.run(&folded.steps[run.clone()])?;
                    continue;
                }
                let mut stdin = Stdin::Inherited;
                for command in &pipeline.seq {
                    stdin = self.command(command, stdin, runs)?;
                }
            }
        }
        Ok(())
    }

    /// Judges one command of a pipeline; returns what the next one reads.
    fn command(
        &mut self,
        command: &Command,
        stdin: Stdin,
        runs: Runs<'_>,
    ) -> Result<Stdin, Unreadable> {
        match command {
            Command::Simple(simple) => return self.simple(simple, stdin),
            Command::Compound(compound, redirects) => {
                self.compound(compound, runs)?;
                self.redirect_list(redirects.as_ref())?;
            }
            Command::Function(function) => {
                let name = self.single(&function.fname.value)?;
                self.functions.insert(name.text);
                self.vars.repeat();
                let result = self.compound(&function.body.0, runs);
                self.vars.end_repeat();
                result?;
                self.redirect_list(function.body.1.as_ref())?;
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr)?;
                self.redirect_list(redirects.as_ref())?;
            }
        }
        Ok(Stdin::Piped)
    }

    fn compound(&mut self, compound: &CompoundCommand, runs: Runs<'_>) -> Result<(), Unreadable> {
        let repeats = matches!(
            compound,
            CompoundCommand::ArithmeticForClause(_)
                | CompoundCommand::ForClause(_)
                | CompoundCommand::WhileClause(_)
                | CompoundCommand::UntilClause(_)
        );
        if !repeats {
            return self.compound_once(compound, runs);
        }
        self.vars.repeat();
        let result = self.compound_once(compound, runs);
        self.vars.end_repeat();
        result
    }

    fn compound_once(
        &mut self,
        compound: &CompoundCommand,
        runs: Runs<'_>,
    ) -> Result<(), Unreadable> {
        match compound {
            CompoundCommand::Arithmetic(c) => self.expression(&c.expr.value),
            CompoundCommand::ArithmeticForClause(c) => {
                for part in [&c.initializer, &c.condition, &c.updater]
                    .into_iter()
                    .flatten()
                {
                    self.expression(&part.value)?;
                }
                self.list(&c.body.list, runs)
            }
            CompoundCommand::BraceGroup(c) => self.list(&c.list, runs),
            CompoundCommand::Subshell(c) => self.subshell(&c.list, runs),
            CompoundCommand::ForClause(c) => {
                self.loop_variable(&c.variable_name, c.values.as_deref())?;
                self.list(&c.body.list, runs)
            }
            CompoundCommand::CaseClause(c) => {
                self.words(&c.value.value, Mode::Pattern)?;
                for case in &c.cases {
                    for pattern in &case.patterns {
                        self.words(&pattern.value, Mode::Pattern)?;
                    }
                    case.cmd
                        .as_ref()
                        .map_or(Ok(()), |list| self.list(list, runs))?;
                }
                Ok(())
            }
            CompoundCommand::IfClause(c) => {
                self.list(&c.condition, runs)?;
                self.list(&c.then, runs)?;
                for clause in c.elses.iter().flatten() {
                    clause
                        .condition
                        .as_ref()
                        .map_or(Ok(()), |list| self.list(list, runs))?;
                    self.list(&clause.body, runs)?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(c) | CompoundCommand::UntilClause(c) => {
                self.list(&c.0, runs)?;
                self.list(&c.1.list, runs)
            }
            CompoundCommand::Coprocess(c) => {
                self.command(&c.body, Stdin::Piped, runs)?;
                Ok(())
            }
        }
    }

    /// A list whose changes of directory and variables do not outlive it.
    pub(crate) fn subshell(
        &mut self,
        list: &CompoundList,
        runs: Runs<'_>,
    ) -> Result<(), Unreadable> {
        let (cwd, vars) = (self.cwd.clone(), self.vars.clone());
        let result = self.list(list, runs);
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
        let numbers = |word: &Word| is_number(&word.text, word.vague);
        if changes_meaning(name) {
            let mut finding = Finding::about(&format!("for {name} in …"));
            for candidate in &candidates {
                self.assigned(name, candidate.clone(), &[], &mut finding);
            }
            self.beside(finding);
        }
        let open = values.is_none() || candidates.iter().any(|w| w.dynamic || w.glob);
        let number = values.is_some() && candidates.iter().all(numbers);
        if open || candidates.is_empty() || candidates.len() > LONGEST_LIST {
            self.forget(name, number);
        } else {
            let values = candidates.into_iter().map(|word| word.text);
            self.becomes(name, values.collect());
        }
        Ok(())
    }

    /// Text that is evaluated as an expression: what it may run, and what it relies on.
    pub(crate) fn evaluated(&mut self, source: &str, mode: Mode) -> Result<(), Unreadable> {
        let reading = evaluated(source, &self.pieces, &self.vars, mode)?;
        self.took(reading, source);
        Ok(())
    }

    /// Reads a word and judges the commands of its substitutions.
    pub(crate) fn words(&mut self, source: &str, mode: Mode) -> Result<Vec<Word>, Unreadable> {
        let reading = read(source, &self.pieces, &self.vars, mode)?;
        Ok(self.took(reading, source))
    }

    fn took(&mut self, reading: Reading, source: &str) -> Vec<Word> {
        if !reading.relies.is_empty() {
            self.rely(reading.relies, source);
        }
        for (name, value) in reading.assigned {
            let mut finding = Finding::about(&name);
            self.assigned(&name, value, &[], &mut finding);
            self.beside(finding);
        }
        if !reading.commands.is_empty() {
            let (cwd, vars) = (self.cwd.clone(), self.vars.clone());
            for command in &reading.commands {
                self.text(command);
            }
            (self.cwd, self.vars) = (cwd, vars);
        }
        reading.words
    }

    /// The same for a word of a command.
    pub(crate) fn words_into(
        &mut self,
        source: &str,
        words: &mut Vec<Word>,
    ) -> Result<(), Unreadable> {
        // `{a[i]}>file` evaluates a subscript.
        if let Some(name) = source.strip_prefix('{').and_then(|s| s.strip_suffix('}'))
            && let Some((_, subscript)) = name.split_once('[')
        {
            self.evaluated(subscript.trim_end_matches(']'), Mode::Text)?;
        }
        match at_once(source, &self.vars, self.mode) {
            Some(word) => words.push(word),
            None => words.extend(self.words(source, self.mode)?),
        }
        Ok(())
    }

    pub(crate) fn single(&mut self, source: &str) -> Result<Word, Unreadable> {
        if let Some(word) = at_once(source, &self.vars, Mode::Value) {
            return Ok(word);
        }
        let words = self.words(source, Mode::Value)?;
        Ok(words.into_iter().next().unwrap_or_default())
    }
}

/// Whether an expansion gives a variable a value, as `${x=y}` and `${x:=y}` do.
fn sets_in_passing(text: &str) -> bool {
    text.split("${").skip(1).any(|after| {
        let name = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        name.starts_with('=') || name.starts_with(":=")
    })
}
