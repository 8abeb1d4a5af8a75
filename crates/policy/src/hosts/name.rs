//! A host name in its one canonical form.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::HostError;

/// Longer texts are refused before anything looks at them. A name of 253 ASCII characters can come from a longer one in
/// Unicode, but hardly from one four times as long.
const MAX_TEXT: usize = 1024;
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A host name: ASCII, lower case, without the trailing dot, labels of letters, digits, `-` and `_`.
///
/// - International names are mapped by UTS 46 (non-transitional), so `BÜCHER.example` is `xn--bcher-kva.example`.
/// - One trailing dot is stripped. Two are an empty label, and refused.
/// - `_` may be anywhere in a label, since DNS has such names and resolvers accept them. `-` may not begin or end a label.
/// - NUL, control characters, space, `%`, `/`, `@`, `:` and all else are refused.
/// - A name whose last label is a number (decimal, or hexadecimal with `0x`) is refused: `inet_aton` and browsers read
///   such a text as an IPv4 address.
/// - Single labels are names. What they resolve to is checked like all else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    pub fn parse(text: &str) -> Result<HostName, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.len() > MAX_TEXT {
            return Err(HostError::TooLong);
        }
        let ascii = to_ascii(text)?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        if name.is_empty() {
            return Err(HostError::Empty);
        }
        check_labels(name, text)?;
        if name.len() > MAX_NAME {
            return Err(HostError::TooLong);
        }
        if ends_in_number(name) {
            return Err(HostError::Numeric(text.to_owned()));
        }
        Ok(HostName(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name is below `parent`, label by label. A name is not below itself.
    pub fn is_below(&self, parent: &HostName) -> bool {
        let rest = self.0.strip_suffix(parent.as_str());
        rest.is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    }
}

fn to_ascii(text: &str) -> Result<Cow<'_, str>, HostError> {
    let forbidden = |c: char| c.is_ascii() && !is_label_character(c) && c != '.';
    // Before the mapping, so that the message can name the character.
    if let Some(c) = text.chars().find(|c| forbidden(*c)) {
        return Err(HostError::Character(text.to_owned(), c));
    }
    let mapped = Uts46::new().to_ascii(
        text.as_bytes(),
        AsciiDenyList::URL,
        Hyphens::Allow,
        DnsLength::Ignore,
    );
    mapped.map_err(|_| HostError::International(text.to_owned()))
}

fn check_labels(name: &str, text: &str) -> Result<(), HostError> {
    for label in name.split('.') {
        if label.is_empty() {
            return Err(HostError::EmptyLabel(text.to_owned()));
        }
        if label.len() > MAX_LABEL {
            return Err(HostError::TooLong);
        }
        if let Some(c) = label.chars().find(|c| !is_label_character(*c)) {
            return Err(HostError::Character(text.to_owned(), c));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::Hyphen(text.to_owned()));
        }
    }
    Ok(())
}

fn is_label_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Whether programs would read the name as an IPv4 address. `inet_aton` needs every label to be a number; that the last one
/// is, is the wider test of the URL standard.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let digits = last.bytes().all(|byte| byte.is_ascii_digit());
    let hexadecimal = last.strip_prefix("0x");
    digits || hexadecimal.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HostName {
    type Err = HostError;

    fn from_str(text: &str) -> Result<HostName, HostError> {
        HostName::parse(text)
    }
}

impl Serialize for HostName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HostName, D::Error> {
        let text = String::deserialize(deserializer)?;
        HostName::parse(&text).map_err(serde::de::Error::custom)
    }
}
