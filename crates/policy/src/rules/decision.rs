//! The decision on a request, from findings and rules.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::conditions::Fact;
use super::ruleset::{Rules, Verdict};
use crate::judge::{Finding, Network};
use crate::programs::{Categories, Category};
use crate::shell::word_text;

/// A part's text is cut after this many characters.
const LONGEST_PART: usize = 300;

/// What happens with the request, from mildest to strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Allow,
    AllowWithCheckpoint,
    RequireApproval,
    Deny,
}

impl Action {
    pub const ALL: [Action; 4] = [
        Action::Allow,
        Action::AllowWithCheckpoint,
        Action::RequireApproval,
        Action::Deny,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Action::Allow => "allow",
            Action::AllowWithCheckpoint => "allow_with_checkpoint",
            Action::RequireApproval => "require_approval",
            Action::Deny => "deny",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The decision on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub action: Action,
    /// The categories of all parts.
    pub categories: Categories,
    /// The reason, if there is more than the rule's name, and hints for a command that runs.
    pub reason: Option<String>,
    /// The rule that decided, for example `default:mutating`.
    pub rule: String,
    /// Every simple command found, in the order of the text.
    pub parts: Vec<Part>,
    /// The smallest rule that would let the request run, if it may not.
    pub smallest_rule: Option<String>,
}

/// Said of a command that may need the network while there is none.
const OFFLINE: &str = "the network is off: allow what it needs with `avfs network allow HOST` \
     (`registries` for packages), or work offline (docs/dependencies.md)";

impl Decision {
    /// Adds something that is to be said before or after the command.
    pub fn add_hint(&mut self, hint: &str) {
        let said = self.reason.take().filter(|said| !said.is_empty());
        self.reason = Some(
            said.into_iter()
                .chain([hint.to_owned()])
                .collect::<Vec<_>>()
                .join("; "),
        );
    }

    /// Says that the network is off if the command was refused something for it, and takes it back if not.
    pub fn settle_network_hint(&mut self, refused: bool) {
        let said = self.reason.take().unwrap_or_default();
        let others = said
            .split("; ")
            .filter(|it| !it.is_empty() && *it != OFFLINE);
        let all: Vec<&str> = others.chain(refused.then_some(OFFLINE)).collect();
        self.reason = (!all.is_empty()).then(|| all.join("; "));
    }
}

/// The decision on one simple command of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub text: String,
    pub action: Action,
    pub categories: Categories,
    pub rule: String,
}

/// Decides on all findings of a request. The strictest verdict is the decision.
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
        // The text has no command: it may be a comment.
        let verdict = rules.verdict_on_nothing(network);
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
        said.push("it publishes outside the vault".to_owned());
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
        said.push(OFFLINE.to_owned());
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// The narrowest rule that would let the deciding part run, if a default rule stops it.
///
/// There is none if a written rule stops it, because no other rule can weaken that.
fn smallest_rule(finding: &Finding, verdict: &Verdict) -> Option<String> {
    if verdict.action() < Action::RequireApproval {
        return None;
    }
    let fact = verdict.fact()?;
    let known = !finding.altered && !finding.dynamic;
    let certain = finding.certain_words == finding.words.len() && finding.programs.len() == 1;
    let keys = if fact == Fact::Is(Category::HostEscapeRisk) && !finding.host_paths.is_empty() {
        format!("path = {}", list(finding.host_paths.iter().cloned()))
    } else if fact == Fact::Is(Category::HostEscapeRisk) {
        let first = finding.words.iter().take(1).map(word_text);
        match known && certain && !finding.outside_system {
            true => format!("command = {}\ncategory = {:?}", list(first), fact.as_str()),
            false => format!("category = {:?}", fact.as_str()),
        }
    } else if known && certain && !finding.outside_system && !finding.unparseable {
        // A rule names a program without its directory.
        let program = finding.programs.iter().take(1).cloned();
        let arguments = finding.words.iter().skip(1).map(word_text);
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

/// A text in TOML's quotes.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
