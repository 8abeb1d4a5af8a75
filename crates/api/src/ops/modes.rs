//! Compatibility modes as they are shown.

use super::exec_options::profile_word;
use crate::wire::{ModeItem, ProfileWord};
use avfs_runtime::Mode;

/// The tools that clients of a vault in this mode are given when they name none.
pub(crate) fn toolset(mode: Mode) -> &'static str {
    match mode {
        Mode::Claude | Mode::Codex | Mode::Gemini => "core",
        Mode::Agentkernel => "sandbox",
    }
}

/// The named set of limits.
pub(crate) fn profile(mode: Mode) -> ProfileWord {
    profile_word(mode.profile())
}

pub(crate) fn item(mode: Mode) -> ModeItem {
    let env = mode.env(false).iter();
    ModeItem {
        name: mode.to_string(),
        profile: mode.profile().to_string(),
        timeout_ms: mode.timeout().as_millis() as u64,
        toolset: toolset(mode).into(),
        network: mode.network().to_string(),
        env: env
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
    }
}
