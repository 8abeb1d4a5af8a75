//! Of what kind a view and its sandbox are.

use avfs_sandbox::Network;
use serde::{Deserialize, Serialize};

use crate::live::lending::LendKey;

/// Whether a command may change the vault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    #[default]
    ReadWrite,
    /// It sees the vault as it is when it begins, and `/` refuses writes.
    ReadOnly,
}

/// What holds a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// Namespaces, an allow-listed root, Landlock, seccomp.
    #[default]
    Namespace,
    /// Nothing but policy and timeouts: the owner's choice.
    Process,
}

impl Driver {
    pub fn as_str(self) -> &'static str {
        match self {
            Driver::Namespace => "namespace",
            Driver::Process => "process",
        }
    }
}

/// Of what kind a sandbox is. Commands share one if they want the same kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub network: Network,
    pub driver: Driver,
    pub tmp: Tmp,
    /// What the vault lends besides.
    pub lent: LendKey,
}

/// Which `/tmp` a sandbox has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tmp {
    /// The vault's, which file verbs and other commands see, too.
    #[default]
    OfVault,
    /// One of its own, which is empty at first and goes away with it.
    Own,
}

impl Shape {
    pub fn new(network: Network, driver: Driver, lent: LendKey) -> Shape {
        Shape {
            network,
            driver,
            tmp: Tmp::OfVault,
            lent,
        }
    }

    /// For a command that must find nothing but the vault's root: all else that it could read and a command before it
    /// could have written is empty.
    pub fn alone(self) -> Shape {
        Shape {
            tmp: Tmp::Own,
            ..self
        }
    }
}
