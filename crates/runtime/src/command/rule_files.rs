//! The files of rules that hold for all vaults: written for the owner alone, and noticed when somebody else did.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use avfs_policy::{Level, Rules};
use avfs_vault::{JournalEvent, Principal};
use serde_json::json;

use crate::command::policy::{invalid, rule_file, written};
use crate::runtime::{Runtime, lock};
use crate::session::Session;
use crate::{Error, Result};

impl Session {
    /// Replaces the rules of the user or of the machine; `seen` is what they were when somebody began to edit them.
    /// Gives the file.
    pub fn policy_write(&self, level: Level, seen: Option<&str>, text: &str) -> Result<String> {
        self.govern("a rule")?;
        let mut files = self.inner.policy.files.iter();
        let found = files.find(|(at, _)| *at == level);
        let Some((_, path)) = found else {
            return Err(Error::Invalid {
                what: "level",
                reason: format!("the daemon knows no file of {} rules", level.as_str()),
            });
        };
        let name = path.display().to_string();
        let file = rule_file(level, name.clone(), text.to_owned());
        Rules::load(&[file]).map_err(invalid)?;
        let _alone = lock(&self.inner.policy.noting);
        let before = written(path);
        if before.as_deref() != seen {
            return Err(Error::RulesChanged { file: name });
        }
        let new = path.with_extension(format!("new-{}", std::process::id()));
        write_new(&new, text).map_err(Error::io(format!("writing {}", new.display())))?;
        // What cannot be recorded is not done.
        let details = json!({ "level": level.as_str(), "file": name,
            "before": before, "after": text });
        let event = (self.principal(), JournalEvent::PolicyWrite, details);
        let recorded = self
            .inner
            .vaults
            .set_note(&note_key(level), Some(&hash(text)), event);
        let replaced = recorded
            .map_err(Error::from)
            .and_then(|()| fs::rename(&new, path).map_err(Error::io(format!("replacing {name}"))));
        if replaced.is_err() {
            // Nobody reads it under that name.
            let _ = fs::remove_file(&new);
        }
        replaced.map(|()| name)
    }
}

impl Runtime {
    /// Journals that a file of rules is not what it was when one was last read or written here.
    pub(crate) fn note_rule_files(&self) -> Result<()> {
        let _alone = lock(&self.inner.policy.noting);
        for (level, path) in &self.inner.policy.files {
            let key = note_key(*level);
            let now = written(path).map(|text| hash(&text));
            if self.inner.vaults.note(&key)? != now {
                let details = json!({ "level": level.as_str(), "file": path.display().to_string(),
                    "blake3": now });
                let event = (Principal::SYSTEM, JournalEvent::PolicyChanged, details);
                self.inner.vaults.set_note(&key, now.as_deref(), event)?;
            }
        }
        Ok(())
    }
}

fn note_key(level: Level) -> String {
    format!("seen.policy.{}", level.as_str())
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_string()
}

/// Writes a file of this user alone.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    // One that is there was left by a daemon of this number that is gone.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
