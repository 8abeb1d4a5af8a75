//! Rules: listing, explaining and changing them.

use super::DecisionItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Lists the rules in force in a vault.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyList {}

/// The answer to [`PolicyList`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyListing {
    /// The places for rules, system first.
    pub sources: Vec<PolicySourceItem>,
    /// The rules in force; empty if they are invalid.
    pub rules: Vec<RuleItem>,
    /// Why the rules are invalid; then no command runs.
    pub problem: Option<String>,
}

/// A place where rules are written.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicySourceItem {
    /// `system`, `user` or `vault`.
    pub level: String,
    /// A path of the host, or the vault's name.
    pub name: String,
    /// The text; null if there is none.
    pub text: Option<String>,
}

/// A rule in force.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuleItem {
    /// File and line, or `default:` and a name.
    pub rule: String,
    /// `system`, `user`, `vault` or `default`.
    pub level: String,
    /// What it is called, if it has a name.
    pub name: Option<String>,
    /// What it says.
    pub action: String,
    /// What it fits.
    pub when: String,
}

/// Asks for the decision on a command, without running it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyExplain {
    /// The program and its arguments.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        default,
        deserialize_with = "super::words::bounded"
    )]
    pub argv: Vec<String>,
    /// Text for the shell instead of `argv`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shell: Option<String>,
    /// The directory in the vault that the command runs in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
    /// Variables of its environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub env: BTreeMap<String, String>,
    /// `none`, `listed` or `host`. Left out: that of the vault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub network: Option<String>,
}

/// The answer to [`PolicyExplain`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyExplained {
    /// What they say.
    pub decision: DecisionItem,
}

/// Checks the examples in the rules of a vault.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyTest {}

/// The answer to [`PolicyTest`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyTested {
    /// Each example.
    pub examples: Vec<ExampleItem>,
    /// How many the rules contradict.
    pub failed: usize,
}

/// An example in a rule, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExampleItem {
    /// File and line of the rule.
    pub rule: String,
    /// The command.
    pub example: String,
    /// Whether the rule is meant to match it.
    pub wanted: bool,
    /// Whether it does.
    pub matches: bool,
}

/// Checks a text as rules.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyValidate {
    /// `system`, `user` or `vault`.
    pub level: String,
    /// The rules, in TOML.
    pub text: String,
}

/// Replaces the rules of the user or the system, which apply to all vaults.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyWrite {
    /// `user` or `system`.
    pub level: String,
    /// The text that the new one is based on; null: no file. A change in between is a conflict.
    pub seen: Option<String>,
    /// The rules, in TOML.
    pub text: String,
}

/// The answer to [`PolicyWrite`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyWritten {
    /// `user` or `system`.
    pub level: String,
    /// The file.
    pub name: String,
}

/// Replaces a vault's own rules.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySet {
    /// The text that the new one is based on; null: none. A change in between is a conflict.
    pub seen: Option<String>,
    /// Null removes them.
    pub text: Option<String>,
}

/// The answer to [`PolicySet`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyChanged {
    /// The name of the vault.
    pub vault: String,
    /// How many rules the vault has now.
    pub rules: usize,
}
