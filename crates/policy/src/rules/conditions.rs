//! The conditions of a rule, and whether a command fits them.
//!
//! A rule that restricts applies when the command may fit. A rule that relaxes applies only when it certainly fits.
//! So no disguise avoids the first or obtains the second.

use crate::judge::{Finding, NamedPath, Network};
use crate::programs::Category;
use crate::shell::{UNKNOWN, Word, glob_matches};

/// A property of a command that a rule can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    Is(Category),
    /// The text could not be parsed, or is too long or too deep to be judged.
    Unparseable,
    /// The program's name is known only at run time.
    Dynamic,
}

impl Fact {
    /// Whether the command is known to have it.
    pub fn holds(self, finding: &Finding) -> bool {
        match self {
            Fact::Is(category) => finding.categories.contains(category),
            Fact::Unparseable => finding.unparseable,
            Fact::Dynamic => finding.dynamic,
        }
    }

    /// Whether a command that is known only when it runs may have it.
    fn may_hold(self, finding: &Finding) -> bool {
        use Category::{Destructive, Interactive, Mutating, Networked, Publishing};
        let possible = [Destructive, Interactive, Mutating, Networked, Publishing];
        finding.dynamic && possible.iter().any(|category| self == Fact::Is(*category))
    }
}

/// How well a command fits a rule, from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    No,
    Maybe,
    Surely,
}

/// The conditions of one rule. Those that have values must all hold; one of the values is enough for each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    pub facts: Vec<Fact>,
    /// The first words of the command, with the alternatives for each.
    pub command: Vec<Vec<String>>,
    /// Paths that the command names, with all beneath them.
    pub paths: Vec<String>,
    /// The whole text of the command.
    pub texts: Vec<String>,
    /// Working directories, with all beneath them.
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

    /// Whether a rule with these conditions, which certainly fits, replaces the default rule for this fact.
    pub fn answers_for(&self, fact: Fact, finding: &Finding) -> bool {
        let named = match self.facts.is_empty() {
            false => self.facts.contains(&fact),
            true if fact == Fact::Is(Category::HostEscapeRisk) => !self.paths.is_empty(),
            true => !self.command.is_empty() || !self.texts.is_empty(),
        };
        let host = fact == Fact::Is(Category::HostEscapeRisk) && !self.paths.is_empty();
        let covered = |host: &String| self.paths.iter().any(|path| is_beneath(host, path));
        named && (!host || !finding.host_paths.is_empty() && finding.host_paths.iter().all(covered))
    }

    /// Whether they name commands, categories, paths or texts. A rule that relaxes must.
    pub fn has_subject(&self) -> bool {
        !(self.facts.is_empty()
            && self.command.is_empty()
            && self.paths.is_empty()
            && self.texts.is_empty())
    }

    fn paths_fit(&self, finding: &Finding) -> Fit {
        let touches = |path: &String| {
            let of_host = finding.host_paths.iter().any(|host| is_beneath(host, path));
            of_host
                || finding
                    .named_paths
                    .iter()
                    .any(|named| reaches_into(named, path))
        };
        match self.paths.iter().any(touches) {
            true => Fit::Surely,
            false if finding.any_command => Fit::Maybe,
            false => Fit::No,
        }
    }

    fn text_fit(&self, finding: &Finding) -> Fit {
        match self.texts.contains(&finding.text) {
            true if finding.altered || finding.dynamic => Fit::Maybe,
            true => Fit::Surely,
            false if finding.any_command => Fit::Maybe,
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

/// Whether a path that a command names is this path, or beneath it.
fn reaches_into(named: &NamedPath, path: &str) -> bool {
    if !named.glob {
        return is_beneath(&named.path, path);
    }
    let mut parts = named.path.split('/').skip(1);
    path.split('/').skip(1).all(|name| {
        let part = parts.next();
        part.is_some_and(|part| part == name || glob_matches(part, name, UNKNOWN))
    })
}

/// Whether a normalised path is this directory, or beneath it.
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
    if fits_surely(command, finding) {
        return Fit::Surely;
    }
    if finding.any_command {
        return Fit::Maybe;
    }
    let may_be = finding.dynamic || finding.programs.iter().any(named);
    match may_be && !finding.words.is_empty() && may_begin(arguments, given) {
        true => Fit::Maybe,
        false => Fit::No,
    }
}

/// Whether the command certainly begins with these words, and nothing changes what they mean.
fn fits_surely(command: &[Vec<String>], finding: &Finding) -> bool {
    let plain = !finding.outside_system && !finding.altered && !finding.dynamic;
    let [program] = finding.programs.as_slice() else {
        return false;
    };
    plain
        && command.len() <= finding.certain_words
        && command[0].contains(program)
        && command[1..]
            .iter()
            .zip(&finding.words[1..])
            .all(|(alternatives, word)| alternatives.contains(&word.text))
}

/// Whether the arguments may begin with the wanted words. Options between them are skipped.
fn may_begin(wanted: &[Vec<String>], given: &[Word]) -> bool {
    let Some((first, rest)) = wanted.split_first() else {
        return true;
    };
    let open = |word: &Word| word.glob || word.text.contains(UNKNOWN);
    let meant = |word: &Word, meant: &String| glob_matches(&word.text, meant, UNKNOWN);
    let fits = |word: &Word| {
        first.contains(&word.text)
            || first
                .iter()
                .any(|wanted| word.alternatives.contains(wanted))
            || word.one_of_several
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
