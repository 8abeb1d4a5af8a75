//! A host as it comes in at any door: a name, or an address in one of the two strict notations.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{HostError, HostName};

/// A name or an address.
///
/// An IPv4 address is four decimal numbers without leading zeros. Octal, hexadecimal, single numbers and short forms are
/// refused. An IPv6 address is in the notation of RFC 4291, bare or in brackets, without a zone. An IPv4-mapped IPv6 address
/// (`::ffff:10.0.0.1`) is that IPv4 address, since the kernel connects to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    Name(HostName),
    Address(IpAddr),
}

impl Host {
    pub fn parse(text: &str) -> Result<Host, HostError> {
        if let Some(rest) = text.strip_prefix('[') {
            let inside = rest.strip_suffix(']');
            let inside = inside.ok_or_else(|| HostError::Ipv6(text.to_owned()))?;
            return Ok(Host::Address(parse_v6(inside)?));
        }
        if text.contains(':') {
            return Ok(Host::Address(parse_v6(text)?));
        }
        match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(Host::Address(IpAddr::V4(address))),
            Err(_) => HostName::parse(text).map(Host::Name),
        }
    }

    /// The address itself, with an IPv4-mapped IPv6 address as that IPv4 address.
    pub fn from_address(address: IpAddr) -> Host {
        Host::Address(address.to_canonical())
    }

    pub fn name(&self) -> Option<&HostName> {
        match self {
            Host::Name(name) => Some(name),
            Host::Address(_) => None,
        }
    }
}

fn parse_v6(text: &str) -> Result<IpAddr, HostError> {
    let address: Result<Ipv6Addr, _> = text.parse();
    let address = address.map_err(|_| HostError::Ipv6(text.to_owned()))?;
    Ok(IpAddr::V6(address).to_canonical())
}

/// Without brackets; [`HostPort`] adds them where a port follows.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => name.fmt(f),
            Host::Address(address) => address.fmt(f),
        }
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Host, HostError> {
        Host::parse(text)
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Host, D::Error> {
        let text = String::deserialize(deserializer)?;
        Host::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A host and the port on it, as `HOST:PORT` or `[IPV6]:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    pub host: Host,
    pub port: u16,
}

impl HostPort {
    pub fn new(host: Host, port: u16) -> HostPort {
        HostPort { host, port }
    }

    /// Parses `HOST:PORT`. Userinfo (`user@`) is refused, as `@` is no character of a host.
    pub fn parse(text: &str) -> Result<HostPort, HostError> {
        HostPort::parse_with_default(text, None)
    }

    /// Parses `HOST` or `HOST:PORT`; without a port, and with a default, the port is the default.
    pub fn parse_with_default(text: &str, default: Option<u16>) -> Result<HostPort, HostError> {
        let (host, port) = split_port(text)?;
        let port = match port {
            Some(port) => parse_port(port)?,
            None => default.ok_or_else(|| HostError::NoPort(text.to_owned()))?,
        };
        Ok(HostPort::new(Host::parse(host)?, port))
    }
}

/// Splits the port off. An IPv6 address must be in brackets to have one; without brackets it is all host.
pub(super) fn split_port(text: &str) -> Result<(&str, Option<&str>), HostError> {
    if text.starts_with('[') {
        let end = text.find(']');
        let end = end.ok_or_else(|| HostError::Ipv6(text.to_owned()))? + 1;
        return match (&text[..end], &text[end..]) {
            (host, "") => Ok((host, None)),
            (host, rest) => {
                let port = rest.strip_prefix(':');
                let port = port.ok_or_else(|| HostError::Port(rest.to_owned()))?;
                Ok((host, Some(port)))
            }
        };
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Ok((text, None)),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((text, None)),
    }
}

/// A port from 1 to 65535: digits alone, without leading zeros.
pub(super) fn parse_port(text: &str) -> Result<u16, HostError> {
    let wrong = || HostError::Port(text.to_owned());
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || text.starts_with('0') {
        return Err(wrong());
    }
    text.parse().map_err(|_| wrong())
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            host => write!(f, "{host}:{}", self.port),
        }
    }
}

impl FromStr for HostPort {
    type Err = HostError;

    fn from_str(text: &str) -> Result<HostPort, HostError> {
        HostPort::parse(text)
    }
}

impl Serialize for HostPort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HostPort, D::Error> {
        let text = String::deserialize(deserializer)?;
        HostPort::parse(&text).map_err(serde::de::Error::custom)
    }
}
