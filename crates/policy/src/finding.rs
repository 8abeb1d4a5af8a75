//! What was found out about each command, and the decision that follows from it.

use std::collections::BTreeSet;

use crate::rules::{Facts, Rules};
use crate::{Action, Category, Decision, Network, Part};

/// What was found out about one simple command.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    pub text: String,
    pub words: Vec<String>,
    pub categories: BTreeSet<Category>,
    pub unparseable: bool,
    /// The program's name is known only at run time.
    pub dynamic: bool,
    /// The place of the host that it reaches for.
    pub place: Option<String>,
    pub notes: Vec<String>,
}

impl Finding {
    pub fn add(&mut self, category: Category) {
        self.categories.insert(category);
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub fn reaches(&mut self, place: String) {
        self.add(Category::HostEscapeRisk);
        self.note(format!("{place} belongs to the host, not to the vault"));
        self.place = Some(place);
    }
}

/// The findings under the rules: the strictest decides, the categories add up.
pub(crate) fn conclude(findings: &[Finding], rules: &Rules, network: Network) -> Decision {
    let mut parts = Vec::with_capacity(findings.len());
    let mut categories = BTreeSet::new();
    let mut deciding: Option<usize> = None;
    for (i, finding) in findings.iter().enumerate() {
        let (action, rule) = rules.verdict(Facts {
            categories: &finding.categories,
            network,
            unparseable: finding.unparseable,
            dynamic: finding.dynamic,
        });
        categories.extend(finding.categories.iter().copied());
        parts.push(Part {
            text: finding.text.clone(),
            action,
            categories: finding.categories.clone(),
            rule,
        });
        if deciding.is_none_or(|d| action > parts[d].action) {
            deciding = Some(i);
        }
    }
    let Some(deciding) = deciding else {
        // Text without any command, such as a comment, does nothing.
        let categories = BTreeSet::from([Category::ReadOnly]);
        let facts = Facts {
            categories: &categories,
            network,
            unparseable: false,
            dynamic: false,
        };
        let (action, rule) = rules.verdict(facts);
        return Decision {
            action,
            categories,
            reason: None,
            rule,
            parts,
            smallest_rule: None,
        };
    };
    let Part { action, rule, .. } = parts[deciding].clone();
    Decision {
        action,
        reason: reason(findings, deciding, action, network),
        rule,
        categories,
        parts,
        smallest_rule: smallest_rule(&findings[deciding], action),
    }
}

fn reason(findings: &[Finding], at: usize, action: Action, network: Network) -> Option<String> {
    let mut said: Vec<String> = Vec::new();
    let deciding = &findings[at];
    let has = |category| deciding.categories.contains(&category);
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
        .any(|f| f.categories.contains(&Category::Networked));
    if networked && network == Network::None && !strict {
        said.push("the network is off: what needs it will fail".to_owned());
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// The narrowest rule that would let the deciding part run.
fn smallest_rule(finding: &Finding, action: Action) -> Option<String> {
    if action < Action::RequireApproval {
        return None;
    }
    let key = if let Some(place) = &finding.place {
        format!("path = {place:?}")
    } else if finding.unparseable || finding.words.is_empty() {
        format!("text = {:?}", finding.text)
    } else {
        let named = finding.words.iter().take(2).filter(|w| !w.starts_with('-'));
        format!("command = {:?}", named.collect::<Vec<_>>())
    };
    Some(format!(
        "[[rule]]\n{key}\naction = \"allow_with_checkpoint\""
    ))
}
