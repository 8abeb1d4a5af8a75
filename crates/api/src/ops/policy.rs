//! Rules.

use super::envelope;
use super::failure::Failure;
use super::files::vault_path;
use super::{Ask, Reply};
use crate::wire::{
    ExampleItem, PolicyChanged, PolicyExplain, PolicyExplained, PolicyList, PolicyListing,
    PolicySet, PolicySourceItem, PolicyTest, PolicyTested, PolicyValidate, PolicyWrite,
    PolicyWritten, RuleItem,
};
use avfs_runtime::{
    Example, ExecCommand, Level, ListedRule, PolicyNetwork as Network, PolicyQuestion, Select,
};

pub(crate) fn list(ask: &Ask, vault: Select, _: PolicyList) -> Reply<PolicyList> {
    let listing = ask.session.policy_list(vault)?;
    let sources = listing.sources.into_iter().map(|source| PolicySourceItem {
        level: source.level.as_str().into(),
        name: source.name,
        text: source.text,
    });
    let (rules, problem) = match listing.rules {
        Ok(rules) => (rules.into_iter().map(rule).collect(), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Ok(PolicyListing {
        sources: sources.collect(),
        rules,
        problem,
    })
}

fn rule(rule: ListedRule) -> RuleItem {
    let origin = rule.origin.as_ref();
    RuleItem {
        level: origin
            .map_or("default", |origin| origin.level.as_str())
            .into(),
        name: origin.and_then(|origin| origin.name.clone()),
        rule: rule.rule,
        action: rule.action.as_str().into(),
        when: rule.when,
    }
}

pub(crate) fn explain(ask: &Ask, vault: Select, request: PolicyExplain) -> Reply<PolicyExplain> {
    let command = match (request.shell, request.argv.is_empty()) {
        (Some(text), true) => ExecCommand::Shell(text),
        (None, false) => {
            ExecCommand::Argv(request.argv.into_iter().map(String::into_bytes).collect())
        }
        _ => {
            return Err(Failure::invalid("either an argv or shell text is needed")
                .hint("put it after `--`, or give shell text with `--shell`"));
        }
    };
    let env = request.env.into_iter();
    let question = PolicyQuestion {
        command,
        cwd: request.cwd.map(|cwd| vault_path(&cwd, None)).transpose()?,
        env: env.map(|(k, v)| (k.into_bytes(), v.into_bytes())).collect(),
        network: match request.network.as_deref() {
            Some(text) => Some(word("network", Some(text), &NETWORKS)?),
            None => None,
        },
    };
    let decision = ask.session.policy_explain(vault, &question)?;
    Ok(PolicyExplained {
        decision: envelope::decision(&decision),
    })
}

pub(crate) fn write(ask: &Ask, request: PolicyWrite) -> Reply<PolicyWrite> {
    let level = word("level", Some(&request.level), &LEVELS)?;
    let seen = request.seen.as_deref();
    let name = ask.session.policy_write(level, seen, &request.text)?;
    Ok(PolicyWritten {
        level: request.level,
        name,
    })
}

const NETWORKS: [(&str, Network); 3] = [
    ("none", Network::None),
    ("listed", Network::Listed),
    ("host", Network::Host),
];
const LEVELS: [(&str, Level); 3] = [
    ("vault", Level::Vault),
    ("user", Level::User),
    ("system", Level::System),
];

/// The value of a word; the first one by default.
fn word<T: Copy>(what: &str, text: Option<&str>, all: &[(&str, T)]) -> Result<T, Failure> {
    let text = text.unwrap_or(all[0].0);
    let found = all.iter().find(|(name, _)| *name == text);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| Failure::invalid(format!("{text:?} is no {what}")))
}

pub(crate) fn test(ask: &Ask, vault: Select, _: PolicyTest) -> Reply<PolicyTest> {
    Ok(tested(ask.session.policy_test(vault)?))
}

pub(crate) fn validate(ask: &Ask, request: PolicyValidate) -> Reply<PolicyValidate> {
    let level = word("level", Some(&request.level), &LEVELS)?;
    Ok(tested(ask.session.policy_validate(level, request.text)?))
}

fn tested(examples: Vec<Example>) -> PolicyTested {
    let wrong = |example: &&Example| example.wanted != example.matches;
    PolicyTested {
        failed: examples.iter().filter(wrong).count(),
        examples: examples
            .into_iter()
            .map(|example| ExampleItem {
                rule: example.rule,
                example: example.text,
                wanted: example.wanted,
                matches: example.matches,
            })
            .collect(),
    }
}

pub(crate) fn set(ask: &Ask, vault: Select, request: PolicySet) -> Reply<PolicySet> {
    let (seen, text) = (request.seen.as_deref(), request.text.as_deref());
    let vault = ask.session.policy_set(vault, seen, text)?;
    let listing = ask.session.policy_list(Select::Named(vault.clone()))?;
    let own = |rule: &ListedRule| matches!(&rule.origin, Some(o) if o.level == Level::Vault);
    let rules = listing.rules.unwrap_or_default();
    Ok(PolicyChanged {
        vault: vault.to_string(),
        rules: rules.iter().filter(|rule| own(rule)).count(),
    })
}
