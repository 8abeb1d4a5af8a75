//! Judges shell text: walks over its syntax tree, command by command.

use brush_parser::ast::{self, Command, CompoundCommand, CompoundList};

use super::finding::Finding;
use super::state::{Judge, Parsing};
use crate::programs::{Category, Stdin, is_special_variable};
use crate::shell::{
    Folded, LONGEST_TEXT, Masked, Mode, Reading, Unreadable, Word, evaluated, fold, is_number,
    mark, masked, parse, parse_folded, read, read_plain,
};

/// The variable of a loop over more values than this is not known.
const LONGEST_LIST: usize = 64;
/// Compound commands in each other, over all texts that are in each other. Deeper ones are not judged, because judging
/// recurses.
const MOST_LEVELS: usize = 64;

/// The runs that the marks in the current text stand for, if it is folded.
pub(crate) type Runs<'t> = Option<&'t Folded<'t>>;

impl Judge {
    /// Judges shell text. Every simple command in it becomes a finding.
    pub(crate) fn judge_text(&mut self, text: &str) {
        self.parsed += text.len();
        // `${x:=y}` assigns a variable.
        self.altered |= text.contains("${") && text.contains('=') && assigns_in_expansion(text);
        if self.parsed > LONGEST_TEXT || !self.enter() {
            return self.push_unparseable(text, "it is too long or nested too deeply");
        }
        match masked(text) {
            None => self.push_unparseable(text, "it cannot be parsed as shell text"),
            Some(masked) => self.judge_masked(text, masked),
        }
        self.leave();
    }

    fn judge_masked(&mut self, text: &str, masked: Masked) {
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
            return self.push_unparseable(text, "it cannot be parsed as shell text");
        };
        let outer = std::mem::replace(&mut self.mode, mode);
        let outer_pieces = std::mem::replace(&mut self.pieces, masked.pieces);
        if mode == Mode::Pattern {
            self.push_finding(text, Category::Unknown);
        }
        if let Some(folded) = folded {
            // The text is judged again without folding, which reports it as a whole.
            if self.judge_folded(&program, &folded).is_err() {
                self.parsing = Parsing::Misfolded;
            }
        } else {
            for list in &program.complete_commands {
                if self.walk_list(list, None).is_err() {
                    self.push_unparseable(text, "a word in it cannot be read with certainty");
                }
            }
        }
        self.mode = outer;
        self.pieces = outer_pieces;
    }

    fn judge_folded(
        &mut self,
        program: &ast::Program,
        folded: &Folded<'_>,
    ) -> Result<(), Unreadable> {
        if folded.is_all() {
            return self.judge_run(&folded.steps);
        }
        for list in &program.complete_commands {
            self.walk_list(list, Some(folded))?;
        }
        Ok(())
    }

    fn walk_list(&mut self, list: &CompoundList, runs: Runs<'_>) -> Result<(), Unreadable> {
        self.deeper(|judge| judge.walk_items(list, runs))
    }

    /// Judges what is one level further down. What is too deep is reported, and not judged.
    fn deeper(
        &mut self,
        judge: impl FnOnce(&mut Judge) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        if self.levels == MOST_LEVELS {
            self.push_unparseable("…", "it is nested too deeply");
            return Ok(());
        }
        self.levels += 1;
        let result = judge(self);
        self.levels -= 1;
        result
    }

    fn walk_items(&mut self, list: &CompoundList, runs: Runs<'_>) -> Result<(), Unreadable> {
        for item in &list.0 {
            for (_, pipeline) in &item.0 {
                if let (Some(folded), [alone]) = (runs, pipeline.seq.as_slice())
                    && let Some(run) = mark(alone).and_then(|mark| folded.runs.get(mark))
                {
                    self.judge_run(&folded.steps[run.clone()])?;
                    continue;
                }
                let mut stdin = Stdin::Inherited;
                for command in &pipeline.seq {
                    stdin = self.walk_command(command, stdin, runs)?;
                }
            }
        }
        Ok(())
    }

    /// Judges one command of a pipeline. Returns the standard input of the next one.
    fn walk_command(
        &mut self,
        command: &Command,
        stdin: Stdin,
        runs: Runs<'_>,
    ) -> Result<Stdin, Unreadable> {
        match command {
            Command::Simple(simple) => return self.judge_simple(simple, stdin),
            Command::Compound(compound, redirects) => {
                self.walk_compound(compound, runs)?;
                self.judge_redirects(redirects.as_ref())?;
            }
            Command::Function(function) => {
                let name = self.read_one(&function.fname.value)?;
                self.functions.insert(name.text);
                self.vars.enter_repeated();
                let result = self.walk_compound(&function.body.0, runs);
                self.vars.leave_repeated();
                result?;
                self.judge_redirects(function.body.1.as_ref())?;
            }
            Command::ExtendedTest(test, redirects) => {
                self.judge_test(&test.expr)?;
                self.judge_redirects(redirects.as_ref())?;
            }
        }
        Ok(Stdin::Piped)
    }

    fn walk_compound(
        &mut self,
        compound: &CompoundCommand,
        runs: Runs<'_>,
    ) -> Result<(), Unreadable> {
        let repeats = matches!(
            compound,
            CompoundCommand::ArithmeticForClause(_)
                | CompoundCommand::ForClause(_)
                | CompoundCommand::WhileClause(_)
                | CompoundCommand::UntilClause(_)
        );
        if !repeats {
            return self.walk_compound_once(compound, runs);
        }
        self.vars.enter_repeated();
        let result = self.walk_compound_once(compound, runs);
        self.vars.leave_repeated();
        result
    }

    fn walk_compound_once(
        &mut self,
        compound: &CompoundCommand,
        runs: Runs<'_>,
    ) -> Result<(), Unreadable> {
        match compound {
            CompoundCommand::Arithmetic(c) => self.judge_expression(&c.expr.value),
            CompoundCommand::ArithmeticForClause(c) => {
                for part in [&c.initializer, &c.condition, &c.updater]
                    .into_iter()
                    .flatten()
                {
                    self.judge_expression(&part.value)?;
                }
                self.walk_list(&c.body.list, runs)
            }
            CompoundCommand::BraceGroup(c) => self.walk_list(&c.list, runs),
            CompoundCommand::Subshell(c) => self.walk_subshell(&c.list, runs),
            CompoundCommand::ForClause(c) => {
                self.loop_variable(&c.variable_name, c.values.as_deref())?;
                self.walk_list(&c.body.list, runs)
            }
            CompoundCommand::CaseClause(c) => {
                self.read_words(&c.value.value, Mode::Pattern)?;
                for case in &c.cases {
                    for pattern in &case.patterns {
                        self.read_words(&pattern.value, Mode::Pattern)?;
                    }
                    case.cmd
                        .as_ref()
                        .map_or(Ok(()), |list| self.walk_list(list, runs))?;
                }
                Ok(())
            }
            CompoundCommand::IfClause(c) => {
                self.walk_list(&c.condition, runs)?;
                self.walk_list(&c.then, runs)?;
                for clause in c.elses.iter().flatten() {
                    clause
                        .condition
                        .as_ref()
                        .map_or(Ok(()), |list| self.walk_list(list, runs))?;
                    self.walk_list(&clause.body, runs)?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(c) | CompoundCommand::UntilClause(c) => {
                self.walk_list(&c.0, runs)?;
                self.walk_list(&c.1.list, runs)
            }
            CompoundCommand::Coprocess(c) => self.deeper(|judge| {
                let output = judge.walk_command(&c.body, Stdin::Piped, runs);
                output.map(drop)
            }),
        }
    }

    /// Judges a list in a subshell, whose directory and variables end with it.
    pub(crate) fn walk_subshell(
        &mut self,
        list: &CompoundList,
        runs: Runs<'_>,
    ) -> Result<(), Unreadable> {
        let (cwd, vars) = (self.cwd.clone(), self.vars.clone());
        let result = self.walk_list(list, runs);
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
            candidates.extend(self.read_words(&value.value, self.mode)?);
        }
        self.altered |= is_special_variable(name);
        self.check_paths(&format!("for {name} in …"), &candidates);
        let numbers = |word: &Word| is_number(&word.text, word.any_text);
        if is_special_variable(name) {
            let mut finding = Finding::about(&format!("for {name} in …"));
            for candidate in &candidates {
                self.assign(name, candidate.clone(), &[], &mut finding);
            }
            self.push_if_any(finding);
        }
        let open = values.is_none() || candidates.iter().any(|w| w.dynamic || w.glob);
        let number = values.is_some() && candidates.iter().all(numbers);
        if open || candidates.is_empty() || candidates.len() > LONGEST_LIST {
            self.assign_unknown(name, number);
        } else {
            let values = candidates.into_iter().map(|word| word.text);
            self.assign_each(name, values.collect());
        }
        Ok(())
    }

    /// Judges text that bash evaluates as an expression.
    pub(crate) fn evaluate(&mut self, source: &str, mode: Mode) -> Result<(), Unreadable> {
        let reading = evaluated(source, &self.pieces, &self.vars, mode)?;
        self.apply_reading(reading, source);
        Ok(())
    }

    /// Expands a word and judges the commands of its substitutions.
    pub(crate) fn read_words(&mut self, source: &str, mode: Mode) -> Result<Vec<Word>, Unreadable> {
        let reading = read(source, &self.pieces, &self.vars, mode)?;
        Ok(self.apply_reading(reading, source))
    }

    fn apply_reading(&mut self, reading: Reading, source: &str) -> Vec<Word> {
        if !reading.assumes.is_empty() {
            self.assume(reading.assumes, source);
        }
        for (name, value) in reading.assigned {
            let mut finding = Finding::about(&name);
            self.assign(&name, value, &[], &mut finding);
            self.push_if_any(finding);
        }
        if !reading.commands.is_empty() {
            let (cwd, vars) = (self.cwd.clone(), self.vars.clone());
            for command in &reading.commands {
                self.judge_text(command);
            }
            (self.cwd, self.vars) = (cwd, vars);
        }
        reading.words
    }

    /// Expands a word of a command, and adds the result to `words`.
    pub(crate) fn read_words_into(
        &mut self,
        source: &str,
        words: &mut Vec<Word>,
    ) -> Result<(), Unreadable> {
        // `{a[i]}>file` evaluates a subscript.
        if let Some(name) = source.strip_prefix('{').and_then(|s| s.strip_suffix('}'))
            && let Some((_, subscript)) = name.split_once('[')
        {
            self.evaluate(subscript.trim_end_matches(']'), Mode::Text)?;
        }
        match read_plain(source, &self.vars, self.mode) {
            Some(word) => words.push(word),
            None => words.extend(self.read_words(source, self.mode)?),
        }
        Ok(())
    }

    pub(crate) fn read_one(&mut self, source: &str) -> Result<Word, Unreadable> {
        if let Some(word) = read_plain(source, &self.vars, Mode::Value) {
            return Ok(word);
        }
        let words = self.read_words(source, Mode::Value)?;
        Ok(words.into_iter().next().unwrap_or_default())
    }
}

/// Whether an expansion in the text assigns a variable, as `${x=y}` and `${x:=y}` do.
fn assigns_in_expansion(text: &str) -> bool {
    text.split("${").skip(1).any(|after| {
        let name = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        name.starts_with('=') || name.starts_with(":=")
    })
}
