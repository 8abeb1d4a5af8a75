//! The judge: walks over one request, keeps what is known so far, and turns findings into a decision.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::again::{self, Numbers, Reliance};
use crate::carriers;
use crate::code;
use crate::commands::{self, Known};
use crate::finding::{Finding, Touched, conclude};
use crate::mask::Piece;
use crate::paths::{self, forbidden, forbidden_path};
use crate::rules::Rules;
use crate::shell::{as_script, said};
use crate::values::Vars;
use crate::variables::{Later, changes_later_words};
use crate::word::{HOLE, Mode, Word};
use crate::wrappers::{self, Unwrapped};
use crate::{Category, CommandForm, Decision, Request};

/// Nested commands (substitutions, wrappers, scripts in arguments) beyond this depth are refused.
const DEEPEST: usize = 16;
/// Nested commands in one request beyond this number are refused.
const MOST_NESTED: usize = 1000;
/// Requests that do not come to rest in so many passes are not understood.
const MOST_PASSES: usize = 4;

/// What a command reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stdin {
    Inherited,
    Piped,
    /// A file by its name.
    File,
    /// A here-document, a here-string, or the output of an `echo`.
    Text(String),
}

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
    look_at_paths: bool,
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
        let cwd = paths::normalise(&String::from_utf8_lossy(request.cwd));
        let known = [
            ("HOME", paths::HOME),
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

    pub fn decide(self, rules: &Rules, request: &Request) -> Decision {
        conclude(&self.findings(request), rules, request.network)
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

    pub fn check_paths(&mut self, text: &str, words: &[Word]) {
        let cwd = self.cwd.as_deref();
        let places: Vec<String> = words.iter().flat_map(|w| forbidden(w, cwd)).collect();
        if !places.is_empty() {
            let mut finding = Finding::about(text);
            places.into_iter().for_each(|place| finding.reaches(place));
            self.findings.push(finding);
        }
    }

    /// A file opened for reading by a redirection.
    pub fn opened(&mut self, file: &Word, finding: &mut Finding) {
        self.touches(&file.text, file.glob, finding);
        if let Some(place) = forbidden_path(&file.text, self.cwd.as_deref(), file.glob) {
            finding.reaches(place);
        }
        if ["/dev/tcp/", "/dev/udp/"]
            .iter()
            .any(|net| file.text.starts_with(net))
        {
            finding.add(Category::Networked);
        }
    }

    /// A file opened for writing by a redirection.
    pub fn written(&mut self, file: &Word, finding: &mut Finding) {
        self.opened(file, finding);
        let harmless = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];
        if !harmless.contains(&file.text.as_str()) {
            finding.add(Category::Mutating);
        }
    }

    /// Judges one simple command, given its words and what its redirections already told.
    pub fn simple_words(&mut self, words: Vec<Word>, stdin: Stdin, mut finding: Finding) {
        let certain = |word: &&Word| !word.dynamic && !word.glob && word.others.is_empty();
        finding.certain = words.iter().take_while(certain).count();
        finding.cwd.clone_from(&self.cwd);
        let place = self.findings.len();
        if let Some((program, arguments)) = words.split_first() {
            self.program(program, arguments, &stdin, &mut finding);
        }
        finding.text = said(&words);
        if finding.text.starts_with(char::is_whitespace)
            || finding.text.ends_with(char::is_whitespace)
        {
            finding.text = finding.text.trim().to_owned();
        }
        finding.words = words;
        if finding.categories.is_empty() {
            finding.add(Category::ReadOnly);
        } else if finding.categories.iter().nth(1).is_some() {
            finding.categories.remove(Category::ReadOnly);
        }
        self.findings.insert(place, finding);
    }

    /// A command inside another one: its own finding, one level deeper.
    pub fn nested(&mut self, words: Vec<Word>, stdin: Stdin) {
        if self.enter() {
            self.simple_words(words, stdin, Finding::default());
            self.leave();
        } else {
            self.unparseable(&said(&words), "it is nested too deeply");
        }
    }

    pub fn named(&mut self, program: &str, arguments: &[Word], stdin: &Stdin, found: &mut Finding) {
        let (name, standard) = self.program_name(program, found);
        if !standard {
            found.add(Category::Unknown);
            found.foreign = true;
        }
        found.programs.push(name.to_owned());
        self.altered |= changes_later_words(name, arguments);
        for value in self.aliases.get(name).cloned().into_iter().flatten() {
            self.instead(&value, arguments, stdin);
        }
        if self.functions.contains(name) {
            return self.function_call(name, arguments, stdin, found);
        }
        if name == "alias" {
            self.named_aliases(arguments);
        }
        if let Some(unwrapped) = wrappers::unwrap(name, arguments, stdin) {
            return self.unwrapped(name, arguments, unwrapped, found);
        }
        let relies = again::by_builtin(name, arguments);
        if !relies.is_empty() {
            let text = format!("{name} {}", said(arguments));
            self.rely(relies, &text);
        }
        self.builtins(name, arguments);
        let mut known = commands::classify(name, arguments);
        if let Stdin::Text(text) = stdin {
            known = code::on_input(name, arguments, text, known);
        }
        known
            .scripts
            .extend(carriers::carried(name, arguments, stdin));
        if !standard {
            // A program of the vault's own has no power over the boundary, whatever its name.
            known.categories.remove(Category::HostEscapeRisk);
        }
        if matches!(name, "." | "source") && arguments.iter().any(is_stream) {
            found.is_anything();
        }
        self.known(known, found);
        self.named_paths(&commands::path_arguments(name, arguments), found);
    }

    /// The paths among a command's arguments.
    fn named_paths(&self, paths: &[&Word], found: &mut Finding) {
        let cwd = self.cwd.as_deref();
        for word in paths {
            self.touches(&word.text, word.glob, found);
            let mut places = forbidden(word, cwd);
            for other in &word.others {
                self.touches(other, false, found);
                places.extend(forbidden(&Word::fixed(other), cwd));
            }
            places.into_iter().for_each(|place| found.reaches(place));
        }
    }

    /// Remembers a path, if a rule looks at paths.
    fn touches(&self, text: &str, glob: bool, found: &mut Finding) {
        if !self.look_at_paths {
            return;
        }
        let text = match text.strip_prefix('-') {
            Some(option) => option.split_once('=').map_or("", |(_, value)| value),
            None => text,
        };
        if let Some(path) = (!text.is_empty()).then(|| self.resolved(text)).flatten() {
            found.touched.push(Touched { path, glob });
        }
    }

    fn known(&mut self, known: Known, found: &mut Finding) {
        found.categories.extend(known.categories.iter());
        found.notes.extend(known.note);
        if known.unseen {
            found.is_anything();
        }
        found.dynamic |= known.half_known;
        for place in known.places {
            found.reaches(place);
        }
        for script in known.scripts {
            self.text(&script);
        }
    }

    /// The function's body has been judged; its arguments may be a command that it runs.
    fn function_call(&mut self, name: &str, args: &[Word], stdin: &Stdin, found: &mut Finding) {
        if commands::is_known(name) {
            let known = commands::classify(name, args);
            self.known(known, found);
        }
        if args.first().is_some_and(|w| commands::is_known(&w.text)) {
            self.nested(args.to_vec(), stdin.clone());
        }
        found.altered = true;
        found.add(Category::ReadOnly);
    }

    fn unwrapped(&mut self, name: &str, args: &[Word], inner: Unwrapped, found: &mut Finding) {
        found.categories.extend(inner.categories);
        found.notes.extend(inner.note);
        if inner.dynamic {
            found.is_anything();
            found.note("the commands it runs are known only when they run");
        }
        let own = &args[..inner.own_arguments.min(args.len())];
        self.named_paths(&commands::path_arguments(name, own), found);
        for word in &inner.assignments {
            if let Some((variable, value)) = word.text.split_once('=') {
                let value = Word {
                    text: value.to_owned(),
                    ..word.clone()
                };
                self.assigned(variable, value, &[], found);
            }
        }
        for script in inner.scripts {
            self.script(&script, found);
        }
        for words in inner.commands {
            self.nested(words, inner.stdin.clone());
        }
    }

    /// Shell text that a command is given. What is known of it only at run time may be any command.
    pub fn script(&mut self, script: &Word, found: &mut Finding) {
        if script.dynamic {
            found.add(Category::Unknown);
        }
        let open = script.vague && script.text.contains(HOLE);
        let others = script.others.iter();
        if open || script.unsure || others.clone().any(|other| other.contains(HOLE)) {
            found.is_anything();
            found.note("the commands it runs are known only when they run");
        }
        // A trap, an alias or an editor runs it later.
        self.vars.repeat();
        for text in others.chain([&script.text]) {
            self.text(&as_script(&Word::fixed(text)));
        }
        self.vars.end_repeat();
    }

    pub fn resolved(&self, path: &str) -> Option<String> {
        if let Some(rest) = path.strip_prefix("~/") {
            return Some(paths::normalise(&format!("{}/{rest}", paths::HOME)));
        }
        match path {
            "~" => Some(paths::HOME.to_owned()),
            _ if path.starts_with('/') => Some(paths::normalise(path)),
            _ => self
                .cwd
                .as_ref()
                .map(|cwd| paths::normalise(&format!("{cwd}/{path}"))),
        }
    }
}

/// What another command writes, or nobody knows: `<(…)` and its kin.
fn is_stream(word: &Word) -> bool {
    word.text.starts_with("/dev/")
}
