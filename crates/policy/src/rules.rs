//! From categories to an action: the list of rules, and the defaults.

use std::collections::BTreeSet;

use crate::{Action, Category, Network};

/// An ordered list of rules. The strictest matching rule decides; among equals, the first.
#[derive(Debug, Clone)]
pub struct Rules {
    list: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    name: String,
    when: Condition,
    action: Action,
}

/// When a rule speaks.
#[derive(Debug, Clone, Copy)]
enum Condition {
    Category(Category),
    /// The category, while the sandbox has this network.
    CategoryOn(Category, Network),
    /// The text could not be parsed, or is too long or too deep to be judged.
    Unparseable,
    /// The program's name is known only at run time, and the host's network is at hand.
    DynamicOnNetwork,
}

/// What the rules look at: the facts found about one part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub categories: &'a BTreeSet<Category>,
    pub network: Network,
    pub unparseable: bool,
    pub dynamic: bool,
}

impl Rules {
    /// The rules in force when nobody wrote any.
    pub fn defaults() -> Rules {
        use Action::*;
        use Condition::{Category as Is, CategoryOn, DynamicOnNetwork, Unparseable};
        let rule = |name: &str, when, action| Rule {
            name: format!("default:{name}"),
            when,
            action,
        };
        Rules {
            list: vec![
                rule("host_escape_risk", Is(Category::HostEscapeRisk), Deny),
                rule("unparseable", Unparseable, RequireApproval),
                rule("publishing", Is(Category::Publishing), RequireApproval),
                rule(
                    "networked",
                    CategoryOn(Category::Networked, Network::Host),
                    RequireApproval,
                ),
                rule("dynamic_command", DynamicOnNetwork, RequireApproval),
                rule(
                    "destructive",
                    Is(Category::Destructive),
                    AllowWithCheckpoint,
                ),
                rule(
                    "networked_offline",
                    CategoryOn(Category::Networked, Network::None),
                    AllowWithCheckpoint,
                ),
                rule("unknown", Is(Category::Unknown), AllowWithCheckpoint),
                rule("mutating", Is(Category::Mutating), AllowWithCheckpoint),
                rule(
                    "interactive",
                    Is(Category::Interactive),
                    AllowWithCheckpoint,
                ),
                rule("read_only", Is(Category::ReadOnly), Allow),
            ],
        }
    }

    /// The deciding rule's action and name. What no rule speaks about needs approval.
    pub(crate) fn verdict(&self, facts: Facts) -> (Action, String) {
        let mut best: Option<&Rule> = None;
        for rule in self.list.iter().filter(|rule| rule.when.holds(facts)) {
            if best.is_none_or(|b| rule.action > b.action) {
                best = Some(rule);
            }
        }
        match best {
            Some(rule) => (rule.action, rule.name.clone()),
            None => (Action::RequireApproval, "default:no_rule".to_owned()),
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules::defaults()
    }
}

impl Condition {
    fn holds(self, facts: Facts) -> bool {
        match self {
            Condition::Category(category) => facts.categories.contains(&category),
            Condition::CategoryOn(category, network) => {
                facts.network == network && facts.categories.contains(&category)
            }
            Condition::Unparseable => facts.unparseable,
            Condition::DynamicOnNetwork => facts.dynamic && facts.network == Network::Host,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(categories: &[Category], network: Network) -> Action {
        let categories = categories.iter().copied().collect();
        let facts = Facts {
            categories: &categories,
            network,
            unparseable: false,
            dynamic: false,
        };
        Rules::defaults().verdict(facts).0
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
