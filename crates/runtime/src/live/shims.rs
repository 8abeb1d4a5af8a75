//! The directory of shims that every sandbox has first on its PATH: one name for each tool whose version can be pinned.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use avfs_sandbox::toolchain::{CATALOGUE, Installed, SHIM_PROGRAM, SHIM_ROLE, Survey};

use crate::{Error, Result};

/// The one script that all names are links to.
const SCRIPT: &str = ".script";
/// A copy of this program, where commands could not run it itself.
const COPY: &str = ".program";

/// The shims of a home.
pub(crate) struct Shims {
    dir: PathBuf,
    /// This program.
    binary: PathBuf,
    tools: Survey,
}

impl Shims {
    pub fn new(dir: PathBuf, binary: PathBuf, tools: Survey) -> Shims {
        Shims { dir, binary, tools }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All versions of tools, as they are now.
    pub fn versions(&self) -> Vec<Installed> {
        self.tools.catalogue.installed()
    }

    /// The program that the shims run.
    pub fn program(&self) -> PathBuf {
        match self.dir.join(COPY) {
            copy if copy.exists() => copy,
            _ => self.binary.clone(),
        }
    }

    /// Makes what is missing and removes what is not wanted any more; what can stay is not made anew.
    pub fn prepare(&self) -> Result<()> {
        let failed = Error::io(format!("making {}", self.dir.display()));
        self.make().map_err(failed)
    }

    fn make(&self) -> io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        fs::set_permissions(&self.dir, Permissions::from_mode(0o755))?;
        let script = format!("#!/etc/{SHIM_PROGRAM} {SHIM_ROLE}\n");
        self.put(SCRIPT, script.as_bytes(), 0o755)?;
        let catalogue = self.tools.catalogue.to_bytes();
        self.put(CATALOGUE, &catalogue, 0o644)?;
        let script = fs::metadata(self.dir.join(SCRIPT))?.ino();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let is_ours = entry.metadata()?.ino() == script;
            let name = entry.file_name().into_string().unwrap_or_default();
            let wanted = is_ours && self.tools.shims.contains(&name);
            // Names with a dot are ours: no program is called so.
            if !wanted && !name.starts_with('.') {
                fs::remove_file(entry.path())?;
            }
        }
        for name in &self.tools.shims {
            match fs::hard_link(self.dir.join(SCRIPT), self.dir.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        self.copy_if_closed()
    }

    /// A file with this content; the old one stays if it is the same.
    fn put(&self, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
        let path = self.dir.join(name);
        if fs::read(&path).is_ok_and(|old| old == content) {
            return Ok(());
        }
        let new = self.dir.join(".new");
        fs::write(&new, content)?;
        fs::set_permissions(&new, Permissions::from_mode(mode))?;
        fs::rename(new, path)
    }

    /// The daemon's program may be closed to the user that commands are.
    fn copy_if_closed(&self) -> io::Result<()> {
        let copy = self.dir.join(COPY);
        let is_open = match fs::metadata(&self.binary) {
            // Then a sandbox cannot be made either, which says why.
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            meta => meta?.mode() & 0o005 == 0o005,
        };
        if is_open {
            return match fs::remove_file(copy) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let new = self.dir.join(".new");
        fs::copy(&self.binary, &new)?;
        fs::set_permissions(&new, Permissions::from_mode(0o755))?;
        fs::rename(new, copy)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_come_and_go() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("shims");
        let binary = std::env::current_exe().unwrap();
        let names = || -> BTreeSet<String> {
            let entries = fs::read_dir(&dir).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| !name.starts_with('.')).collect()
        };
        for wanted in [["a", "b"], ["b", "c"], ["b", "c"]] {
            let shims: BTreeSet<String> = wanted.iter().map(ToString::to_string).collect();
            let tools = Survey {
                shims: shims.clone(),
                ..Survey::default()
            };
            Shims::new(dir.clone(), binary.clone(), tools)
                .prepare()
                .unwrap();
            assert_eq!(names(), shims);
        }
        // Something else of that name is not run as a shim.
        fs::remove_file(dir.join("b")).unwrap();
        fs::write(dir.join("b"), "#!/bin/false").unwrap();
        let tools = Survey {
            shims: BTreeSet::from(["b".to_owned()]),
            ..Survey::default()
        };
        Shims::new(dir.clone(), binary.clone(), tools)
            .prepare()
            .unwrap();
        let text = fs::read_to_string(dir.join("b")).unwrap();
        assert_eq!(text, format!("#!/etc/{SHIM_PROGRAM} {SHIM_ROLE}\n"));
        assert_eq!(fs::metadata(dir.join("b")).unwrap().mode() & 0o777, 0o755);
    }
}
