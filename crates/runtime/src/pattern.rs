//! Patterns for names of vaults: `*` is any run of characters, `?` is any one.

use std::fmt;

use avfs_vault::VaultName;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A name of a vault, some of whose characters may be wildcards.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct VaultPattern(String);

impl VaultPattern {
    /// Longest pattern: as long as a name may be.
    const LONGEST: usize = 64;

    pub fn parse(text: &str) -> Result<VaultPattern> {
        // What is left when every wildcard stands for a letter has to be a name.
        let example = text.replace(['*', '?'], "x");
        if text.len() > VaultPattern::LONGEST || example.parse::<VaultName>().is_err() {
            return Err(Error::Invalid {
                what: "pattern",
                reason: format!("{text:?} is none for names of vaults"),
            });
        }
        Ok(VaultPattern(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it fits the whole name. Takes time in proportion to both lengths, whatever they are.
    pub fn fits(&self, name: &VaultName) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_str().as_bytes());
        let (mut at, mut seen) = (0, 0);
        // Where the last star was, and how much of the name it had taken by then.
        let mut star: Option<(usize, usize)> = None;
        while seen < name.len() {
            match pattern.get(at) {
                Some(b'*') => {
                    star = Some((at, seen));
                    at += 1;
                }
                Some(&byte) if byte == b'?' || byte == name[seen] => {
                    at += 1;
                    seen += 1;
                }
                _ => match &mut star {
                    Some((place, taken)) => {
                        *taken += 1;
                        (at, seen) = (*place + 1, *taken);
                    }
                    None => return false,
                },
            }
        }
        pattern[at..].iter().all(|byte| *byte == b'*')
    }
}

impl TryFrom<String> for VaultPattern {
    type Error = Error;

    fn try_from(text: String) -> Result<VaultPattern> {
        VaultPattern::parse(&text)
    }
}

impl fmt::Display for VaultPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_whole_names() {
        let fits = |pattern: &str, name: &str| {
            VaultPattern::parse(pattern)
                .unwrap()
                .fits(&name.parse().unwrap())
        };
        for (pattern, name) in [
            ("v", "v"),
            ("*", "anything"),
            ("team-*", "team-a"),
            ("team-*", "team-"),
            ("*-prod", "a-b-prod"),
            ("a*b*c", "a-b-b-c-c"),
            ("try-??", "try-01"),
            ("*a", "aaab-a"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("v", "vv"),
            ("team-*", "xteam-a"),
            ("team-*", "team"),
            ("*-prod", "a-prod-b"),
            ("try-??", "try-1"),
            ("try-??", "try-123"),
            ("V", "v"),
            ("a.b", "axb"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_that_no_name_can_fit_is_refused() {
        let long = "x".repeat(65);
        for text in [
            "", "a/b", "..", ".*", "-*", "a b", "[a]", "{a,b}", "ä*", &long,
        ] {
            assert!(VaultPattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn many_stars_take_no_longer() {
        let pattern = VaultPattern::parse(&"*a".repeat(32)).unwrap();
        let name: VaultName = format!("{}b", "a".repeat(63)).parse().unwrap();
        assert!(!pattern.fits(&name));
    }
}
