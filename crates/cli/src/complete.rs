//! Completions from a running daemon: names and paths that a home holds. None is started for it, and whatever takes too
//! long is left out.
//!
//! Names of files are an agent's. What a terminal would take for a command of its own is not offered, and what a shell
//! would take apart is escaped.

use crate::args;
use crate::commands::paths::in_vault;
use crate::environment;
use avfs_api::Client;
use avfs_api::wire::{
    CURRENT, CheckpointList, JobList, Ls, TypeWord, VaultList, VaultLog, from_text,
};
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// The variable that names the shell that asks.
pub const VARIABLE: &str = "AVFS_COMPLETE";
/// How long a shell waits. What the process needs besides has room up to 50 ms.
const PATIENCE: Duration = Duration::from_millis(40);
/// How many names are asked for.
const LISTED_MAX: usize = 10_000;
/// How many are offered.
const OFFERED_MAX: usize = 200;

/// Whether bash asks. It puts candidates into the line as they are; other shells escape them.
static IS_BASH: AtomicBool = AtomicBool::new(false);

/// What is to be completed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Vault,
    Checkpoint,
    Version,
    /// A checkpoint, a version, or one of the words for a state.
    State,
    Job,
    Path,
}

/// Answers a shell, if one asks.
pub fn answered(words: &[OsString]) -> Option<ExitCode> {
    let shell = std::env::var_os(VARIABLE)?;
    // The variable is gone when candidates are asked for.
    IS_BASH.store(shell == "bash", Ordering::Relaxed);
    let completing = CompleteEnv::with_factory(args::completing)
        .var(VARIABLE)
        .completer("avfs");
    let here = std::env::current_dir().ok();
    match completing.try_complete(words.to_vec(), here.as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// What begins with the typed word.
pub fn candidates(kind: Kind, typed: &OsStr) -> Vec<CompletionCandidate> {
    let is_bash = IS_BASH.load(Ordering::Relaxed);
    let typed = match is_bash {
        true => unescaped(typed.as_bytes()),
        false => typed.as_bytes().to_vec(),
    };
    let (tell, told) = sync_channel(1);
    let asked = typed.clone();
    std::thread::spawn(move || {
        // Nobody listens any more if it took too long.
        let _ = tell.send(found(kind, &asked).unwrap_or_default());
    });
    let found = told.recv_timeout(PATIENCE).unwrap_or_default();
    let fits = found.into_iter().filter(|name| name.starts_with(&typed));
    let names = fits.filter_map(|name| String::from_utf8(name).ok());
    let names = names.filter(|name| crate::output::changes::printable(name) == *name);
    let names = names.map(|name| match is_bash {
        true => escaped(&name),
        false => name,
    });
    names
        .take(OFFERED_MAX)
        .map(CompletionCandidate::new)
        .collect()
}

/// What a running daemon knows. No daemon, no answer.
fn found(kind: Kind, typed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let place = environment::place().ok()?;
    let mut client = Client::connect(&place).ok()?;
    let vault = vault();
    Some(match kind {
        Kind::Vault => {
            let listed = client.call(&vault, &VaultList::default()).ok()?.vaults;
            texts(listed.into_iter().map(|it| it.name))
        }
        Kind::Checkpoint => checkpoints(&mut client, &vault)?,
        Kind::Version => versions(&mut client, &vault)?,
        Kind::State => {
            let words = ["HEAD", "BASE"].map(|word| word.as_bytes().to_vec());
            let mut states = Vec::from(words);
            states.extend(checkpoints(&mut client, &vault)?);
            states.extend(versions(&mut client, &vault)?);
            states
        }
        Kind::Job => {
            let jobs = client.call(&vault, &JobList::default()).ok()?.jobs;
            texts(jobs.into_iter().map(|job| job.job_id.to_string()))
        }
        Kind::Path => paths(&mut client, &vault, typed)?,
    })
}

fn texts(names: impl Iterator<Item = String>) -> Vec<Vec<u8>> {
    names.map(String::into_bytes).collect()
}

fn checkpoints(client: &mut Client, vault: &str) -> Option<Vec<Vec<u8>>> {
    let request = CheckpointList {
        limit: NonZeroUsize::new(LISTED_MAX),
        brief: true,
        ..CheckpointList::default()
    };
    let listed = client.call(vault, &request).ok()?.snapshots;
    Some(texts(listed.into_iter().map(|it| it.name)))
}

fn versions(client: &mut Client, vault: &str) -> Option<Vec<Vec<u8>>> {
    let request = VaultLog {
        limit: OFFERED_MAX,
        cursor: None,
    };
    let listed = client.call(vault, &request).ok()?.versions;
    Some(texts(
        listed.into_iter().map(|it| format!("v{}", it.version)),
    ))
}

/// The entries of the directory that was typed so far, each with all that was typed before it.
fn paths(client: &mut Client, vault: &str, typed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let cut = typed.iter().rposition(|byte| *byte == b'/');
    let above = &typed[..cut.map_or(0, |cut| cut + 1)];
    let directory = match above.is_empty() {
        true => OsStr::new("."),
        false => OsStr::from_bytes(above),
    };
    let request = Ls {
        limit: Some(LISTED_MAX),
        ..Ls::new(in_vault(directory))
    };
    let listed = client.call(vault, &request).ok()?.entries;
    let names = listed.into_iter().map(|entry| {
        let name = from_text(&entry.name, entry.name_b64.as_ref());
        let end: &[u8] = match entry.attributes.kind {
            TypeWord::Directory => b"/",
            _ => b"",
        };
        [above, &name, end].concat()
    });
    Some(names.collect())
}

/// The vault that the words of the command line name.
fn vault() -> String {
    let words: Vec<OsString> = std::env::args_os().collect();
    let after = words.iter().position(|word| word == "--vault");
    let named = after.and_then(|at| words.get(at + 1)).cloned();
    let joined = words.iter().find_map(|word| {
        let value = word.as_bytes().strip_prefix(b"--vault=")?;
        Some(OsString::from_vec(value.to_vec()))
    });
    let named = named.or(joined).and_then(|name| name.into_string().ok());
    let named = named.filter(|name| !name.is_empty());
    let here = || {
        let home = environment::home().ok()?;
        crate::here::chosen(&home).ok()?
    };
    named
        .or_else(|| std::env::var("AVFS_VAULT").ok())
        .or_else(here)
        .unwrap_or_else(|| CURRENT.into())
}

/// A word as bash reads it back.
fn escaped(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,+@%=".contains(c);
    let mut word = String::new();
    for character in name.chars() {
        if !plain(character) {
            word.push('\\');
        }
        word.push(character);
    }
    word
}

/// What bash has in mind with an escaped word.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut bytes = word.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => plain.extend(bytes.next()),
            byte => plain.push(*byte),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_comes_back_from_the_shell_as_it_was() {
        for name in [
            "/a b",
            "$(id)",
            "`id`;#'\"",
            "*?[x]",
            "ä/é",
            "~",
            "!x",
            "a\\b",
        ] {
            let word = escaped(name);
            assert_eq!(unescaped(word.as_bytes()), name.as_bytes());
            let special = |c: &str| !"abdxiäé/".contains(c);
            for (at, found) in word.match_indices(|c: char| special(&c.to_string())) {
                let quoted = found == "\\" || word[..at].ends_with('\\');
                assert!(quoted, "{found} in {word}");
            }
        }
    }
}
