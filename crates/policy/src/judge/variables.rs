//! Variables: what they are given, what that changes, and what a loop or a function sees of it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::finding::Finding;
use super::state::Judge;
use crate::programs::{self, Category, Meaning, changes_meaning, forbidden, meaning};
use crate::shell::{
    HOLE, NUMBER, Vars, Word, as_script, is_always_number, is_number, is_number_value, name_prefix,
};

/// Values remembered for one variable.
const MOST_VALUES: usize = 8;

/// Values that text above their assignment may see: in a loop it runs again, and a function runs when it is called.
#[derive(Debug, Default)]
pub(crate) struct Later {
    /// The values that were known from the beginning.
    known: BTreeMap<String, Vec<String>>,
    found: BTreeMap<String, Vec<String>>,
}

impl Later {
    /// Gives variables the values that they get below.
    pub fn seed(&self, vars: &mut Rc<Vars>) {
        for (name, values) in &self.known {
            Rc::make_mut(vars).insert(name.clone(), values.clone());
        }
    }

    /// A variable was given a value; `None` when it is not known which.
    fn note(&mut self, vars: &Vars, name: &str, value: Option<&str>) {
        let Some(known) = vars.was_read(name).filter(|_| name != "_") else {
            return;
        };
        let unknown = HOLE.to_string();
        let value = value.unwrap_or(&unknown);
        // What was unknown already cannot be less known.
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
            // One that is left out may have been anything.
            false => found[0] = unknown,
        }
    }

    /// What has to be known from the beginning in another pass; `None` when all was.
    pub fn unseen(&mut self) -> Option<Later> {
        if self.found.is_empty() {
            return None;
        }
        let mut known = std::mem::take(&mut self.known);
        for (name, mut values) in std::mem::take(&mut self.found) {
            known.entry(name).or_default().append(&mut values);
        }
        Some(Later {
            known,
            ..Later::default()
        })
    }
}

impl Judge {
    /// A variable set before or beside a command.
    pub fn assigned(&mut self, name: &str, value: Word, words: &[Word], finding: &mut Finding) {
        let reads_fields = words.first().is_some_and(|w| w.text == "read") && name == "IFS";
        if changes_meaning(name) && !reads_fields {
            let script = value.text.trim();
            if !matches!(script, "" | "cat" | "true" | "less") || name == "PATH" {
                self.altered = true;
                finding.add(Category::Unknown);
                finding.note(format!("{name} changes what other commands do"));
            }
            self.matters(name, &value, finding);
        } else {
            let places = forbidden(&value, None).into_iter();
            places.for_each(|place| finding.reaches(place));
        }
        let number = is_number(&value.text, value.vague);
        self.numbers.set(name, number);
        if !number {
            self.later.note(&self.vars, name, Some(&value.text));
        }
        if !number && is_always_number(name) {
            self.findings.push(Finding::anything(&format!("{name}=…")));
        }
        let text = match number {
            true => value.text.replace(HOLE, NUMBER.encode_utf8(&mut [0; 4])),
            false => value.text,
        };
        for other in value.others {
            self.later.note(&self.vars, name, Some(&other));
            self.value(name, other, MOST_VALUES);
        }
        if value.unsure {
            self.later.note(&self.vars, name, None);
            self.value(name, HOLE.to_string(), MOST_VALUES);
        }
        self.value(name, text, MOST_VALUES);
    }

    /// The value of a variable that programs look at.
    fn matters(&mut self, name: &str, value: &Word, finding: &mut Finding) {
        let script = value.text.trim();
        let open = value.vague && script.contains(HOLE);
        match meaning(name) {
            Some(Meaning::Command) if !script.is_empty() => {
                self.script(value, finding);
            }
            Some(Meaning::Prompt) => {
                self.prompt(value, finding);
            }
            Some(Meaning::Options) if open => finding.is_anything(),
            // What these hold are the shell's own tables of names and programs.
            _ if matches!(name, "BASH_ALIASES" | "BASH_CMDS") => finding.is_anything(),
            _ if name.starts_with("BASH_FUNC_") => match open {
                true => finding.is_anything(),
                false => self.text(&format!("f{script}")),
            },
            _ => {
                let lines = programs::within(script);
                lines.iter().for_each(|line| self.text(line));
            }
        }
    }

    /// `alias name=value`: the name stands for the value, and what follows it.
    pub fn named_aliases(&mut self, arguments: &[Word]) {
        for word in arguments {
            if let Some((name, value)) = word.text.split_once('=') {
                let values = self.aliases.entry(name.to_owned()).or_default();
                // An alias of its own name means the program.
                if value.split_whitespace().next() != Some(name) && values.len() < MOST_VALUES {
                    values.push(value.to_owned());
                }
            }
        }
    }

    /// A prompt is expanded whenever it is shown, its escapes first.
    fn prompt(&mut self, value: &Word, finding: &mut Finding) {
        let text = value.text.as_str();
        let octal = |pair: &[u8]| pair[0] == b'\\' && pair[1].is_ascii_digit();
        if value.dynamic || text.as_bytes().windows(2).any(octal) {
            finding.is_anything();
        }
        if text.contains(['$', '`']) {
            self.vars.repeat();
            self.text(&format!(": \"{}\"", as_script(&Word::fixed(text))));
            self.vars.end_repeat();
        }
    }

    fn value(&mut self, name: &str, value: String, most: usize) {
        // `$_` is how text says that something is not known.
        if name == "_" {
            return;
        }
        let values = Rc::make_mut(&mut self.vars).of(name);
        values.retain(|known| *known != value);
        if values.len() >= most {
            // One that is left out may have been anything.
            values[0] = HOLE.to_string();
            values.remove(1);
        }
        values.push(value);
    }

    /// A loop gives a variable these values, one after the other.
    pub fn becomes(&mut self, name: &str, values: Vec<String>) {
        let most = MOST_VALUES + values.len();
        for value in values {
            let number = is_number_value(&value);
            self.numbers.set(name, number);
            if !number {
                self.later.note(&self.vars, name, Some(&value));
            }
            self.value(name, value, most);
        }
    }

    /// A variable has a value that only a run can tell.
    pub fn forget(&mut self, name: &str, number: bool) {
        self.numbers.set(name, number);
        if !number {
            self.later.note(&self.vars, name, None);
        }
        if self.vars.contains_key(name) {
            Rc::make_mut(&mut self.vars).remove(name);
        }
    }

    /// An argument of `read` and its kin: a name, or an option that a name may be joined to.
    fn fills(&mut self, argument: &str) {
        let joined = usize::from(argument.starts_with('-')) * argument.len();
        let ends = (2..joined).filter_map(|at| argument.get(at..));
        for name in [argument].into_iter().chain(ends) {
            let variable = name.split('[').next().unwrap_or_default();
            if name_prefix(variable) != variable || variable.is_empty() {
                continue;
            }
            let runs = meaning(variable).is_some_and(|meaning| meaning != Meaning::Setting);
            if runs {
                self.findings.push(Finding::anything(variable));
            }
            self.forget(variable, false);
        }
    }

    /// Shell builtins that change what later words mean.
    pub fn builtins(&mut self, name: &str, arguments: &[Word]) {
        match name {
            "cd" | "pushd" => {
                let target = arguments.iter().find(|w| !w.text.starts_with('-'));
                self.cwd = match target {
                    None => Some(programs::HOME.into()),
                    Some(w) if w.dynamic && w.text.contains(HOLE) => None,
                    Some(w) => self.resolved(&w.text).map(Arc::from),
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
                        self.assigned(variable, value, &[], &mut finding);
                        self.beside(finding);
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
                arguments.iter().for_each(|word| self.fills(&word.text));
            }
            _ => {}
        }
    }
}
