//! Secrets: values that requests of commands get on their way out. No answer has a value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// A value on its way to the daemon. It is not shown, and does not stay in memory.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretText(#[schemars(with = "String", extend("writeOnly" = true))] Zeroizing<String>);

impl SecretText {
    /// The text itself, which whoever takes it keeps to himself.
    pub(crate) fn into_inner(self) -> Zeroizing<String> {
        self.0
    }
}

impl From<Zeroizing<String>> for SecretText {
    fn from(text: Zeroizing<String>) -> SecretText {
        SecretText(text)
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> SecretText {
        SecretText(Zeroizing::new(text))
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// Sets a secret, or replaces it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretSet {
    /// The name of a variable; inside, that variable has a placeholder.
    pub name: String,
    /// 8 to 4,096 visible ASCII characters.
    pub value: SecretText,
    /// The hosts that it is for, as `example.com` or `*.example.com`.
    pub hosts: Vec<String>,
    /// The header, with `{}` for the value; `Authorization: Bearer {}` when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub header: Option<String>,
    /// In place of a header: the value is the password of this user, as git hosts want it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub basic: Option<String>,
    /// Whether it is also put into requests over plain HTTP.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub allow_plain_http: bool,
    /// Patterns of the names of vaults that it is for; all vaults when empty.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub vaults: Vec<String>,
}

/// Lists the secrets, without their values.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretList {}

/// Removes a secret.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRemove {
    /// The name of the secret.
    pub name: String,
}

/// A secret without its value.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SecretItem {
    /// Its name.
    pub name: String,
    /// The hosts that it is for.
    pub hosts: Vec<String>,
    /// The hosts whose TLS is opened for it.
    pub opened: Vec<String>,
    /// The header, with `{}` for the value.
    pub header: String,
    /// The user, if the value is a password.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub basic: Option<String>,
    /// Whether it is also put into requests over plain HTTP.
    pub allow_plain_http: bool,
    /// Patterns of the names of vaults that it is for; all vaults when empty.
    pub vaults: Vec<String>,
    /// What the variable of its name holds inside.
    pub placeholder: String,
    /// When its value was set.
    pub set_at: String,
    /// Whether this machine has the key of its value.
    pub usable: bool,
}

/// The secrets of a home.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SecretListing {
    /// In the order of their names.
    pub secrets: Vec<SecretItem>,
}
