//! Which program a command runs, and which other ones it may run instead.

use super::finding::Finding;
use super::state::Judge;
use crate::programs::{
    Category, Stdin, forbidden_path, is_program_directory, names_like, normalise,
};
use crate::shell::{HOLE, Word};

/// Arguments of several values that are tried with each of them.
const MOST_DOUBTFUL: usize = 32;

impl Judge {
    pub fn program(
        &mut self,
        program: &Word,
        arguments: &[Word],
        stdin: &Stdin,
        found: &mut Finding,
    ) {
        if program.dynamic || program.glob {
            found.add(Category::Unknown);
            let open = program.text.contains(HOLE) || program.glob;
            found.dynamic |= open || program.unsure;
            found.anything |= open && program.spreads;
            if found.dynamic {
                found.note("the program's name is known only when it runs");
            }
            if open {
                for name in names_like(&program.text) {
                    self.named(name, arguments, stdin, found);
                }
                return;
            }
        }
        for other in &program.others {
            match other.contains(HOLE) {
                true => found.is_anything(),
                false => self.instead(other, arguments, stdin),
            }
        }
        self.named(&program.text, arguments, stdin, found);
        for (i, word) in arguments.iter().enumerate().take(MOST_DOUBTFUL) {
            if word.unsure || !word.others.is_empty() {
                self.doubtful(&program.text, arguments, i, stdin, found);
            }
        }
    }

    /// Another value that the program's word may have; it may bring arguments along.
    pub fn instead(&mut self, other: &str, arguments: &[Word], stdin: &Stdin) {
        let guess = |text| Word {
            dynamic: true,
            ..Word::fixed(text)
        };
        let words = other.split_whitespace().map(guess);
        let words: Vec<Word> = words.chain(arguments.iter().cloned()).collect();
        if !words.is_empty() {
            self.nested(words, stdin.clone());
        }
    }

    /// An argument of several possible values: the command is what it is with any of them.
    fn doubtful(
        &mut self,
        program: &str,
        arguments: &[Word],
        at: usize,
        stdin: &Stdin,
        found: &mut Finding,
    ) {
        let unknown = [HOLE.to_string()];
        let values = match arguments[at].others.as_slice() {
            [] => &unknown,
            others => others,
        };
        for value in values {
            let meant = value.split_whitespace().map(|text| Word {
                text: text.to_owned(),
                others: Vec::new(),
                unsure: false,
                ..arguments[at].clone()
            });
            let mut variant = arguments.to_vec();
            variant.splice(at..=at, meant);
            self.named(program, &variant, stdin, found);
        }
    }

    /// The bare name of a program, and whether it is found where the system keeps programs.
    pub fn program_name<'p>(&self, program: &'p str, found: &mut Finding) -> (&'p str, bool) {
        let Some((directory, name)) = program.rsplit_once('/') else {
            return (program, true);
        };
        if let Some(place) = forbidden_path(program, self.cwd.as_deref(), false) {
            found.reaches(place);
        }
        (name, is_program_directory(&normalise(directory), directory))
    }
}
