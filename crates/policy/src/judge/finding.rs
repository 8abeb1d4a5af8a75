//! What is found out about one command.

use std::sync::Arc;

use crate::programs::{Categories, Category};
use crate::shell::{Word, word_text};

/// What is known about one simple command, or about something beside the commands.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    pub text: String,
    pub words: Vec<Word>,
    /// How many of the first words are certain: neither unknown, nor patterns, nor one of several values.
    pub certain_words: usize,
    /// The names that its program may have, without directories.
    pub programs: Vec<String>,
    /// The program is not in a directory of the system or of a toolchain.
    pub outside_system: bool,
    /// Something in the request changes what its words mean.
    pub altered: bool,
    pub categories: Categories,
    /// What it also is, unless its words certainly mean the dry run that they say.
    pub without_dry_run: Categories,
    pub unparseable: bool,
    /// The program's name is known only at run time.
    pub dynamic: bool,
    /// Its arguments are known only at run time, too: it may be any command, or several.
    pub any_command: bool,
    /// The paths of the host that it names.
    pub host_paths: Vec<String>,
    /// All paths that it names, if a rule has a condition on paths.
    pub named_paths: Vec<NamedPath>,
    /// Its working directory, if that is known.
    pub cwd: Option<Arc<str>>,
    pub notes: Vec<String>,
}

/// A path that a command names.
#[derive(Debug)]
pub(crate) struct NamedPath {
    pub path: String,
    pub glob: bool,
}

impl Finding {
    /// A dry run counts only where the command certainly is what its words say.
    pub fn settle_dry_run(&mut self) {
        let real = std::mem::take(&mut self.without_dry_run);
        if self.altered || self.dynamic || self.any_command || self.outside_system {
            self.categories.extend(real.iter());
        }
    }

    pub fn about(text: &str) -> Finding {
        Finding {
            text: text.trim().to_owned(),
            ..Finding::default()
        }
    }

    /// A finding about text that may run any command.
    pub fn any_command(text: &str) -> Finding {
        let mut finding = Finding::about(&word_text(&Word::fixed(text)));
        finding.mark_any_command();
        finding
            .note("bash evaluates this text, and the commands in it are known only when they run");
        finding
    }

    /// Records that it runs commands that are known only when they run.
    pub fn mark_any_command(&mut self) {
        (self.dynamic, self.any_command) = (true, true);
        self.add(Category::Unknown);
    }

    pub fn add(&mut self, category: Category) {
        self.categories.insert(category);
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub fn touches_host(&mut self, path: String) {
        self.add(Category::HostEscapeRisk);
        self.note(format!("{path} belongs to the host, not to the vault"));
        self.host_paths.push(path);
    }
}
