//! Rules: listing, explaining and changing them.

use super::DecisionItem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyList {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyListing {
    /// The places for rules, system first.
    pub sources: Vec<PolicySourceItem>,
    /// The rules in force; empty if they are invalid.
    pub rules: Vec<RuleItem>,
    /// Why the rules are invalid; then no command runs.
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicySourceItem {
    /// `system`, `user` or `vault`.
    pub level: String,
    /// A path of the host, or the vault's name.
    pub name: String,
    /// The text; null if there is none.
    pub text: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleItem {
    /// File and line, or `default:` and a name.
    pub rule: String,
    /// `system`, `user`, `vault` or `default`.
    pub level: String,
    pub name: Option<String>,
    pub action: String,
    pub when: String,
}

/// Asks for the decision on a command, without running it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyExplain {
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        default,
        deserialize_with = "super::words::bounded"
    )]
    pub argv: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shell: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub env: BTreeMap<String, String>,
    /// `none` or `host`. Default: `none`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub network: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyExplained {
    pub decision: DecisionItem,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyTest {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyTested {
    pub examples: Vec<ExampleItem>,
    pub failed: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExampleItem {
    /// File and line of the rule.
    pub rule: String,
    pub example: String,
    /// Whether the rule is meant to match it.
    pub wanted: bool,
    pub matches: bool,
}

/// Checks a text as rules.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyValidate {
    pub level: String,
    pub text: String,
}

/// Replaces the rules of the user or the system, which apply to all vaults.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyWrite {
    /// `user` or `system`.
    pub level: String,
    /// The text that the new one is based on; null: no file. A change in between is a conflict.
    pub seen: Option<String>,
    pub text: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyWritten {
    pub level: String,
    /// The file.
    pub name: String,
}

/// Replaces a vault's own rules.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySet {
    /// The text that the new one is based on; null: none. A change in between is a conflict.
    pub seen: Option<String>,
    /// Null removes them.
    pub text: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyChanged {
    pub vault: String,
    /// How many rules the vault has now.
    pub rules: usize,
}
