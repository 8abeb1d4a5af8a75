//! Compatibility modes: what an agent program expects of the place where its commands run, as one setting.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::command::network::VaultNetwork;
use crate::command::options::Profile;
use crate::{Error, Result};

/// A named set of settings. What a vault says itself goes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Claude,
    Codex,
    Gemini,
    Agentkernel,
}

impl Mode {
    pub const ALL: [Mode; 4] = [Mode::Claude, Mode::Codex, Mode::Gemini, Mode::Agentkernel];

    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Claude => "claude",
            Mode::Codex => "codex",
            Mode::Gemini => "gemini",
            Mode::Agentkernel => "agentkernel",
        }
    }

    pub fn profile(self) -> Profile {
        match self {
            Mode::Claude | Mode::Gemini | Mode::Agentkernel => Profile::Moderate,
            Mode::Codex => Profile::Restrictive,
        }
    }

    /// How long a command may take when nobody says.
    pub fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            Mode::Claude => 120,
            Mode::Codex => 60,
            Mode::Gemini => 300,
            Mode::Agentkernel => 30,
        })
    }

    /// The network that it gives. None of them gives any: whoever may reach the API of a model's vendor may send it anything, with
    /// any account's key, so that is for the owner to list.
    pub fn network(self) -> VaultNetwork {
        VaultNetwork::default()
    }

    /// Variables by which programs know whom they run for, and whether they have a network.
    pub fn env(self, network: bool) -> &'static [(&'static str, &'static str)] {
        match self {
            Mode::Codex if network => &[],
            Mode::Claude => &[("CLAUDECODE", "1")],
            Mode::Codex => &[("CODEX_SANDBOX_NETWORK_DISABLED", "1")],
            // It takes the first for being in a sandbox already.
            Mode::Gemini => &[("SANDBOX", "avfs"), ("GEMINI_CLI", "1")],
            Mode::Agentkernel => &[],
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Mode> {
        let found = Mode::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| Error::Invalid {
            what: "mode",
            reason: format!("{text:?} is none of claude, codex, gemini, agentkernel"),
        })
    }
}
