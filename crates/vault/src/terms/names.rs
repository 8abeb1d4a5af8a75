//! Names and ids of vaults, checkpoints and execs.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::closed::id_text;
use super::error::{Error, Result};

/// What a vault is called: 1-64 of `[A-Za-z0-9._-]`, not beginning with '-' or '.'.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VaultName(String);

/// What a checkpoint is called: 1-128 of the same alphabet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointName(String);

/// What somebody says about a checkpoint: one line of up to 1000 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description(String);

impl Description {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Description {
    type Err = Error;

    fn from_str(text: &str) -> Result<Description> {
        let refuse = |reason| {
            Err(Error::InvalidName {
                what: "description",
                text: text.to_owned(),
                reason,
            })
        };
        if text.len() > 1000 {
            return refuse("it is longer than 1000 bytes");
        }
        if text.chars().any(char::is_control) {
            return refuse("it is more than one line of text");
        }
        Ok(Description(text.to_owned()))
    }
}

fn check(what: &'static str, text: &str, longest: usize) -> Result<String> {
    let refuse = |reason| {
        Err(Error::InvalidName {
            what,
            text: text.to_owned(),
            reason,
        })
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match text.chars().next() {
        None => refuse("it is empty"),
        Some('-' | '.') => refuse("it may not begin with '-' or '.'"),
        Some(_) if text.len() > longest => refuse("it is too long"),
        Some(_) if !text.chars().all(allowed) => {
            refuse("only letters, digits, '.', '_' and '-' are allowed")
        }
        Some(_) => Ok(text.to_owned()),
    }
}

macro_rules! name {
    ($type:ident, $what:literal, $longest:literal) => {
        impl $type {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<$type> {
                check($what, text, $longest).map($type)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(VaultName, "vault", 64);
name!(CheckpointName, "checkpoint", 128);

/// Identifies a vault for its whole life, whatever it is called.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VaultId(Uuid);

/// Identifies one command that went through the boundary.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecId(Uuid);

/// Identifies a request for approval.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApprovalId(Uuid);

macro_rules! id {
    ($type:ident, $what:literal) => {
        impl $type {
            /// A fresh id; later ones sort after earlier ones.
            #[expect(
                clippy::new_without_default,
                reason = "a default that differs each time misleads"
            )]
            pub fn new() -> $type {
                $type(avfs_store::fresh_uuid())
            }

            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            pub const fn from_bytes(bytes: [u8; 16]) -> $type {
                $type(Uuid::from_bytes(bytes))
            }
        }

        id_text!($type, $what);
    };
}

id!(VaultId, "vault id");
id!(ExecId, "exec id");
id!(ApprovalId, "approval id");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["a", "my_vault-1.2", "A", "0", &"x".repeat(64)] {
            assert_eq!(good.parse::<VaultName>().unwrap().to_string(), good);
        }
        for bad in ["", "-a", ".a", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert!(bad.parse::<VaultName>().is_err(), "{bad:?}");
        }
        assert!("x".repeat(128).parse::<CheckpointName>().is_ok());
        assert!("x".repeat(129).parse::<CheckpointName>().is_err());
        assert!("a b".parse::<CheckpointName>().is_err());
    }

    #[test]
    fn ids_are_text_and_back() {
        let id = VaultId::new();
        assert_eq!(id.to_string().parse::<VaultId>().unwrap(), id);
        assert!("nonsense".parse::<ExecId>().is_err());
        assert!(ExecId::new() < ExecId::new());
    }
}
