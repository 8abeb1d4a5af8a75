//! Where the demo takes place: a directory and a daemon of its own, gone when it ends.

use crate::environment;
use crate::error::{Error, Result};
use crate::session::Session;
use avfs_api::{Place, on_interrupt};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub struct Stage {
    dir: PathBuf,
    place: Place,
    interrupted: AtomicBool,
    /// Whether the stage still stands.
    stands: Mutex<bool>,
}

impl Stage {
    /// Sets the stage, and sees to it that it is struck if the demo is interrupted.
    pub fn set() -> Result<Arc<Stage>> {
        let dir = std::env::temp_dir().join(format!("avfs-demo-{}", std::process::id()));
        let make = |dir: &Path| {
            DirBuilder::new()
                .mode(0o700)
                .create(dir)
                .map_err(Error::io(format!("cannot make {}", dir.display())))
        };
        make(&dir)?;
        let run = dir.join("run");
        make(&run)?;
        let stage = Arc::new(Stage {
            place: Place::new(&dir.join("home"), Some(&run))?,
            dir,
            interrupted: AtomicBool::new(false),
            stands: Mutex::new(true),
        });
        let watched = Arc::clone(&stage);
        on_interrupt(move || {
            watched.interrupted.store(true, Ordering::Release);
            watched.strike();
            std::process::exit(i32::from(crate::exit::INTERRUPTED));
        })?;
        Ok(stage)
    }

    pub fn was_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Acquire)
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn project_dir(&self) -> PathBuf {
        self.dir.join("project")
    }

    /// A line to the demo's daemon, working on `vault`.
    pub fn session(&self, vault: &str) -> Result<Session> {
        let run = self.dir.join("run");
        let starter = environment::starter_with_base(self.place.clone(), Some(&run))?;
        Ok(Session::new(starter, Some(vault.to_owned())))
    }

    /// Ends the daemon and removes everything. Whoever comes second waits for the first.
    pub fn strike(&self) {
        let mut stands = self.stands.lock().unwrap_or_else(PoisonError::into_inner);
        if !*stands {
            return;
        }
        // Nothing more can be done about what fails here than to leave it in the temporary
        // directory.
        if let Ok(session) = self.session("") {
            let _ = session.stop();
        }
        let _ = remove_all(&self.dir);
        if !self.place.dir().starts_with(&self.dir) {
            let _ = remove_all(self.place.dir());
        }
        *stands = false;
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.strike();
    }
}

/// Removes a directory, also where a directory in it forbids that.
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
