//! What a secret is: a name, a value, and where the value goes.

use std::fmt;
use std::str::FromStr;

use avfs_policy::{HostList, HostPattern, HostRule, Ports};
use base64ct::{Base64, Encoding};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::pattern::VaultPattern;
use crate::{Error, Result};

/// The longest name.
const NAME_MAX: usize = 64;
/// A shorter value would be found, and masked, in texts that have nothing to do with it.
const VALUE_MIN: usize = 8;
const VALUE_MAX: usize = 4096;
/// Hosts, and patterns for vaults, of one secret.
const PLACES_MAX: usize = 16;
/// Header text around a value.
const HEADER_MAX: usize = 256;
/// The only port on which TLS is opened.
const TLS: u16 = 443;
/// What stands for the value in a header.
const HOLE: &str = "{}";
const BEARER: &str = "Authorization: Bearer {}";
const AUTHORIZATION: &str = "Authorization";

/// A name as variables have it: inside, a variable of this name holds the placeholder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(String);

impl SecretName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What programs inside have in place of the value.
    pub fn placeholder(&self) -> String {
        format!("avfs-secret-{}", self.0)
    }
}

impl FromStr for SecretName {
    type Err = Error;

    fn from_str(text: &str) -> Result<SecretName> {
        let word = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '_';
        let begins = text.starts_with(|symbol: char| !symbol.is_ascii_digit());
        match begins && text.len() <= NAME_MAX && text.chars().all(word) {
            true => Ok(SecretName(text.to_owned())),
            false => Err(invalid(format!(
                "its name {text:?} is not that of a variable, such as API_TOKEN"
            ))),
        }
    }
}

impl TryFrom<String> for SecretName {
    type Error = Error;

    fn try_from(text: String) -> Result<SecretName> {
        text.parse()
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> String {
        name.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value, which is not shown and does not stay in memory.
#[derive(Clone)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    pub fn new(text: Zeroizing<String>) -> Result<SecretValue> {
        let length = text.len();
        if !(VALUE_MIN..=VALUE_MAX).contains(&length) {
            let reason = format!("its value has {length} bytes, not {VALUE_MIN} to {VALUE_MAX}");
            return Err(invalid(reason));
        }
        let visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !visible || text.trim() != text.as_str() {
            return Err(invalid(
                "its value has line ends, blanks around it, or symbols that a header cannot have",
            ));
        }
        Ok(SecretValue(text))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

/// How a header is made of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretForm {
    /// `NAME: BEFORE{}AFTER`, where `{}` is the value.
    Header {
        name: String,
        before: String,
        after: String,
    },
    /// The value is the password of this user, as git hosts want it.
    Basic { user: String },
}

impl SecretForm {
    /// From the text of a header, or from the name of a user.
    pub fn new(header: Option<&str>, user: Option<&str>) -> Result<SecretForm> {
        match (header, user) {
            (Some(_), Some(_)) => Err(invalid("it has a header or a user, not both")),
            (None, Some(user)) => SecretForm::basic(user),
            (header, None) => SecretForm::header_of(header.unwrap_or(BEARER)),
        }
    }

    fn basic(user: &str) -> Result<SecretForm> {
        let fits = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b':';
        match user.len() <= HEADER_MAX && user.bytes().all(fits) {
            true => Ok(SecretForm::Basic {
                user: user.to_owned(),
            }),
            false => Err(invalid("its user has a colon, or symbols beyond ASCII")),
        }
    }

    fn header_of(text: &str) -> Result<SecretForm> {
        let wrong = || invalid(format!("its header {text:?} is not like {BEARER:?}"));
        let (name, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (before, after) = rest.split_once(HOLE).ok_or_else(wrong)?;
        let visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if after.contains(HOLE) || text.len() > HEADER_MAX || !visible {
            return Err(wrong());
        }
        Ok(SecretForm::Header {
            name: name.trim().to_owned(),
            before: before.trim_start().to_owned(),
            after: after.trim_end().to_owned(),
        })
    }

    /// The name of the header.
    pub fn name(&self) -> &str {
        match self {
            SecretForm::Header { name, .. } => name,
            SecretForm::Basic { .. } => AUTHORIZATION,
        }
    }

    /// What the header holds.
    pub(super) fn filled(&self, value: &SecretValue) -> Zeroizing<String> {
        match self {
            SecretForm::Header { before, after, .. } => {
                Zeroizing::new([before, value.as_str(), after].concat())
            }
            SecretForm::Basic { user } => {
                let pair = Zeroizing::new([user, ":", value.as_str()].concat());
                let encoded = Zeroizing::new(Base64::encode_string(pair.as_bytes()));
                Zeroizing::new(["Basic ", &encoded].concat())
            }
        }
    }
}

/// The header with `{}` for the value.
impl fmt::Display for SecretForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretForm::Header {
                name,
                before,
                after,
            } => write!(f, "{name}: {before}{HOLE}{after}"),
            SecretForm::Basic { .. } => write!(f, "{AUTHORIZATION}: Basic {HOLE}"),
        }
    }
}

/// A secret as the owner sets it.
#[derive(Debug)]
pub struct NewSecret {
    pub name: SecretName,
    pub value: SecretValue,
    pub hosts: HostList,
    pub form: SecretForm,
    pub plain_http: bool,
    /// None is every vault.
    pub vaults: Vec<VaultPattern>,
}

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    pub name: SecretName,
    /// The hosts that it is for.
    pub hosts: HostList,
    pub form: SecretForm,
    /// Whether it is put into requests that go over the network as they are.
    pub plain_http: bool,
    /// The vaults whose commands it is for; none is every vault.
    pub vaults: Vec<VaultPattern>,
    /// When its value was set, in seconds since 1970.
    pub set_at: i64,
}

impl Secret {
    pub(super) fn of(new: &NewSecret, set_at: i64) -> Result<Secret> {
        let rules = new.hosts.rules();
        if rules.is_empty() || rules.len() > PLACES_MAX || new.vaults.len() > PLACES_MAX {
            let reason = format!("it is for 1 to {PLACES_MAX} hosts, and patterns of vaults");
            return Err(invalid(reason));
        }
        rules
            .iter()
            .try_for_each(|rule| check(rule, new.plain_http))?;
        let secret = Secret {
            name: new.name.clone(),
            hosts: new.hosts.clone(),
            form: new.form.clone(),
            plain_http: new.plain_http,
            vaults: new.vaults.clone(),
            set_at,
        };
        secret.outgoing(&new.value)?;
        Ok(secret)
    }

    /// As it is put into requests.
    pub(super) fn outgoing(&self, value: &SecretValue) -> Result<avfs_net::Secret> {
        let (hosts, filled) = (self.hosts.clone(), self.form.filled(value));
        let secret = avfs_net::Secret::new(hosts, self.form.name(), &filled, self.plain_http);
        Ok(secret?)
    }

    /// The hosts whose TLS is opened for it.
    pub fn opened(&self) -> Vec<&HostRule> {
        let by_tls = |rule: &&HostRule| {
            rule.ports.has(TLS) && !matches!(rule.pattern, HostPattern::Range(_))
        };
        self.hosts.rules().iter().filter(by_tls).collect()
    }
}

/// Refuses hosts that the value could never reach, or that are everybody's.
fn check(rule: &HostRule, plain_http: bool) -> Result<()> {
    if matches!(rule.pattern, HostPattern::AnyName | HostPattern::Registries) {
        let reason = format!("{rule} stands for hosts that are not named; name the hosts");
        return Err(invalid(reason));
    }
    let is_address = matches!(rule.pattern, HostPattern::Range(_));
    let by_tls = rule.ports.has(TLS) && !is_address;
    match (by_tls || plain_http, is_address) {
        (true, _) => Ok(()),
        (false, true) => Err(invalid(format!(
            "{rule} is an address, which TLS has no name for; name the host, or allow plain HTTP"
        ))),
        (false, false) => Err(invalid(format!(
            "{rule}: TLS is opened on port {TLS} only, and plain HTTP is not allowed"
        ))),
    }
}

/// Whether some host on some port is in both.
pub(super) fn meet(some: &HostRule, others: &[HostRule]) -> bool {
    let within = |one: &HostRule, other: &HostRule| {
        let lists = [one, other].map(|rule| HostList::new([rule.clone()]).unwrap_or_default());
        lists[0].is_within(&lists[1])
    };
    let on = |rule: &HostRule, port: u16| HostRule {
        pattern: rule.pattern.clone(),
        ports: Ports::One(port),
    };
    others.iter().any(|other| {
        let named = [some.ports.named(), other.ports.named()].concat();
        let ports = if named.is_empty() { vec![TLS] } else { named };
        let shared = ports
            .into_iter()
            .filter(|port| some.ports.has(*port) && other.ports.has(*port));
        let mut pairs = shared.map(|port| (on(some, port), on(other, port)));
        pairs.any(|(some, other)| within(&some, &other) || within(&other, &some))
    })
}

pub(super) fn invalid(reason: impl Into<String>) -> Error {
    Error::Invalid {
        what: "secret",
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<SecretValue> {
        SecretValue::new(Zeroizing::new(text.to_owned()))
    }

    fn new(hosts: &str, plain_http: bool) -> Result<Secret> {
        let new = NewSecret {
            name: "TOKEN".parse()?,
            value: value("canary-1234")?,
            hosts: hosts.parse()?,
            form: SecretForm::new(None, None)?,
            plain_http,
            vaults: Vec::new(),
        };
        Secret::of(&new, 0)
    }

    #[test]
    fn names_are_those_of_variables() {
        for name in ["A", "_x9", "API_TOKEN"] {
            assert_eq!(name.parse::<SecretName>().unwrap().as_str(), name);
        }
        for name in ["", "9a", "a-b", "a b", "ä", "A=B", "a\0", &"x".repeat(65)] {
            assert!(name.parse::<SecretName>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_value_fits_a_header_and_is_not_shown() {
        let canary = value("canary-1234").unwrap();
        assert!(!format!("{canary:?}").contains("canary"));
        for text in [
            "short",
            "with\nline-end",
            " before-it",
            "behind-it ",
            "ümlauts-too",
        ] {
            assert!(value(text).is_err(), "{text:?}");
        }
        assert!(value(&"x".repeat(4097)).is_err());
    }

    #[test]
    fn forms_are_filled() {
        let canary = value("canary-1234").unwrap();
        let filled = |header, user| {
            let form = SecretForm::new(header, user).unwrap();
            (
                form.name().to_owned(),
                form.filled(&canary).to_string(),
                form.to_string(),
            )
        };
        let (name, text, shown) = filled(None, None);
        assert_eq!((&*name, &*text), ("Authorization", "Bearer canary-1234"));
        assert_eq!(shown, BEARER);
        let (name, text, shown) = filled(Some("X-Api-Key:{}"), None);
        assert_eq!((&*name, &*text), ("X-Api-Key", "canary-1234"));
        assert_eq!(shown, "X-Api-Key: {}");
        let (_, text, shown) = filled(None, Some("git"));
        assert_eq!(text, "Basic Z2l0OmNhbmFyeS0xMjM0");
        assert_eq!(shown, "Authorization: Basic {}");
        for header in ["Authorization", "A: b", "A: {}{}", "A: {}\r\nB: c"] {
            assert!(SecretForm::new(Some(header), None).is_err(), "{header:?}");
        }
        assert!(SecretForm::new(Some(BEARER), Some("git")).is_err());
        assert!(SecretForm::new(None, Some("a:b")).is_err());
    }

    #[test]
    fn hosts_must_be_reachable_with_it() {
        for hosts in ["a.test", "a.test:443", "*.a.test,b.test", "a.test:*"] {
            assert!(new(hosts, false).is_ok(), "{hosts}");
        }
        for hosts in [
            "*",
            "a.test:80",
            "a.test:8443",
            "10.1.2.3",
            "a.test,10.1.2.3:443",
        ] {
            assert!(new(hosts, false).is_err(), "{hosts}");
        }
        assert!(new("10.1.2.3:8080", true).is_ok());
        assert!(new("*", true).is_err());
        let both = new("a.test,a.test:8080,10.1.2.3", true).unwrap();
        let opened: Vec<String> = both.opened().iter().map(ToString::to_string).collect();
        assert_eq!(opened, ["a.test"]);
    }

    #[test]
    fn rules_meet_where_both_allow_something() {
        let meets = |some: &str, others: &str| {
            let others: HostList = others.parse().unwrap();
            meet(&some.parse().unwrap(), others.rules())
        };
        for (some, others) in [
            ("a.test", "a.test"),
            ("a.test", "a.test:443"),
            ("a.test:443", "*.test"),
            ("*.test", "x.y.test:80"),
            ("a.test:*", "b.test,a.test:8080"),
            ("a.test:*", "a.test:*"),
        ] {
            assert!(meets(some, others), "{some} {others}");
        }
        for (some, others) in [
            ("a.test", "b.test"),
            ("a.test:443", "a.test:80"),
            ("*.a.test", "a.test"),
            ("a.test", "10.0.0.1"),
        ] {
            assert!(!meets(some, others), "{some} {others}");
        }
    }
}
