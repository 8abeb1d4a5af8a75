//! When a rule speaks: its conditions held against one command.
//!
//! A rule that restricts speaks as soon as the command may be meant; one that relaxes only when the command surely is,
//! so that no disguise turns the one off or the other on.

use crate::judge::{Finding, Network, Touched};
use crate::programs::Category;
use crate::shell::{HOLE, Word, glob_matches};

/// Something that a rule can be about: what a command is, or that it cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    Is(Category),
    /// The text could not be parsed, or is too long or too deep to be judged.
    Unparseable,
    /// The program's name is known only at run time.
    Dynamic,
}

impl Fact {
    /// Whether it is known to hold for the command.
    pub fn holds(self, finding: &Finding) -> bool {
        match self {
            Fact::Is(category) => finding.categories.contains(category),
            Fact::Unparseable => finding.unparseable,
            Fact::Dynamic => finding.dynamic,
        }
    }

    /// Whether it may turn out to hold for a command that is known only when it runs.
    fn may_hold(self, finding: &Finding) -> bool {
        use Category::{Destructive, Interactive, Mutating, Networked, Publishing};
        let possible = [Destructive, Interactive, Mutating, Networked, Publishing];
        finding.dynamic && possible.iter().any(|category| self == Fact::Is(*category))
    }
}

/// How well a command fits a rule; a later one is the better fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    No,
    Maybe,
    Surely,
}

/// All that are given must hold; within one, any of its values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    pub facts: Vec<Fact>,
    /// The first words of the command, each with its alternatives.
    pub command: Vec<Vec<String>>,
    /// Paths that it touches, with all beneath them.
    pub paths: Vec<String>,
    /// The whole command, exactly.
    pub texts: Vec<String>,
    /// Directories it runs in, with all beneath them.
    pub cwd: Vec<String>,
    pub network: Option<Network>,
}

impl Conditions {
    pub fn fit(&self, finding: &Finding, network: Network) -> Fit {
        if self.network.is_some_and(|wanted| wanted != network) {
            return Fit::No;
        }
        let mut fit = Fit::Surely;
        if !self.facts.is_empty() && !self.facts.iter().any(|fact| fact.holds(finding)) {
            if !self.facts.iter().any(|fact| fact.may_hold(finding)) {
                return Fit::No;
            }
            fit = Fit::Maybe;
        }
        if !self.command.is_empty() {
            fit = fit.min(command_fit(&self.command, finding));
        }
        if !self.paths.is_empty() {
            fit = fit.min(self.paths_fit(finding));
        }
        if !self.texts.is_empty() {
            fit = fit.min(self.text_fit(finding));
        }
        if !self.cwd.is_empty() {
            fit = fit.min(self.cwd_fit(finding));
        }
        fit
    }

    /// Whether a rule that surely fits answers for this fact, so that the defaults need not.
    pub fn excuses(&self, fact: Fact, finding: &Finding) -> bool {
        let named = match self.facts.is_empty() {
            false => self.facts.contains(&fact),
            true if fact == Fact::Is(Category::HostEscapeRisk) => !self.paths.is_empty(),
            true => !self.command.is_empty() || !self.texts.is_empty(),
        };
        let host = fact == Fact::Is(Category::HostEscapeRisk) && !self.paths.is_empty();
        let covered = |place: &String| self.paths.iter().any(|path| is_beneath(place, path));
        named && (!host || !finding.places.is_empty() && finding.places.iter().all(covered))
    }

    /// Whether it says what it is about, as a rule that relaxes must.
    pub fn names_something(&self) -> bool {
        !(self.facts.is_empty()
            && self.command.is_empty()
            && self.paths.is_empty()
            && self.texts.is_empty())
    }

    fn paths_fit(&self, finding: &Finding) -> Fit {
        let touches = |path: &String| {
            let place = finding.places.iter().any(|place| is_beneath(place, path));
            place
                || finding
                    .touched
                    .iter()
                    .any(|touched| reaches_into(touched, path))
        };
        match self.paths.iter().any(touches) {
            true => Fit::Surely,
            false if finding.anything => Fit::Maybe,
            false => Fit::No,
        }
    }

    fn text_fit(&self, finding: &Finding) -> Fit {
        match self.texts.contains(&finding.text) {
            true if finding.altered || finding.dynamic => Fit::Maybe,
            true => Fit::Surely,
            false if finding.anything => Fit::Maybe,
            false => Fit::No,
        }
    }

    fn cwd_fit(&self, finding: &Finding) -> Fit {
        match &finding.cwd {
            None => Fit::Maybe,
            Some(cwd) if self.cwd.iter().any(|dir| is_beneath(cwd, dir)) => Fit::Surely,
            Some(_) => Fit::No,
        }
    }
}

/// Whether a path that a command names is this one, or something in it.
fn reaches_into(touched: &Touched, path: &str) -> bool {
    if !touched.glob {
        return is_beneath(&touched.path, path);
    }
    let mut parts = touched.path.split('/').skip(1);
    path.split('/').skip(1).all(|name| {
        let part = parts.next();
        part.is_some_and(|part| part == name || glob_matches(part, name, HOLE))
    })
}

/// Whether a normalised path is this directory, or something in it.
fn is_beneath(path: &str, dir: &str) -> bool {
    let dir = dir.trim_end_matches('/');
    path.strip_prefix(dir)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn command_fit(command: &[Vec<String>], finding: &Finding) -> Fit {
    let Some((program, arguments)) = command.split_first() else {
        return Fit::No;
    };
    let given = finding.words.get(1..).unwrap_or_default();
    let named = |name: &String| program.contains(name);
    if surely(command, finding) {
        return Fit::Surely;
    }
    if finding.anything {
        return Fit::Maybe;
    }
    let may_be = finding.dynamic || finding.programs.iter().any(named);
    match may_be && !finding.words.is_empty() && may_begin(arguments, given) {
        true => Fit::Maybe,
        false => Fit::No,
    }
}

/// The words are these, for certain, and nothing changed what they mean.
fn surely(command: &[Vec<String>], finding: &Finding) -> bool {
    let plain = !finding.foreign && !finding.altered && !finding.dynamic;
    let [program] = finding.programs.as_slice() else {
        return false;
    };
    plain
        && command.len() <= finding.certain
        && command[0].contains(program)
        && command[1..]
            .iter()
            .zip(&finding.words[1..])
            .all(|(alternatives, word)| alternatives.contains(&word.text))
}

/// Whether the arguments may begin with the wanted words, options between them left out.
fn may_begin(wanted: &[Vec<String>], given: &[Word]) -> bool {
    let Some((first, rest)) = wanted.split_first() else {
        return true;
    };
    let open = |word: &Word| word.glob || word.text.contains(HOLE);
    let meant = |word: &Word, meant: &String| glob_matches(&word.text, meant, HOLE);
    let fits = |word: &Word| {
        first.contains(&word.text)
            || first.iter().any(|wanted| word.others.contains(wanted))
            || word.unsure
            || open(word) && first.iter().any(|wanted| meant(word, wanted))
    };
    if first.iter().any(|word| word.starts_with('-')) {
        return given.iter().any(fits) && may_begin(rest, given);
    }
    let Some((word, after)) = given.split_first() else {
        return false;
    };
    if fits(word) && may_begin(rest, after) {
        return true;
    }
    match word.text.as_bytes().first() {
        Some(b'-') => {
            may_begin(wanted, after) || may_begin(wanted, after.get(1..).unwrap_or_default())
        }
        Some(b'+') => may_begin(wanted, after),
        _ => false,
    }
}
