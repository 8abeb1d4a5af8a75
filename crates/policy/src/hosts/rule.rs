//! One rule about hosts: a pattern, and ports.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::host::{parse_port, split_port};
use super::special::{special_range, special_ranges_around};
use super::{AddressRange, Host, HostError, HostName};

/// `host[:port]`, `*.suffix[:port]`, `*[:port]`, `address[:port]`, `range[:port]` or `registries`.
///
/// - `registries` stands for hosts that are worked out elsewhere, and matches none by itself. A host of that name is `registries:443`.
/// - Without a port, a rule is for 80 and 443. `:*` is every port.
/// - `*.example.com` is every name below `example.com`, at any depth, and not `example.com` itself.
/// - `*` is every name, and no address.
/// - An IPv6 address or range with a port is in brackets: `[2001:db8::1]:443`, `[2001:db8::/32]:443`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostRule {
    pub pattern: HostPattern,
    pub ports: Ports,
}

/// Which hosts a rule is about. Those that say most come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// The package registries of whoever runs the daemon.
    Registries,
    Name(HostName),
    /// Every name below this one.
    Below(HostName),
    AnyName,
    Range(AddressRange),
}

/// Which ports a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ports {
    /// 80 and 443.
    Web,
    One(u16),
    Any,
}

impl Ports {
    pub const WEB: [u16; 2] = [80, 443];

    pub fn has(self, port: u16) -> bool {
        match self {
            Ports::Web => Ports::WEB.contains(&port),
            Ports::One(one) => one == port,
            Ports::Any => true,
        }
    }

    /// The ports that the rule names; none for every port.
    pub fn named(self) -> Vec<u16> {
        match self {
            Ports::Web => Ports::WEB.to_vec(),
            Ports::One(one) => vec![one],
            Ports::Any => Vec::new(),
        }
    }
}

impl HostPattern {
    fn parse(text: &str) -> Result<HostPattern, HostError> {
        if text == "*" {
            return Ok(HostPattern::AnyName);
        }
        if let Some(parent) = text.strip_prefix("*.") {
            return match Host::parse(parent)? {
                Host::Name(name) => Ok(HostPattern::Below(name)),
                Host::Address(_) => Err(HostError::Wildcard(text.to_owned())),
            };
        }
        if text.contains('*') {
            return Err(HostError::Wildcard(text.to_owned()));
        }
        if text.contains('/') {
            return Ok(HostPattern::Range(AddressRange::parse(text)?));
        }
        Ok(HostPattern::from(Host::parse(text)?))
    }

    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (HostPattern::Name(own), Host::Name(name)) => own == name,
            (HostPattern::Below(parent), Host::Name(name)) => name.is_below(parent),
            (HostPattern::AnyName, Host::Name(_)) => true,
            (HostPattern::Range(range), Host::Address(address)) => lists(range, *address),
            (HostPattern::Range(_) | HostPattern::Registries, Host::Name(_))
            | (_, Host::Address(_)) => false,
        }
    }

    /// Whether `other` matches every host that this pattern matches.
    fn is_within(&self, other: &HostPattern) -> bool {
        match (self, other) {
            // What they are is not known here, and they come with credentials.
            (HostPattern::Registries, other) => *other == HostPattern::Registries,
            (_, HostPattern::Registries) => false,
            (HostPattern::Range(range), HostPattern::Range(other)) => {
                // A wider range does not list the special addresses that this one lists.
                let mut special = special_ranges_around(range);
                range.is_within(other) && special.all(|(whole, _)| other.is_within(&whole))
            }
            (HostPattern::Range(_), _) | (_, HostPattern::Range(_)) => false,
            (_, HostPattern::AnyName) => true,
            (HostPattern::AnyName, _) => false,
            (HostPattern::Name(name), HostPattern::Name(other)) => name == other,
            (HostPattern::Name(name), HostPattern::Below(parent)) => name.is_below(parent),
            (HostPattern::Below(_), HostPattern::Name(_)) => false,
            (HostPattern::Below(name), HostPattern::Below(parent)) => {
                name == parent || name.is_below(parent)
            }
        }
    }
}

/// Whether a range lists an address: a special one only if the range lies within what makes it special.
fn lists(range: &AddressRange, address: IpAddr) -> bool {
    let special = special_range(address);
    range.contains(address) && special.is_none_or(|(whole, _)| range.is_within(&whole))
}

impl FromStr for HostPattern {
    type Err = HostError;

    fn from_str(text: &str) -> Result<HostPattern, HostError> {
        HostPattern::parse(text)
    }
}

impl From<Host> for HostPattern {
    fn from(host: Host) -> HostPattern {
        match host {
            Host::Name(name) => HostPattern::Name(name),
            Host::Address(address) => HostPattern::Range(AddressRange::single(address)),
        }
    }
}

impl HostRule {
    /// The word for package registries.
    pub const REGISTRIES: &str = "registries";

    /// The rule for package registries.
    pub fn registries() -> HostRule {
        HostRule {
            pattern: HostPattern::Registries,
            ports: Ports::Web,
        }
    }

    pub fn parse(text: &str) -> Result<HostRule, HostError> {
        let (pattern, ports) = match bracketed_range(text) {
            Some(parts) => parts,
            None => split_port(text)?,
        };
        let ports = match ports {
            None => Ports::Web,
            Some("*") => Ports::Any,
            Some(port) => Ports::One(parse_port(port)?),
        };
        let rule = HostRule {
            pattern: HostPattern::parse(pattern)?,
            ports,
        };
        rule.check()?;
        // One text, one rule: however a client writes the name, it is shown as the word.
        match rule.to_string() == HostRule::REGISTRIES {
            true => Ok(HostRule::registries()),
            false => Ok(rule),
        }
    }

    /// The rule that allows this host on this port and nothing else.
    pub fn exactly(host: Host, port: u16) -> HostRule {
        HostRule {
            pattern: HostPattern::from(host),
            ports: Ports::One(port),
        }
    }

    /// Refuses a rule that could never match, or that must not.
    fn check(&self) -> Result<(), HostError> {
        let HostPattern::Range(range) = &self.pattern else {
            return Ok(());
        };
        let never = special_ranges_around(range).find_map(|(_, special)| special.never());
        match never {
            Some(why) => Err(HostError::NeverAllowed(range.to_string(), why)),
            None => Ok(()),
        }
    }

    pub fn matches(&self, host: &Host, port: u16) -> bool {
        self.ports.has(port) && self.pattern.matches(host)
    }

    /// Whether `others` together allow everything that this rule allows. Ranges are compared one by one, so the answer is
    /// `false` for one that only several others cover.
    pub(super) fn is_within(&self, others: &[HostRule]) -> bool {
        let covers = |port: Option<u16>| {
            others.iter().any(|other| {
                let ports = match port {
                    Some(port) => other.ports.has(port),
                    None => other.ports == Ports::Any,
                };
                ports && self.pattern.is_within(&other.pattern)
            })
        };
        match self.ports {
            Ports::Any => covers(None),
            ports => ports.named().into_iter().all(|port| covers(Some(port))),
        }
    }
}

/// `[RANGE]`, with or without a port, where `RANGE` is one of IPv6 addresses.
fn bracketed_range(text: &str) -> Option<(&str, Option<&str>)> {
    let (range, rest) = text.strip_prefix('[')?.split_once(']')?;
    match rest {
        "" => range.contains('/').then_some((range, None)),
        rest => {
            let port = rest.strip_prefix(':')?;
            range.contains('/').then_some((range, Some(port)))
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Name(name) => name.fmt(f),
            HostPattern::Below(name) => write!(f, "*.{name}"),
            HostPattern::AnyName => f.write_str("*"),
            HostPattern::Range(range) => range.fmt(f),
            HostPattern::Registries => f.write_str(HostRule::REGISTRIES),
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            HostPattern::Range(range) if range.is_v6() && self.ports != Ports::Web => {
                write!(f, "[{range}]")?;
            }
            pattern => pattern.fmt(f)?,
        }
        match self.ports {
            Ports::Web => Ok(()),
            Ports::One(port) => write!(f, ":{port}"),
            Ports::Any => f.write_str(":*"),
        }
    }
}

impl FromStr for HostRule {
    type Err = HostError;

    fn from_str(text: &str) -> Result<HostRule, HostError> {
        HostRule::parse(text)
    }
}

impl Serialize for HostRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HostRule, D::Error> {
        let text = String::deserialize(deserializer)?;
        HostRule::parse(&text).map_err(serde::de::Error::custom)
    }
}
