//! Variables: their values, and what assigning them changes.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::finding::Finding;
use super::state::Judge;
use crate::programs::{self, Category, Meaning, host_paths_in, is_special_variable, meaning};
use crate::shell::{
    NUMBER, UNKNOWN, Vars, Word, is_always_number, is_number, is_number_value, name_prefix,
    word_text,
};

/// Values kept for one variable.
const MOST_VALUES: usize = 8;

/// Values that text above their assignment may read: a loop runs again, and a function runs when it is called.
#[derive(Debug, Default)]
pub(crate) struct LaterValues {
    /// Values that this pass has had from its beginning.
    known: BTreeMap<String, Vec<String>>,
    found: BTreeMap<String, Vec<String>>,
}

impl LaterValues {
    /// Gives variables the values that a former pass found.
    pub fn seed(&self, vars: &mut Rc<Vars>) {
        for (name, values) in &self.known {
            Rc::make_mut(vars).insert(name.clone(), values.clone());
        }
    }

    /// Records the value that a variable is given. `None` when it is not known.
    fn record(&mut self, vars: &Vars, name: &str, value: Option<&str>) {
        let Some(known) = vars.read_in_repeated(name).filter(|_| name != "_") else {
            return;
        };
        let unknown = UNKNOWN.to_string();
        let value = value.unwrap_or(&unknown);
        // An unknown value adds nothing to a variable that was unknown when it was read.
        if !known && value == unknown {
            return;
        }
        let known = self.known.get(name).into_iter().flatten();
        if known
            .chain(self.found.get(name).into_iter().flatten())
            .any(|v| v == value)
        {
            return;
        }
        let found = self.found.entry(name.to_owned()).or_default();
        match found.len() < MOST_VALUES {
            true => found.push(value.to_owned()),
            // A value that is dropped here counts as unknown.
            false => found[0] = unknown,
        }
    }

    /// The values for the beginning of another pass. `None` when this pass had them all.
    pub fn next_pass(&mut self) -> Option<LaterValues> {
        if self.found.is_empty() {
            return None;
        }
        let mut known = std::mem::take(&mut self.known);
        for (name, mut values) in std::mem::take(&mut self.found) {
            known.entry(name).or_default().append(&mut values);
        }
        Some(LaterValues {
            known,
            ..LaterValues::default()
        })
    }
}

impl Judge {
    /// Assigns a variable, before a command or by itself.
    pub fn assign(&mut self, name: &str, value: Word, words: &[Word], finding: &mut Finding) {
        let reads_fields = words.first().is_some_and(|w| w.text == "read") && name == "IFS";
        if is_special_variable(name) && !reads_fields {
            let script = value.text.trim();
            if !matches!(script, "" | "cat" | "true" | "less") || name == "PATH" {
                self.altered = true;
                finding.add(Category::Unknown);
                finding.note(format!("{name} changes what other commands do"));
            }
            self.check_special_variable(name, &value, finding);
        } else {
            let host_paths = host_paths_in(&value, None).into_iter();
            host_paths.for_each(|path| finding.touches_host(path));
        }
        let number = is_number(&value.text, value.any_text);
        self.numbers.set(name, number);
        if !number {
            self.later.record(&self.vars, name, Some(&value.text));
        }
        if !number && is_always_number(name) {
            self.findings
                .push(Finding::any_command(&format!("{name}=…")));
        }
        let text = match number {
            true => value.text.replace(UNKNOWN, NUMBER.encode_utf8(&mut [0; 4])),
            false => value.text,
        };
        for other in value.alternatives {
            self.later.record(&self.vars, name, Some(&other));
            self.add_value(name, other, MOST_VALUES);
        }
        if value.one_of_several {
            self.later.record(&self.vars, name, None);
            self.add_value(name, UNKNOWN.to_string(), MOST_VALUES);
        }
        self.add_value(name, text, MOST_VALUES);
    }

    /// Judges the value of a variable that changes what programs do.
    fn check_special_variable(&mut self, name: &str, value: &Word, finding: &mut Finding) {
        let script = value.text.trim();
        let open = value.any_text && script.contains(UNKNOWN);
        match meaning(name) {
            Some(Meaning::Command) if !script.is_empty() => {
                self.judge_script(value, finding);
            }
            Some(Meaning::Prompt) => {
                self.judge_prompt(value, finding);
            }
            Some(Meaning::Options) if open => finding.mark_any_command(),
            // These are the shell's tables of aliases and program paths.
            _ if matches!(name, "BASH_ALIASES" | "BASH_CMDS") => finding.mark_any_command(),
            _ if name.starts_with("BASH_FUNC_") => match open {
                true => finding.mark_any_command(),
                false => self.judge_text(&format!("f{script}")),
            },
            _ => {
                let lines = programs::commands_in(script);
                lines.iter().for_each(|line| self.judge_text(line));
            }
        }
    }

    /// Records the values of `alias name=value`.
    pub fn define_aliases(&mut self, arguments: &[Word]) {
        for word in arguments {
            if let Some((name, value)) = word.text.split_once('=') {
                let values = self.aliases.entry(name.to_owned()).or_default();
                // In the value of an alias, its own name means the program.
                if value.split_whitespace().next() != Some(name) && values.len() < MOST_VALUES {
                    values.push(value.to_owned());
                }
            }
        }
    }

    /// Judges a prompt. The shell expands it whenever it prints it, after its escapes.
    fn judge_prompt(&mut self, value: &Word, finding: &mut Finding) {
        let text = value.text.as_str();
        let octal = |pair: &[u8]| pair[0] == b'\\' && pair[1].is_ascii_digit();
        if value.dynamic || text.as_bytes().windows(2).any(octal) {
            finding.mark_any_command();
        }
        if text.contains(['$', '`']) {
            self.vars.enter_repeated();
            self.judge_text(&format!(": \"{}\"", word_text(&Word::fixed(text))));
            self.vars.leave_repeated();
        }
    }

    fn add_value(&mut self, name: &str, value: String, most: usize) {
        // `$_` stands for unknown text and must stay unknown.
        if name == "_" {
            return;
        }
        let values = Rc::make_mut(&mut self.vars).entry(name);
        values.retain(|known| *known != value);
        if values.len() >= most {
            // A value that is dropped here counts as unknown.
            values[0] = UNKNOWN.to_string();
            values.remove(1);
        }
        values.push(value);
    }

    /// Assigns the values of a loop to its variable.
    pub fn assign_each(&mut self, name: &str, values: Vec<String>) {
        let most = MOST_VALUES + values.len();
        for value in values {
            let number = is_number_value(&value);
            self.numbers.set(name, number);
            if !number {
                self.later.record(&self.vars, name, Some(&value));
            }
            self.add_value(name, value, most);
        }
    }

    /// Assigns a value that is known only at run time.
    pub fn assign_unknown(&mut self, name: &str, number: bool) {
        self.numbers.set(name, number);
        if !number {
            self.later.record(&self.vars, name, None);
        }
        if self.vars.contains_key(name) {
            Rc::make_mut(&mut self.vars).remove(name);
        }
    }

    /// Assigns the variable that an argument of `read` or the like names, perhaps behind an option in the same word.
    fn assign_from_input(&mut self, argument: &str) {
        let joined = usize::from(argument.starts_with('-')) * argument.len();
        let ends = (2..joined).filter_map(|at| argument.get(at..));
        for name in [argument].into_iter().chain(ends) {
            let variable = name.split('[').next().unwrap_or_default();
            if name_prefix(variable) != variable || variable.is_empty() {
                continue;
            }
            let runs = meaning(variable).is_some_and(|meaning| meaning != Meaning::Setting);
            if runs {
                self.findings.push(Finding::any_command(variable));
            }
            self.assign_unknown(variable, false);
        }
    }

    /// Applies a builtin that changes the directory or variables.
    pub fn apply_builtin(&mut self, name: &str, arguments: &[Word]) {
        match name {
            "cd" | "pushd" => {
                let target = arguments.iter().find(|w| !w.text.starts_with('-'));
                self.cwd = match target {
                    None => Some(programs::HOME.into()),
                    Some(w) if w.dynamic && w.text.contains(UNKNOWN) => None,
                    Some(w) => self.absolute(&w.text).map(Arc::from),
                };
            }
            "popd" => self.cwd = None,
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for word in arguments {
                    if let Some((variable, value)) = word.text.split_once('=') {
                        let value = Word {
                            text: value.to_owned(),
                            ..word.clone()
                        };
                        let mut finding = Finding::about(&word.text);
                        self.assign(variable, value, &[], &mut finding);
                        self.push_if_any(finding);
                    }
                }
            }
            "unset" => {
                for word in arguments {
                    Rc::make_mut(&mut self.vars).remove(&word.text);
                }
            }
            "printf"
                if arguments
                    .first()
                    .is_none_or(|word| !word.text.starts_with("-v")) => {}
            "read" | "mapfile" | "readarray" | "getopts" | "printf" | "wait" => {
                arguments
                    .iter()
                    .for_each(|word| self.assign_from_input(&word.text));
            }
            _ => {}
        }
    }
}
