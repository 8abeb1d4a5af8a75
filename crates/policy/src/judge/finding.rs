//! What was found out about each command, and the decision that follows from it.

use std::sync::Arc;

use crate::programs::{Categories, Category};
use crate::shell::{Word, as_script};

/// What was found out about one simple command.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    pub text: String,
    pub words: Vec<Word>,
    /// How many of the first words are known for certain.
    pub certain: usize,
    /// The bare names that its program may have.
    pub programs: Vec<String>,
    /// The program is not from where the system keeps programs.
    pub foreign: bool,
    /// Something in the request changes what its words mean.
    pub altered: bool,
    pub categories: Categories,
    pub unparseable: bool,
    /// The program's name is known only at run time.
    pub dynamic: bool,
    /// The same for its arguments: it may be any command, or several.
    pub anything: bool,
    /// The places of the host that it reaches for.
    pub places: Vec<String>,
    /// The paths it names, if a rule looks at paths.
    pub touched: Vec<Touched>,
    /// Where it runs, if that is known.
    pub cwd: Option<Arc<str>>,
    pub notes: Vec<String>,
}

/// A path that a command names.
#[derive(Debug)]
pub(crate) struct Touched {
    pub path: String,
    pub glob: bool,
}

impl Finding {
    pub fn about(text: &str) -> Finding {
        Finding {
            text: text.trim().to_owned(),
            ..Finding::default()
        }
    }

    /// Text that may run any command.
    pub fn anything(text: &str) -> Finding {
        let mut finding = Finding::about(&as_script(&Word::fixed(text)));
        finding.is_anything();
        finding
            .note("bash evaluates this text, and the commands in it are known only when they run");
        finding
    }

    /// It runs commands that are known only when they run.
    pub fn is_anything(&mut self) {
        (self.dynamic, self.anything) = (true, true);
        self.add(Category::Unknown);
    }

    pub fn add(&mut self, category: Category) {
        self.categories.insert(category);
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub fn reaches(&mut self, place: String) {
        self.add(Category::HostEscapeRisk);
        self.note(format!("{place} belongs to the host, not to the vault"));
        self.places.push(place);
    }
}
