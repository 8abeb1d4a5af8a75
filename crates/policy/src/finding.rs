//! What was found out about each command, and the decision that follows from it.

use std::sync::Arc;

use crate::conditions::Fact;
use crate::rules::{Rules, Verdict};
use crate::shell::as_script;
use crate::word::Word;
use crate::{Action, Categories, Category, Decision, Network, Part};

/// A part's text is cut after this many characters.
const LONGEST_PART: usize = 300;

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

    /// Whether it may turn out to be of a category that it is not known to be.
    pub fn may_be(&self, fact: Fact) -> bool {
        use Category::{Destructive, Interactive, Mutating, Networked, Publishing};
        let possible = [Destructive, Interactive, Mutating, Networked, Publishing];
        self.dynamic && possible.iter().any(|category| fact == Fact::Is(*category))
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

    pub fn has(&self, fact: Fact) -> bool {
        match fact {
            Fact::Is(category) => self.categories.contains(category),
            Fact::Unparseable => self.unparseable,
            Fact::Dynamic => self.dynamic,
        }
    }
}

/// The findings under the rules: the strictest decides, the categories add up.
pub(crate) fn conclude(findings: &[Finding], rules: &Rules, network: Network) -> Decision {
    let mut parts = Vec::with_capacity(findings.len());
    let mut categories = Categories::default();
    let mut deciding: Option<(usize, Verdict)> = None;
    for (i, finding) in findings.iter().enumerate() {
        let verdict = rules.verdict(finding, network);
        categories.extend(finding.categories.iter());
        parts.push(Part {
            text: shown(&finding.text),
            action: verdict.action(),
            categories: finding.categories,
            rule: verdict.rule(),
        });
        if deciding
            .as_ref()
            .is_none_or(|(_, d)| verdict.action() > d.action())
        {
            deciding = Some((i, verdict));
        }
    }
    let Some((at, verdict)) = deciding else {
        // Text without any command, such as a comment, does nothing.
        let verdict = rules.about_nothing(network);
        return Decision {
            action: verdict.action(),
            categories: Categories::from_iter([Category::ReadOnly]),
            reason: verdict.reason(),
            rule: verdict.rule(),
            parts,
            smallest_rule: None,
        };
    };
    Decision {
        action: verdict.action(),
        reason: reason(findings, at, &verdict, network),
        smallest_rule: smallest_rule(&findings[at], &verdict),
        rule: verdict.rule(),
        categories,
        parts,
    }
}

fn shown(text: &str) -> String {
    if text.len() <= LONGEST_PART {
        return text.to_owned();
    }
    match text.char_indices().nth(LONGEST_PART) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn reason(findings: &[Finding], at: usize, verdict: &Verdict, network: Network) -> Option<String> {
    let action = verdict.action();
    let mut said: Vec<String> = verdict.reason().into_iter().collect();
    let deciding = &findings[at];
    let has = |category| deciding.categories.contains(category);
    if action == Action::RequireApproval && has(Category::Publishing) {
        said.push("it publishes beyond the vault".to_owned());
    } else if action == Action::RequireApproval && has(Category::Networked) {
        said.push("it uses the network".to_owned());
    }
    let others = findings
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != at)
        .map(|(_, f)| f);
    let strict = action >= Action::RequireApproval;
    for finding in [deciding].into_iter().chain(others.filter(|_| !strict)) {
        said.extend(
            finding
                .notes
                .iter()
                .filter(|n| !said.contains(n))
                .cloned()
                .collect::<Vec<_>>(),
        );
    }
    let networked = findings
        .iter()
        .any(|f| f.categories.contains(Category::Networked));
    if networked && network == Network::None && !strict {
        said.push("the network is off: what needs it will fail".to_owned());
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// The narrowest rule that would let the deciding part run, as far as it is the defaults that stop it.
///
/// A written rule is not outdone by another one: whoever wrote it has to change it.
fn smallest_rule(finding: &Finding, verdict: &Verdict) -> Option<String> {
    if verdict.action() < Action::RequireApproval {
        return None;
    }
    let fact = verdict.fact()?;
    let known = !finding.altered && !finding.dynamic;
    let certain = finding.certain == finding.words.len() && finding.programs.len() == 1;
    let keys = if fact == Fact::Is(Category::HostEscapeRisk) && !finding.places.is_empty() {
        format!("path = {}", list(finding.places.iter().cloned()))
    } else if fact == Fact::Is(Category::HostEscapeRisk) {
        let first = finding.words.iter().take(1).map(as_script);
        match known && certain && !finding.foreign {
            true => format!("command = {}\ncategory = {:?}", list(first), fact.as_str()),
            false => format!("category = {:?}", fact.as_str()),
        }
    } else if known && certain && !finding.foreign && !finding.unparseable {
        // A rule names programs, not where they are kept.
        let program = finding.programs.iter().take(1).cloned();
        let arguments = finding.words.iter().skip(1).map(as_script);
        format!("command = {}", list(program.chain(arguments)))
    } else if known && !finding.text.is_empty() {
        format!("text = {}", quoted(&finding.text))
    } else {
        format!("category = {:?}", fact.as_str())
    };
    Some(format!(
        "[[rule]]\n{keys}\naction = \"allow_with_checkpoint\""
    ))
}

fn list(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.map(|word| quoted(&word)).collect();
    format!("[{}]", words.join(", "))
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
