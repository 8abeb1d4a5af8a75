//! A list of rules about hosts, and its verdicts.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Host, HostError, HostPattern, HostRule, Ports, Special, address_is_special};

/// Which hosts may be reached. The empty list is no network.
///
/// Rules are sorted and without repetition, so that two lists of the same rules are equal and have one text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct HostList {
    rules: Vec<HostRule>,
}

/// Whether a host may be reached on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allowed(HostRule),
    Denied(Denial),
}

/// Why a host may not be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// No rule is about the host.
    NotListed,
    /// A rule is about the host, on other ports.
    OtherPort(HostRule),
    /// A rule allows the name, but it resolves to a special address, which no rule lists.
    SpecialAddress { address: IpAddr, special: Special },
}

/// The command that would allow what was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    rule: HostRule,
}

impl HostList {
    pub const MAX_RULES: usize = 256;

    pub fn new(rules: impl IntoIterator<Item = HostRule>) -> Result<HostList, HostError> {
        let mut different = BTreeSet::new();
        for rule in rules {
            different.insert(rule);
            if different.len() > HostList::MAX_RULES {
                return Err(HostError::TooMany);
            }
        }
        Ok(HostList {
            rules: different.into_iter().collect(),
        })
    }

    pub fn rules(&self) -> &[HostRule] {
        &self.rules
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Both lists together.
    pub fn union(&self, other: &HostList) -> Result<HostList, HostError> {
        HostList::new(self.rules.iter().chain(&other.rules).cloned())
    }

    /// This list without the rules of another. A rule is taken away as it is written: `example.com` does not narrow
    /// `*.com`.
    pub fn without(&self, other: &HostList) -> HostList {
        let kept = self.rules.iter().filter(|rule| !other.rules.contains(rule));
        HostList {
            rules: kept.cloned().collect(),
        }
    }

    /// Whether `other` allows everything that this list allows: then going from `other` to this list is narrowing. The
    /// answer may be `false` where several address ranges of `other` together cover one of this list.
    pub fn is_within(&self, other: &HostList) -> bool {
        self.rules.iter().all(|rule| rule.is_within(&other.rules))
    }

    /// Whether a host, as a client named it, may be reached on a port. An address is allowed only by a rule about addresses.
    pub fn decide(&self, host: &Host, port: u16) -> Verdict {
        if let Some(rule) = self.rules.iter().find(|rule| rule.matches(host, port)) {
            return Verdict::Allowed(rule.clone());
        }
        let about = self.rules.iter().find(|rule| rule.pattern.matches(host));
        Verdict::Denied(match about {
            Some(rule) => Denial::OtherPort(rule.clone()),
            None => Denial::NotListed,
        })
    }

    /// Whether package registries are on the list.
    pub fn has_registries(&self) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.pattern == HostPattern::Registries)
    }

    /// Whether some rule is about the host, on whatever port. Names of which this holds are resolved.
    pub fn knows(&self, host: &Host) -> bool {
        self.rules.iter().any(|rule| rule.pattern.matches(host))
    }

    /// Whether an address that an allowed name resolved to may be dialled: it is public, or a rule lists it by address on this
    /// port.
    pub fn check_resolved(&self, address: IpAddr, port: u16) -> Result<(), Denial> {
        let address = address.to_canonical();
        let Some(special) = address_is_special(address) else {
            return Ok(());
        };
        let host = Host::Address(address);
        match self.rules.iter().any(|rule| rule.matches(&host, port)) {
            true => Ok(()),
            false => Err(Denial::SpecialAddress { address, special }),
        }
    }
}

impl Verdict {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Verdict::Allowed(_))
    }
}

impl Denial {
    /// The command that would allow it, if one can.
    pub fn hint(&self, host: &Host, port: u16) -> Option<Hint> {
        let host = match self {
            Denial::NotListed | Denial::OtherPort(_) => host.clone(),
            Denial::SpecialAddress { address, .. } => Host::from_address(*address),
        };
        Hint::to_allow(host, port)
    }

    /// The rule that the denial comes from, as it is shown.
    pub fn rule(&self) -> String {
        match self {
            Denial::NotListed => "default:not-listed".to_owned(),
            Denial::OtherPort(rule) => rule.to_string(),
            Denial::SpecialAddress { .. } => "default:special-address".to_owned(),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denial::NotListed => f.write_str("no rule of the network list allows it"),
            Denial::OtherPort(rule) => write!(f, "the network list allows only {rule}"),
            Denial::SpecialAddress { address, special } => write!(
                f,
                "it resolves to {address}, a {special} address, which must be listed by address"
            ),
        }
    }
}

impl Hint {
    /// `None` for an address that no rule can allow.
    pub fn to_allow(host: Host, port: u16) -> Option<Hint> {
        let never = match &host {
            Host::Address(address) => address_is_special(*address).and_then(Special::never),
            Host::Name(_) => None,
        };
        let mut rule = HostRule::exactly(host, port);
        // The name `registries` alone is the word for something else.
        let web = HostRule {
            ports: Ports::Web,
            ..rule.clone()
        };
        if Ports::Web.has(port) && web.to_string() != HostRule::REGISTRIES {
            rule = web;
        }
        never.is_none().then_some(Hint { rule })
    }

    pub fn rule(&self) -> &HostRule {
        &self.rule
    }
}

/// A command line for a shell. Brackets are quoted; no other character of a rule means anything to a shell.
impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule.to_string();
        match rule.contains(['[', '*']) {
            true => write!(f, "avfs network allow '{rule}'"),
            false => write!(f, "avfs network allow {rule}"),
        }
    }
}

/// Rules with commas between them. The empty list is the empty text.
impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, rule) in self.rules.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{rule}")?;
        }
        Ok(())
    }
}

/// Rules with commas or white space between them.
impl FromStr for HostList {
    type Err = HostError;

    fn from_str(text: &str) -> Result<HostList, HostError> {
        let words = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
        let words = words.filter(|word| !word.is_empty());
        let rules: Result<Vec<HostRule>, HostError> = words.map(HostRule::parse).collect();
        HostList::new(rules?)
    }
}

impl Serialize for HostList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.rules)
    }
}

impl<'de> Deserialize<'de> for HostList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HostList, D::Error> {
        let rules = Vec::<HostRule>::deserialize(deserializer)?;
        HostList::new(rules).map_err(serde::de::Error::custom)
    }
}
