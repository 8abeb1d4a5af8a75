//! The demo's directory and daemon, removed when it ends.

use crate::environment;
use crate::error::{Error, Result};
use crate::session::Session;
use avfs_api::{DaemonPaths, on_interrupt};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Stage {
    dir: PathBuf,
    place: DaemonPaths,
    interrupted: Arc<AtomicBool>,
}

impl Stage {
    /// Creates them, and has an interrupt stop the demo instead of the program.
    pub fn set(name: &str) -> Result<Stage> {
        let dir = std::env::temp_dir().join(format!("avfs-{name}-{}", std::process::id()));
        let make = |dir: &Path| {
            DirBuilder::new()
                .mode(0o700)
                .create(dir)
                .map_err(Error::io(format!("cannot make {}", dir.display())))
        };
        make(&dir)?;
        let run = dir.join("run");
        make(&run)?;
        let stage = Stage {
            place: DaemonPaths::new(&dir.join("home"), Some(&run))?,
            dir,
            interrupted: Arc::default(),
        };
        let interrupted = Arc::clone(&stage.interrupted);
        // The demo stops at its next step and cleans up; a running command is cancelled.
        on_interrupt(move || interrupted.store(true, Ordering::Release))?;
        Ok(stage)
    }

    /// Whether the demo was not interrupted.
    pub fn go_on(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Acquire) {
            return Err(avfs_api::Error::Interrupted.into());
        }
        Ok(())
    }

    pub fn place(&self) -> &DaemonPaths {
        &self.place
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn project_dir(&self) -> PathBuf {
        self.dir.join("project")
    }

    /// A connection to the demo's daemon, for `vault`.
    pub fn session(&self, vault: &str) -> Result<Session> {
        let run = self.dir.join("run");
        let starter = environment::starter_with_base(self.place.clone(), Some(&run))?;
        Ok(Session::new(starter, Some(vault.to_owned())))
    }

    fn strike(&self) {
        // If this fails, the files stay in the temporary directory.
        if let Ok(session) = self.session("") {
            let _ = session.stop(true);
        }
        let _ = remove_all(&self.dir);
        if !self.place.dir().starts_with(&self.dir) {
            let _ = remove_all(self.place.dir());
        }
    }
}

impl Drop for Stage {
    /// Stops the daemon and removes everything.
    fn drop(&mut self) {
        self.strike();
    }
}

/// Removes a directory, even if the modes of directories in it forbid that.
fn remove_all(dir: &Path) -> io::Result<()> {
    if fs::remove_dir_all(dir).is_ok() {
        return Ok(());
    }
    open_up(dir)?;
    fs::remove_dir_all(dir)
}

fn open_up(dir: &Path) -> io::Result<()> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_directory_is_removed_too() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a");
        fs::create_dir_all(dir.join("b/c")).unwrap();
        fs::write(dir.join("b/c/file"), "x").unwrap();
        fs::set_permissions(dir.join("b"), fs::Permissions::from_mode(0o000)).unwrap();
        remove_all(&dir).unwrap();
        assert!(!dir.exists());
    }
}
