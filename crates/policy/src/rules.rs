//! From facts to an action: the written rules, and the defaults behind them.
//!
//! Every written rule that fits speaks, whichever level it comes from; so do the defaults, except for facts that a
//! written rule answers for. The strictest decides. So one file can never weaken what another one says.

use std::collections::BTreeSet;

use crate::conditions::{Conditions, Fact, Fit};
use crate::finding::Finding;
use crate::{Action, Category, Network};

/// The rules in force: those of the files, and the defaults.
#[derive(Debug, Clone)]
pub struct Rules {
    written: Vec<Rule>,
    defaults: Vec<Default>,
    /// Whether any rule looks at the paths that a command touches.
    pub(crate) look_at_paths: bool,
}

/// One rule of a file.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub origin: RuleOrigin,
    pub when: Conditions,
    pub action: Action,
    /// What its author has to say to whoever is stopped by it.
    pub reason: Option<String>,
}

impl Rule {
    /// How well a command must fit for the rule to speak: one that restricts speaks in doubt, too.
    pub fn needed(&self) -> Fit {
        match self.action < Action::RequireApproval {
            true => Fit::Surely,
            false => Fit::Maybe,
        }
    }
}

/// Where a rule is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOrigin {
    pub level: Level,
    pub file: String,
    pub line: usize,
    pub name: Option<String>,
}

/// Who a file of rules speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    System,
    User,
    Vault,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Level::System => "system",
            Level::User => "user",
            Level::Vault => "vault",
        }
    }
}

/// A rule as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRule {
    /// `FILE:LINE`, or `default:NAME`.
    pub rule: String,
    /// None for a default.
    pub origin: Option<RuleOrigin>,
    pub action: Action,
    /// The conditions, in words.
    pub when: String,
}

#[derive(Debug, Clone)]
struct Default {
    name: &'static str,
    fact: Fact,
    network: Option<Network>,
    action: Action,
}

/// What the rules say about one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub action: Action,
    pub rule: String,
    pub reason: Option<String>,
    /// The fact that decided, when it was a default.
    pub fact: Option<Fact>,
}

const DEFAULTS: &[Default] = {
    use Action::*;
    use Category::*;
    const fn rule(name: &'static str, fact: Fact, on: Option<Network>, action: Action) -> Default {
        Default {
            name,
            fact,
            network: on,
            action,
        }
    }
    const HOST: Option<Network> = Some(Network::Host);
    const OFF: Option<Network> = Some(Network::None);
    &[
        rule("host_escape_risk", Fact::Is(HostEscapeRisk), None, Deny),
        rule("unparseable", Fact::Unparseable, None, RequireApproval),
        rule("publishing", Fact::Is(Publishing), None, RequireApproval),
        rule("networked", Fact::Is(Networked), HOST, RequireApproval),
        rule("dynamic_command", Fact::Dynamic, HOST, RequireApproval),
        rule(
            "destructive",
            Fact::Is(Destructive),
            None,
            AllowWithCheckpoint,
        ),
        rule(
            "networked_offline",
            Fact::Is(Networked),
            OFF,
            AllowWithCheckpoint,
        ),
        rule("unknown", Fact::Is(Unknown), None, AllowWithCheckpoint),
        rule("mutating", Fact::Is(Mutating), None, AllowWithCheckpoint),
        rule(
            "interactive",
            Fact::Is(Interactive),
            None,
            AllowWithCheckpoint,
        ),
        rule("read_only", Fact::Is(ReadOnly), None, Allow),
    ]
};

impl Rules {
    /// The rules in force when nobody wrote any.
    pub fn defaults() -> Rules {
        Rules::of(Vec::new())
    }

    pub(crate) fn of(written: Vec<Rule>) -> Rules {
        Rules {
            look_at_paths: written.iter().any(|rule| !rule.when.paths.is_empty()),
            written,
            defaults: DEFAULTS.to_vec(),
        }
    }

    /// Every rule, the written ones first.
    pub fn list(&self) -> Vec<ListedRule> {
        let written = self.written.iter().map(|rule| ListedRule {
            rule: rule.origin.to_string(),
            origin: Some(rule.origin.clone()),
            action: rule.action,
            when: rule.when.to_string(),
        });
        let defaults = self.defaults.iter().map(|rule| ListedRule {
            rule: format!("default:{}", rule.name),
            origin: None,
            action: rule.action,
            when: Conditions {
                facts: vec![rule.fact],
                network: rule.network,
                ..Conditions::default()
            }
            .to_string(),
        });
        written.chain(defaults).collect()
    }

    pub(crate) fn verdict(&self, finding: &Finding, network: Network) -> Verdict {
        let fitting: Vec<(&Rule, Fit)> = self
            .written
            .iter()
            .map(|rule| (rule, rule.when.fit(finding, network)))
            .filter(|(rule, fit)| *fit >= rule.needed())
            .collect();
        let mut best: Option<Verdict> = None;
        for (rule, _) in &fitting {
            if best.as_ref().is_none_or(|b| rule.action > b.action) {
                best = Some(Verdict {
                    action: rule.action,
                    rule: rule.origin.to_string(),
                    reason: rule.reason.clone(),
                    fact: None,
                });
            }
        }
        let surely = fitting.iter().filter(|(_, fit)| *fit == Fit::Surely);
        let mut strictest: Option<&Default> = None;
        for default in &self.defaults {
            let on = default.network.is_none_or(|on| on == network);
            if !on || !finding.has(default.fact) {
                continue;
            }
            let mut surely = surely.clone();
            let excused = surely.any(|(rule, _)| rule.when.excuses(default.fact, finding));
            if !excused && strictest.is_none_or(|s| default.action > s.action) {
                strictest = Some(default);
            }
        }
        if let Some(default) = strictest
            && best.as_ref().is_none_or(|b| default.action > b.action)
        {
            best = Some(Verdict {
                action: default.action,
                rule: format!("default:{}", default.name),
                reason: None,
                fact: Some(default.fact),
            });
        }
        match best {
            Some(verdict) => verdict,
            None => Verdict {
                action: Action::RequireApproval,
                rule: "default:no_rule".to_owned(),
                reason: None,
                fact: None,
            },
        }
    }

    /// What the rules say about doing nothing at all.
    pub(crate) fn about_nothing(&self, network: Network) -> Verdict {
        let finding = Finding {
            categories: BTreeSet::from([Category::ReadOnly]),
            ..Finding::default()
        };
        self.verdict(&finding, network)
    }
}

impl std::default::Default for Rules {
    fn default() -> Self {
        Rules::defaults()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(categories: &[Category], network: Network) -> Action {
        let finding = Finding {
            categories: categories.iter().copied().collect(),
            ..Finding::default()
        };
        Rules::defaults().verdict(&finding, network).action
    }

    #[test]
    fn the_strictest_matching_rule_decides() {
        let both = [Category::ReadOnly, Category::HostEscapeRisk];
        assert_eq!(verdict(&both, Network::None), Action::Deny);
        assert_eq!(
            verdict(&[Category::Networked], Network::None),
            Action::AllowWithCheckpoint
        );
        assert_eq!(
            verdict(&[Category::Networked], Network::Host),
            Action::RequireApproval
        );
    }

    #[test]
    fn what_no_rule_names_is_never_allowed() {
        assert_eq!(verdict(&[], Network::None), Action::RequireApproval);
    }
}
