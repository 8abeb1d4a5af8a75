//! The rules in force: the written rules and the defaults.
//!
//! Every written rule that fits applies, at whichever level it is written. The defaults apply, too, except for facts
//! that a written rule answers for. The strictest rule decides. So no file can weaken another one.

use std::collections::HashMap;

use super::conditions::{Conditions, Fact, Fit};
use super::decision::Action;
use crate::judge::{Finding, Network};
use crate::programs::{Categories, Category};

/// The rules in force: those of the files, and the defaults.
#[derive(Debug, Clone)]
pub struct Rules {
    written: Vec<Rule>,
    /// The written rules by the program that they name. A command is compared only with those and with
    /// `of_any_program`.
    by_program: HashMap<String, Vec<usize>>,
    of_any_program: Vec<usize>,
    defaults: Vec<DefaultRule>,
    /// Whether any rule has a condition on paths.
    pub(crate) look_at_paths: bool,
}

/// One rule of a file.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub origin: RuleOrigin,
    pub when: Conditions,
    pub action: Action,
    /// The author's reason, which is shown when the rule decides.
    pub reason: Option<String>,
}

impl Rule {
    /// How well a command must fit for the rule to apply. A rule that restricts also applies in doubt.
    pub fn needed_fit(&self) -> Fit {
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

/// Whose rules a file has.
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
    /// `None` for a default rule.
    pub origin: Option<RuleOrigin>,
    pub action: Action,
    /// The conditions as text.
    pub when: String,
}

#[derive(Debug, Clone)]
pub(crate) struct DefaultRule {
    name: &'static str,
    fact: Fact,
    network: Option<Network>,
    action: Action,
}

/// The rule that decides about one command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict<'r> {
    Written(&'r Rule),
    Default(&'r DefaultRule),
    /// No rule applies.
    None,
}

impl Verdict<'_> {
    pub fn action(&self) -> Action {
        match self {
            Verdict::Written(rule) => rule.action,
            Verdict::Default(rule) => rule.action,
            Verdict::None => Action::RequireApproval,
        }
    }

    pub fn rule(&self) -> String {
        match self {
            Verdict::Written(rule) => rule.origin.to_string(),
            Verdict::Default(rule) => rule.name.to_owned(),
            Verdict::None => "default:no_rule".to_owned(),
        }
    }

    pub fn reason(&self) -> Option<String> {
        match self {
            Verdict::Written(rule) => rule.reason.clone(),
            Verdict::Default(_) | Verdict::None => None,
        }
    }

    /// The fact of the default rule, if one decides.
    pub fn fact(&self) -> Option<Fact> {
        match self {
            Verdict::Default(rule) => Some(rule.fact),
            Verdict::Written(_) | Verdict::None => None,
        }
    }
}

const DEFAULTS: &[DefaultRule] = {
    use Action::*;
    use Category::*;
    const fn rule(
        name: &'static str,
        fact: Fact,
        on: Option<Network>,
        action: Action,
    ) -> DefaultRule {
        DefaultRule {
            name,
            fact,
            network: on,
            action,
        }
    }
    const HOST: Option<Network> = Some(Network::Host);
    const LISTED: Option<Network> = Some(Network::Listed);
    const OFF: Option<Network> = Some(Network::None);
    &[
        rule(
            "default:host_escape_risk",
            Fact::Is(HostEscapeRisk),
            None,
            Deny,
        ),
        rule(
            "default:unparseable",
            Fact::Unparseable,
            None,
            RequireApproval,
        ),
        rule(
            "default:publishing",
            Fact::Is(Publishing),
            None,
            RequireApproval,
        ),
        rule(
            "default:networked",
            Fact::Is(Networked),
            HOST,
            RequireApproval,
        ),
        rule(
            "default:dynamic_command",
            Fact::Dynamic,
            HOST,
            RequireApproval,
        ),
        // It may be a command that publishes, and what it would publish to may be on the list.
        rule(
            "default:dynamic_command_listed",
            Fact::Dynamic,
            LISTED,
            RequireApproval,
        ),
        rule(
            "default:destructive",
            Fact::Is(Destructive),
            None,
            AllowWithCheckpoint,
        ),
        rule(
            "default:networked_listed",
            Fact::Is(Networked),
            LISTED,
            AllowWithCheckpoint,
        ),
        rule(
            "default:networked_offline",
            Fact::Is(Networked),
            OFF,
            AllowWithCheckpoint,
        ),
        rule(
            "default:unknown",
            Fact::Is(Unknown),
            None,
            AllowWithCheckpoint,
        ),
        rule(
            "default:mutating",
            Fact::Is(Mutating),
            None,
            AllowWithCheckpoint,
        ),
        rule(
            "default:interactive",
            Fact::Is(Interactive),
            None,
            AllowWithCheckpoint,
        ),
        rule("default:read_only", Fact::Is(ReadOnly), None, Allow),
    ]
};

impl Rules {
    /// The rules without any file.
    pub fn defaults() -> Rules {
        Rules::of(Vec::new())
    }

    pub(crate) fn of(written: Vec<Rule>) -> Rules {
        let mut by_program: HashMap<String, Vec<usize>> = HashMap::new();
        let mut of_any_program = Vec::new();
        for (i, rule) in written.iter().enumerate() {
            match rule.when.command.first() {
                Some(names) => names
                    .iter()
                    .for_each(|name| by_program.entry(name.clone()).or_default().push(i)),
                None => of_any_program.push(i),
            }
        }
        Rules {
            look_at_paths: written.iter().any(|rule| !rule.when.paths.is_empty()),
            written,
            by_program,
            of_any_program,
            defaults: DEFAULTS.to_vec(),
        }
    }

    /// All rules, the written ones first.
    pub fn list(&self) -> Vec<ListedRule> {
        let written = self.written.iter().map(|rule| ListedRule {
            rule: rule.origin.to_string(),
            origin: Some(rule.origin.clone()),
            action: rule.action,
            when: rule.when.to_string(),
        });
        let defaults = self.defaults.iter().map(|rule| ListedRule {
            rule: rule.name.to_owned(),
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

    pub(crate) fn verdict(&self, finding: &Finding, network: Network) -> Verdict<'_> {
        let rules_that_fit = self.rules_that_fit(finding, network);
        let mut best = Verdict::None;
        let mut spoken = false;
        for (rule, _) in &rules_that_fit {
            if !spoken || rule.action > best.action() {
                (best, spoken) = (Verdict::Written(rule), true);
            }
        }
        let fits_surely = rules_that_fit.iter().filter(|(_, fit)| *fit == Fit::Surely);
        for default in &self.defaults {
            let on = default.network.is_none_or(|on| on == network);
            if !on || !default.fact.holds(finding) || spoken && default.action <= best.action() {
                continue;
            }
            let mut fits_surely = fits_surely.clone();
            if !fits_surely.any(|(rule, _)| rule.when.answers_for(default.fact, finding)) {
                (best, spoken) = (Verdict::Default(default), true);
            }
        }
        best
    }

    /// The written rules that apply to this command, in their order.
    fn rules_that_fit(&self, finding: &Finding, network: Network) -> Vec<(&Rule, Fit)> {
        let mut candidates: Vec<usize> = match finding.dynamic {
            true => (0..self.written.len()).collect(),
            false => {
                let named = finding.programs.iter();
                let named = named.filter_map(|program| self.by_program.get(program));
                named
                    .chain([&self.of_any_program])
                    .flatten()
                    .copied()
                    .collect()
            }
        };
        candidates.sort_unstable();
        candidates.dedup();
        candidates
            .into_iter()
            .map(|i| (&self.written[i], self.written[i].when.fit(finding, network)))
            .filter(|(rule, fit)| *fit >= rule.needed_fit())
            .collect()
    }

    /// The verdict on text without any command.
    pub(crate) fn verdict_on_nothing(&self, network: Network) -> Verdict<'_> {
        let finding = Finding {
            categories: Categories::from_iter([Category::ReadOnly]),
            ..Finding::default()
        };
        self.verdict(&finding, network)
    }
}

impl Default for Rules {
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
        Rules::defaults().verdict(&finding, network).action()
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
            verdict(&[Category::Networked], Network::Listed),
            Action::AllowWithCheckpoint
        );
        assert_eq!(
            verdict(
                &[Category::Publishing, Category::Networked],
                Network::Listed
            ),
            Action::RequireApproval
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
