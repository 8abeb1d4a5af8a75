//! Judges one simple command by its words: its program, the commands that it runs, the paths that it names.

use super::finding::{Finding, NamedPath};
use super::state::Judge;
use crate::programs::{
    self, Category, DRY_RUN, Effects, Stdin, Unwrapped, changes_later_words, code_on_stdin,
    embedded_commands, evaluates, host_path, host_paths_in, is_dry_run, is_known, normalise,
    path_arguments, unwrap_command,
};
use crate::shell::{UNKNOWN, Word, command_text, word_text};

impl Judge {
    /// Checks words that are no command, such as the values of a loop or an array.
    pub fn check_paths(&mut self, text: &str, words: &[Word]) {
        let cwd = self.cwd.as_deref();
        let host_paths: Vec<String> = words.iter().flat_map(|w| host_paths_in(w, cwd)).collect();
        if !host_paths.is_empty() {
            let mut finding = Finding::about(text);
            host_paths
                .into_iter()
                .for_each(|path| finding.touches_host(path));
            self.findings.push(finding);
        }
    }

    /// Checks a file that a redirection opens for reading.
    pub fn check_read(&mut self, file: &Word, finding: &mut Finding) {
        self.note_path(&file.text, file.glob, finding);
        if let Some(path) = host_path(&file.text, self.cwd.as_deref(), file.glob) {
            finding.touches_host(path);
        }
        if ["/dev/tcp/", "/dev/udp/"]
            .iter()
            .any(|net| file.text.starts_with(net))
        {
            finding.add(Category::Networked);
        }
    }

    /// Checks a file that a redirection opens for writing.
    pub fn check_write(&mut self, file: &Word, finding: &mut Finding) {
        self.check_read(file, finding);
        let harmless = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];
        if !harmless.contains(&file.text.as_str()) {
            finding.add(Category::Mutating);
        }
    }

    /// Judges one simple command. `finding` has what its redirections and assignments gave.
    pub fn judge_words(&mut self, words: Vec<Word>, stdin: Stdin, mut finding: Finding) {
        let is_certain = |word: &&Word| !word.dynamic && !word.glob && word.alternatives.is_empty();
        finding.certain_words = words.iter().take_while(is_certain).count();
        finding.cwd.clone_from(&self.cwd);
        let position = self.findings.len();
        if let Some((program, arguments)) = words.split_first() {
            self.judge_program(program, arguments, &stdin, &mut finding);
        }
        finding.text = command_text(&words);
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
        self.findings.insert(position, finding);
    }

    /// Judges a command that another one runs. It becomes a finding of its own.
    pub fn judge_nested(&mut self, words: Vec<Word>, stdin: Stdin) {
        if self.enter() {
            self.judge_words(words, stdin, Finding::default());
            self.leave();
        } else {
            self.push_unparseable(&command_text(&words), "it is nested too deeply");
        }
    }

    /// Judges a command whose program has this name.
    pub fn judge_named(
        &mut self,
        program: &str,
        arguments: &[Word],
        stdin: &Stdin,
        found: &mut Finding,
    ) {
        let (name, standard) = self.program_name(program, found);
        if !standard {
            found.add(Category::Unknown);
            found.outside_system = true;
        }
        found.programs.push(name.to_owned());
        self.altered |= changes_later_words(name, arguments);
        for value in self.aliases.get(name).cloned().into_iter().flatten() {
            self.judge_alternative(&value, arguments, stdin);
        }
        if self.functions.contains(name) {
            return self.function_call(name, arguments, stdin, found);
        }
        if name == "alias" {
            self.define_aliases(arguments);
        }
        if let Some(unwrapped) = unwrap_command(name, arguments, stdin) {
            return self.judge_unwrapped(name, arguments, unwrapped, found);
        }
        let assumes = evaluates(name, arguments);
        if !assumes.is_empty() {
            let text = format!("{name} {}", command_text(arguments));
            self.assume(assumes, &text);
        }
        self.apply_builtin(name, arguments);
        let mut effects = programs::classify(name, arguments);
        if let Stdin::Text(text) = stdin {
            effects = code_on_stdin(name, arguments, text, effects);
        }
        effects
            .scripts
            .extend(embedded_commands(name, arguments, stdin));
        if !standard {
            // A program in the vault has no rights over the sandbox, whatever its name.
            effects.categories.remove(Category::HostEscapeRisk);
        }
        if matches!(name, "." | "source") && arguments.iter().any(is_stream) {
            found.mark_any_command();
        }
        if is_dry_run(name, arguments) {
            let real = std::mem::replace(&mut effects.categories, DRY_RUN.into_iter().collect());
            found.without_dry_run.extend(real.iter());
        }
        self.add_effects(effects, found);
        self.check_path_arguments(&path_arguments(name, arguments), found);
    }

    /// Checks the arguments that may be paths.
    fn check_path_arguments(&self, paths: &[&Word], found: &mut Finding) {
        let cwd = self.cwd.as_deref();
        for word in paths {
            self.note_path(&word.text, word.glob, found);
            let mut host_paths = host_paths_in(word, cwd);
            for other in &word.alternatives {
                self.note_path(other, false, found);
                host_paths.extend(host_paths_in(&Word::fixed(other), cwd));
            }
            host_paths
                .into_iter()
                .for_each(|path| found.touches_host(path));
        }
    }

    /// Records a path, if a rule has a condition on paths.
    fn note_path(&self, text: &str, glob: bool, found: &mut Finding) {
        if !self.look_at_paths {
            return;
        }
        let text = match text.strip_prefix('-') {
            Some(option) => option.split_once('=').map_or("", |(_, value)| value),
            None => text,
        };
        if let Some(path) = (!text.is_empty()).then(|| self.absolute(text)).flatten() {
            found.named_paths.push(NamedPath { path, glob });
        }
    }

    fn add_effects(&mut self, effects: Effects, found: &mut Finding) {
        found.categories.extend(effects.categories.iter());
        found.notes.extend(effects.note);
        if effects.runs_unknown {
            found.mark_any_command();
        }
        found.dynamic |= effects.unknown_subcommand;
        for path in effects.host_paths {
            found.touches_host(path);
        }
        for script in effects.scripts {
            self.judge_text(&script);
        }
    }

    /// Judges the call of a function. Its body is judged already; its arguments may be a command that it runs.
    fn function_call(&mut self, name: &str, args: &[Word], stdin: &Stdin, found: &mut Finding) {
        if is_known(name) {
            let effects = programs::classify(name, args);
            self.add_effects(effects, found);
        }
        if args.first().is_some_and(|w| is_known(&w.text)) {
            self.judge_nested(args.to_vec(), stdin.clone());
        }
        found.altered = true;
        found.add(Category::ReadOnly);
    }

    fn judge_unwrapped(
        &mut self,
        name: &str,
        args: &[Word],
        inner: Unwrapped,
        found: &mut Finding,
    ) {
        found.categories.extend(inner.categories);
        found.notes.extend(inner.note);
        if inner.dynamic {
            found.mark_any_command();
            found.note("the commands it runs are known only when they run");
        }
        let own = &args[..inner.own_arguments.min(args.len())];
        self.check_path_arguments(&path_arguments(name, own), found);
        for word in &inner.assignments {
            if let Some((variable, value)) = word.text.split_once('=') {
                let value = Word {
                    text: value.to_owned(),
                    ..word.clone()
                };
                self.assign(variable, value, &[], found);
            }
        }
        for script in inner.scripts {
            self.judge_script(&script, found);
        }
        for words in inner.commands {
            self.judge_nested(words, inner.stdin.clone());
        }
    }

    /// Judges shell text that a command executes. A part that is known only at run time may be any command.
    pub fn judge_script(&mut self, script: &Word, found: &mut Finding) {
        if script.dynamic {
            found.add(Category::Unknown);
        }
        let open = script.any_text && script.text.contains(UNKNOWN);
        let alternatives = script.alternatives.iter();
        if open
            || script.one_of_several
            || alternatives.clone().any(|other| other.contains(UNKNOWN))
        {
            found.mark_any_command();
            found.note("the commands it runs are known only when they run");
        }
        // A trap, an alias or an editor runs the text later.
        self.vars.enter_repeated();
        for text in alternatives.chain([&script.text]) {
            self.judge_text(&word_text(&Word::fixed(text)));
        }
        self.vars.leave_repeated();
    }

    /// The absolute path, if the directory is known.
    pub fn absolute(&self, path: &str) -> Option<String> {
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

/// Whether a file is a device or a pipe, as `<(…)` is, whose content is not known.
fn is_stream(word: &Word) -> bool {
    word.text.starts_with("/dev/")
}
