//! The judge: walks over one request, keeps what is known so far, and turns findings into a decision.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::finding::Finding;
use super::request::{CommandForm, Request};
use super::variables::Later;
use crate::programs::{self, Category, Stdin, forbidden_path};
use crate::shell::{Mode, Numbers, Piece, Reliance, Vars, Word};

/// Nested commands (substitutions, wrappers, scripts in arguments) beyond this depth are refused.
const DEEPEST: usize = 16;
/// Nested commands in one request beyond this number are refused.
const MOST_NESTED: usize = 1000;
/// Requests that do not come to rest in so many passes are not understood.
const MOST_PASSES: usize = 4;

/// How shell text is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsing {
    /// Plain commands are folded out of it first.
    Folded,
    /// The same, but something could not be read: the request has to be judged anew.
    Misfolded,
    Whole,
}

pub(crate) struct Judge {
    pub parsing: Parsing,
    /// The directory, as long as it is known.
    pub cwd: Option<Arc<str>>,
    pub vars: Rc<Vars>,
    pub functions: BTreeSet<String>,
    /// What the names of aliases may stand for.
    pub aliases: BTreeMap<String, Vec<String>>,
    pub mode: Mode,
    /// What was cut out of the text being walked.
    pub pieces: Vec<Piece>,
    /// Something changes what later words mean: a variable, an alias, a script that is read in.
    pub altered: bool,
    pub look_at_paths: bool,
    depth: usize,
    nested: usize,
    /// Bytes of shell text parsed so far.
    pub parsed: usize,
    pub numbers: Numbers,
    pub later: Later,
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
            nested: 0,
            parsed: 0,
            numbers: Numbers::default(),
            later: Later::default(),
            findings: Vec::new(),
        }
    }

    /// All that is to be found out about a request. It is judged anew when something shows only at its end: that it was
    /// folded wrongly, or that a loop or a function sees values of variables that are set below it.
    pub fn findings(self, request: &Request) -> Vec<Finding> {
        let mut judged = self.judged(request);
        for _ in 0..MOST_PASSES {
            let later = judged.later.unseen();
            if judged.parsing != Parsing::Misfolded && later.is_none() {
                return judged.findings;
            }
            let mut anew = Judge::new(request, judged.look_at_paths);
            anew.parsing = match judged.parsing {
                Parsing::Misfolded => Parsing::Whole,
                parsing => parsing,
            };
            anew.later = later.unwrap_or_default();
            judged = anew.judged(request);
        }
        judged.findings.push(Finding::anything("…"));
        judged.findings
    }

    fn judged(mut self, request: &Request) -> Judge {
        self.later.seed(&mut self.vars);
        self.surroundings(request);
        match request.command {
            CommandForm::Shell(text) => self.text(text),
            CommandForm::Argv([]) => self.unparseable("", "there is no command"),
            CommandForm::Argv(argv) if argv.iter().any(|a| a.contains(&0)) => {
                self.unparseable("", "an argument holds a NUL byte");
            }
            CommandForm::Argv(argv) => {
                let words = argv.iter().map(|a| Word::fixed(String::from_utf8_lossy(a)));
                self.simple_words(words.collect(), Stdin::Inherited, Finding::default());
            }
        }
        let (functions, altered) = (&self.functions, self.altered);
        let replaced = |program: &str| altered || functions.contains(program);
        for text in std::mem::take(&mut self.numbers).spoiled(replaced) {
            self.findings.push(Finding::anything(&text));
        }
        if self.altered {
            for finding in &mut self.findings {
                finding.altered = true;
            }
        }
        self
    }

    /// The directory and the variables that the request brings along.
    fn surroundings(&mut self, request: &Request) {
        let cwd = String::from_utf8_lossy(request.cwd);
        if let Some(place) = forbidden_path(&cwd, None, false) {
            let mut finding = Finding::about(&format!("cd {cwd}"));
            finding.reaches(place);
            self.findings.push(finding);
        }
        for (name, value) in request.env {
            let name = String::from_utf8_lossy(name);
            let value = Word::fixed(String::from_utf8_lossy(value));
            let mut finding = Finding::about(&format!("{name}=…"));
            self.assigned(&name, value, &[], &mut finding);
            self.beside(finding);
        }
    }

    /// Goes one level deeper; false when that is too deep.
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

    pub fn unparseable(&mut self, text: &str, why: &str) {
        let mut finding = Finding::about(text);
        finding.unparseable = true;
        finding.add(Category::Unknown);
        finding.note(why);
        self.findings.push(finding);
    }

    /// What was found about something beside the commands, if it is anything.
    pub fn beside(&mut self, finding: Finding) {
        if !finding.categories.is_empty() {
            self.findings.push(finding);
        }
    }

    /// Text that bash evaluates again.
    pub fn rely(&mut self, reliance: Reliance, text: &str) {
        if !reliance.is_empty() && !self.numbers.rely(reliance, text) {
            self.findings.push(Finding::anything(text));
        }
    }

    /// A finding about something that is not a simple command.
    pub fn remark(&mut self, text: &str, category: Category) {
        let mut finding = Finding::about(text);
        finding.add(category);
        self.findings.push(finding);
    }
}
