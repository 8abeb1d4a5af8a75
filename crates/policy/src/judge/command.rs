//! One simple command, once its words are known: which programs it runs, what they are, and what they touch.

use super::finding::{Finding, Touched};
use super::state::Judge;
use crate::programs::{
    self, Category, Known, Stdin, Unwrapped, carried, changes_later_words, evaluates, forbidden,
    forbidden_path, is_known, normalise, on_input, path_arguments, unwrap,
};
use crate::shell::{HOLE, Word, as_script, said};

impl Judge {
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
        if let Some(unwrapped) = unwrap(name, arguments, stdin) {
            return self.unwrapped(name, arguments, unwrapped, found);
        }
        let relies = evaluates(name, arguments);
        if !relies.is_empty() {
            let text = format!("{name} {}", said(arguments));
            self.rely(relies, &text);
        }
        self.builtins(name, arguments);
        let mut known = programs::classify(name, arguments);
        if let Stdin::Text(text) = stdin {
            known = on_input(name, arguments, text, known);
        }
        known.scripts.extend(carried(name, arguments, stdin));
        if !standard {
            // A program of the vault's own has no power over the boundary, whatever its name.
            known.categories.remove(Category::HostEscapeRisk);
        }
        if matches!(name, "." | "source") && arguments.iter().any(is_stream) {
            found.is_anything();
        }
        self.known(known, found);
        self.named_paths(&path_arguments(name, arguments), found);
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
        if is_known(name) {
            let known = programs::classify(name, args);
            self.known(known, found);
        }
        if args.first().is_some_and(|w| is_known(&w.text)) {
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
        self.named_paths(&path_arguments(name, own), found);
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
            return Some(normalise(&format!("{}/{rest}", programs::HOME)));
        }
        match path {
            "~" => Some(programs::HOME.to_owned()),
            _ if path.starts_with('/') => Some(normalise(path)),
            _ => self
                .cwd
                .as_ref()
                .map(|cwd| normalise(&format!("{cwd}/{path}"))),
        }
    }
}

/// What another command writes, or nobody knows: `<(…)` and its kin.
fn is_stream(word: &Word) -> bool {
    word.text.starts_with("/dev/")
}
