//! Which program a command runs, and which other ones it may run instead.

use super::finding::Finding;
use super::state::Judge;
use crate::programs::{Category, Stdin, host_path, is_program_directory, names_like, normalise};
use crate::shell::{UNKNOWN, Word};

/// Arguments with several possible values that are judged with each value.
const MOST_DOUBTFUL: usize = 32;

impl Judge {
    /// Judges a command with every program that its first word may name.
    pub fn judge_program(
        &mut self,
        program: &Word,
        arguments: &[Word],
        stdin: &Stdin,
        found: &mut Finding,
    ) {
        if program.dynamic || program.glob {
            found.add(Category::Unknown);
            let open = program.text.contains(UNKNOWN) || program.glob;
            found.dynamic |= open || program.one_of_several;
            found.any_command |= open && program.may_split;
            if found.dynamic {
                found.note("the program's name is known only when it runs");
            }
            if open {
                for name in names_like(&program.text) {
                    self.judge_named(name, arguments, stdin, found);
                }
                return;
            }
        }
        for other in &program.alternatives {
            match other.contains(UNKNOWN) {
                true => found.mark_any_command(),
                false => self.judge_alternative(other, arguments, stdin),
            }
        }
        self.judge_named(&program.text, arguments, stdin, found);
        for (i, word) in arguments.iter().enumerate().take(MOST_DOUBTFUL) {
            if word.one_of_several || !word.alternatives.is_empty() {
                self.judge_each_value(&program.text, arguments, i, stdin, found);
            }
        }
    }

    /// Judges the command with another value of the program's word, which may have arguments in it.
    pub fn judge_alternative(&mut self, other: &str, arguments: &[Word], stdin: &Stdin) {
        let guess = |text| Word {
            dynamic: true,
            ..Word::fixed(text)
        };
        let words = other.split_whitespace().map(guess);
        let words: Vec<Word> = words.chain(arguments.iter().cloned()).collect();
        if !words.is_empty() {
            self.judge_nested(words, stdin.clone());
        }
    }

    /// Judges the command with each possible value of one argument.
    fn judge_each_value(
        &mut self,
        program: &str,
        arguments: &[Word],
        at: usize,
        stdin: &Stdin,
        found: &mut Finding,
    ) {
        let unknown = [UNKNOWN.to_string()];
        let values = match arguments[at].alternatives.as_slice() {
            [] => &unknown,
            alternatives => alternatives,
        };
        for value in values {
            let meant = value.split_whitespace().map(|text| Word {
                text: text.to_owned(),
                alternatives: Vec::new(),
                one_of_several: false,
                ..arguments[at].clone()
            });
            let mut variant = arguments.to_vec();
            variant.splice(at..=at, meant);
            self.judge_named(program, &variant, stdin, found);
        }
    }

    /// The name of a program without its directory, and whether that directory is one of the system or of a
    /// toolchain.
    pub fn program_name<'p>(&self, program: &'p str, found: &mut Finding) -> (&'p str, bool) {
        let Some((directory, name)) = program.rsplit_once('/') else {
            return (program, true);
        };
        if let Some(path) = host_path(program, self.cwd.as_deref(), false) {
            found.touches_host(path);
        }
        (name, is_program_directory(&normalise(directory), directory))
    }
}
