//! In whose name something is done.

use std::fmt;
use std::str::FromStr;

use super::closed::words;
use super::error::{Error, Result};

words!(
    /// What somebody is.
    PrincipalKind, "kind of principal", { Owner = "owner", Agent = "agent", System = "system" }
);

/// Who does something: what they are and, if they said so, what they are called. As text `owner`, `agent`,
/// `agent:claude`.
///
/// Two agents without a name are the same principal.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal {
    kind: PrincipalKind,
    name: Option<PrincipalName>,
}

impl Principal {
    pub const OWNER: Principal = Principal::unnamed(PrincipalKind::Owner);
    pub const AGENT: Principal = Principal::unnamed(PrincipalKind::Agent);
    /// The daemon, where nobody asked for what it does.
    pub const SYSTEM: Principal = Principal::unnamed(PrincipalKind::System);

    const fn unnamed(kind: PrincipalKind) -> Principal {
        Principal { kind, name: None }
    }

    pub fn owner(name: Option<PrincipalName>) -> Principal {
        let kind = PrincipalKind::Owner;
        Principal { kind, name }
    }

    pub fn agent(name: Option<PrincipalName>) -> Principal {
        let kind = PrincipalKind::Agent;
        Principal { kind, name }
    }

    pub fn kind(&self) -> PrincipalKind {
        self.kind
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(PrincipalName::as_str)
    }

    pub fn is_agent(&self) -> bool {
        self.kind == PrincipalKind::Agent
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{}:{name}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl FromStr for Principal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Principal> {
        let (kind, name) = match text.split_once(':') {
            Some((kind, name)) => (kind, Some(name.parse()?)),
            None => (text, None),
        };
        match kind.parse()? {
            PrincipalKind::System if name.is_some() => Err(Error::InvalidText {
                what: "principal",
                text: text.to_owned(),
            }),
            kind => Ok(Principal { kind, name }),
        }
    }
}

/// What an agent or an owner is called: up to 64 letters, digits and `. _ - @ / +`. It is kept in every record, so it
/// is small and copied.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalName {
    bytes: [u8; PrincipalName::LONGEST],
    length: u8,
}

impl PrincipalName {
    pub const LONGEST: usize = 64;

    pub fn as_str(&self) -> &str {
        // Only ASCII is ever put in.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Debug for PrincipalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl FromStr for PrincipalName {
    type Err = Error;

    fn from_str(text: &str) -> Result<PrincipalName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@/+".contains(&byte);
        if text.is_empty() || text.len() > PrincipalName::LONGEST || !text.bytes().all(plain) {
            return Err(Error::InvalidText {
                what: "name of a principal",
                text: text.chars().take(PrincipalName::LONGEST).collect(),
            });
        }
        let mut bytes = [0; PrincipalName::LONGEST];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(PrincipalName {
            bytes,
            length: text.len() as u8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_are_text_and_back() {
        for text in [
            "owner",
            "agent",
            "system",
            "agent:claude",
            "owner:a@b/c.d+e_f-1",
        ] {
            assert_eq!(text.parse::<Principal>().unwrap().to_string(), text);
        }
        let longest = format!("agent:{}", "x".repeat(64));
        assert_eq!(longest.parse::<Principal>().unwrap().to_string(), longest);
        let too_long = format!("{longest}x");
        for wrong in [
            "",
            "nobody",
            "agent:",
            "agent:a b",
            "agent:a:b",
            "agent:\n",
            "agent:ä",
            "system:x",
            &too_long,
        ] {
            assert!(wrong.parse::<Principal>().is_err(), "{wrong:?}");
        }
        assert_eq!("agent".parse::<Principal>().unwrap(), Principal::AGENT);
        assert_ne!("agent:a".parse::<Principal>().unwrap(), Principal::AGENT);
    }
}
