//! The state of judging one request, and the passes over it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::finding::Finding;
use super::request::{CommandForm, Request};
use super::variables::LaterValues;
use crate::programs::{self, Category, Stdin, host_path};
use crate::shell::{Assumptions, Mode, NumericVars, Piece, Vars, Word};

/// Commands nested deeper than this (substitutions, wrappers, scripts in arguments) are refused.
const DEEPEST: usize = 16;
/// More nested commands than this in one request are refused.
const MOST_NESTED: usize = 1000;
/// A request that needs more passes than this may run any command.
const MOST_PASSES: usize = 4;

/// How shell text is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsing {
    /// Plain commands are folded out of it before the parser reads it.
    Folded,
    /// Folded text could not be read, so the request is judged again without folding.
    Misfolded,
    Whole,
}

/// Judges one request: what is known at the current point of it, and the findings so far.
pub(crate) struct Judge {
    pub parsing: Parsing,
    /// The working directory, as long as it is known.
    pub cwd: Option<Arc<str>>,
    pub vars: Rc<Vars>,
    pub functions: BTreeSet<String>,
    /// The possible values of each alias.
    pub aliases: BTreeMap<String, Vec<String>>,
    pub mode: Mode,
    /// What the marks in the current text stand for.
    pub pieces: Vec<Piece>,
    /// Something changes what later words mean: a variable, an alias, a sourced script.
    pub altered: bool,
    /// A rule has a condition on paths, so all paths that commands name are recorded.
    pub look_at_paths: bool,
    depth: usize,
    nested: usize,
    /// Compound commands that the current command is in.
    pub levels: usize,
    /// Bytes of shell text parsed so far.
    pub parsed: usize,
    pub numbers: NumericVars,
    pub later: LaterValues,
    pub findings: Vec<Finding>,
}

impl Judge {
    pub fn new(request: &Request, look_at_paths: bool) -> Judge {
        let cwd = programs::normalise(&String::from_utf8_lossy(request.cwd));
        let known = [
            ("HOME", programs::HOME),
            ("PWD", &cwd),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ];
        let vars = known.map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
        Judge {
            parsing: Parsing::Folded,
            vars: Rc::new(Vars::from(vars)),
            cwd: Some(cwd.into()),
            functions: BTreeSet::new(),
            aliases: BTreeMap::new(),
            mode: Mode::Plain,
            pieces: Vec::new(),
            altered: false,
            look_at_paths,
            depth: 0,
            levels: 0,
            nested: 0,
            parsed: 0,
            numbers: NumericVars::default(),
            later: LaterValues::default(),
            findings: Vec::new(),
        }
    }

    /// All findings on a request. It is judged again if a pass shows that folded text could not be read, or that a
    /// loop or a function reads variables that are set below it.
    pub fn findings(self, request: &Request) -> Vec<Finding> {
        let mut judged = self.one_pass(request);
        for _ in 0..MOST_PASSES {
            let later = judged.later.next_pass();
            if judged.parsing != Parsing::Misfolded && later.is_none() {
                return judged.findings;
            }
            let mut next = Judge::new(request, judged.look_at_paths);
            next.parsing = match judged.parsing {
                Parsing::Misfolded => Parsing::Whole,
                parsing => parsing,
            };
            next.later = later.unwrap_or_default();
            judged = next.one_pass(request);
        }
        judged.findings.push(Finding::any_command("…"));
        judged.findings
    }

    fn one_pass(mut self, request: &Request) -> Judge {
        self.later.seed(&mut self.vars);
        self.judge_environment(request);
        match request.command {
            CommandForm::Shell(text) => self.judge_text(text),
            CommandForm::Argv([]) => self.push_unparseable("", "there is no command"),
            CommandForm::Argv(argv) if argv.iter().any(|a| a.contains(&0)) => {
                self.push_unparseable("", "an argument has a NUL byte");
            }
            CommandForm::Argv(argv) => {
                let words = argv.iter().map(|a| Word::fixed(String::from_utf8_lossy(a)));
                self.judge_words(words.collect(), Stdin::Inherited, Finding::default());
            }
        }
        let (functions, altered) = (&self.functions, self.altered);
        let replaced = |program: &str| altered || functions.contains(program);
        for text in std::mem::take(&mut self.numbers).violated(replaced) {
            self.findings.push(Finding::any_command(&text));
        }
        if self.altered {
            for finding in &mut self.findings {
                finding.altered = true;
            }
        }
        for finding in &mut self.findings {
            finding.settle_dry_run();
        }
        self
    }

    /// Judges the directory and the variables of the request.
    fn judge_environment(&mut self, request: &Request) {
        let cwd = String::from_utf8_lossy(request.cwd);
        if let Some(path) = host_path(&cwd, None, false) {
            let mut finding = Finding::about(&format!("cd {cwd}"));
            finding.touches_host(path);
            self.findings.push(finding);
        }
        for (name, value) in request.env {
            let name = String::from_utf8_lossy(name);
            let value = Word::fixed(String::from_utf8_lossy(value));
            let mut finding = Finding::about(&format!("{name}=…"));
            self.assign(&name, value, &[], &mut finding);
            self.push_if_any(finding);
        }
    }

    /// Enters a nested command. False when it is nested too deeply.
    pub fn enter(&mut self) -> bool {
        self.depth += 1;
        self.nested += 1;
        let fits = self.depth <= DEEPEST && self.nested <= MOST_NESTED;
        if !fits {
            self.depth -= 1;
        }
        fits
    }

    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    pub fn push_unparseable(&mut self, text: &str, why: &str) {
        let mut finding = Finding::about(text);
        finding.unparseable = true;
        finding.add(Category::Unknown);
        finding.note(why);
        self.findings.push(finding);
    }

    /// Adds a finding about something beside the commands, if it has any category.
    pub fn push_if_any(&mut self, finding: Finding) {
        if !finding.categories.is_empty() {
            self.findings.push(finding);
        }
    }

    /// Records what must hold for text that bash evaluates a second time.
    pub fn assume(&mut self, assumptions: Assumptions, text: &str) {
        if !assumptions.is_empty() && !self.numbers.assume(assumptions, text) {
            self.findings.push(Finding::any_command(text));
        }
    }

    /// Adds a finding about something that is not a simple command.
    pub fn push_finding(&mut self, text: &str, category: Category) {
        let mut finding = Finding::about(text);
        finding.add(category);
        self.findings.push(finding);
    }
}
