//! Files that git tracks. Ignore rules do not apply to them, neither in git nor in an import.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use avfs_vault::VaultPath;
use rustix::fs::AtFlags;

use super::git::GitEnvironment;
use crate::error::{Error, Result};

/// The files that one repository tracks.
pub(super) struct Tracked {
    /// The directory that their names are relative to, from the top of what is imported.
    top: VaultPath,
    /// Sorted.
    names: Vec<Vec<u8>>,
}

impl Tracked {
    /// The files that are tracked in and below `dir`, which is `path` from the top of what is imported and `shown` to the
    /// user; none where no repository begins there. The top may lie within a repository that begins further up.
    pub fn in_directory(
        git: GitEnvironment<'_>,
        dir: &OwnedFd,
        path: &VaultPath,
        shown: &Path,
    ) -> Result<Option<Tracked>> {
        let begins_here = rustix::fs::statat(dir, ".git", AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let begins_above = path.is_root() && is_below_repository(shown);
        if !begins_here && !begins_above {
            return Ok(None);
        }
        // The very directory that is being read, whatever its name leads to by now.
        let open = PathBuf::from(format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            dir.as_raw_fd()
        ));
        let list = ["ls-files", "-z", "--cached"];
        let mut command = git.command(&open, if begins_here { &[] } else { &list });
        if begins_here {
            // A directory that only looks like a repository must not be taken for part of another one.
            command.args(["--git-dir=.git", "--work-tree=."]).args(list);
        }
        let output = command.output();
        let output = output.map_err(|source| Error::NoGit { source })?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => Ok(Some(Tracked::new(path, &output.stdout))),
            false if said.contains("not a git repository") => Ok(None),
            false => Err(Error::Untold {
                repository: shown.to_owned(),
                reason: said.lines().next().unwrap_or_default().to_owned(),
            }),
        }
    }

    fn new(top: &VaultPath, listed: &[u8]) -> Tracked {
        let names = listed.split(|byte| *byte == 0);
        let names = names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec);
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        Tracked {
            top: top.clone(),
            names,
        }
    }

    /// Whether `path`, from the top of what is imported, is tracked, or a directory that has something tracked in it.
    pub fn holds(&self, path: &VaultPath, is_dir: bool) -> bool {
        let Some(relative) = path.rebase(&self.top, &VaultPath::root()) else {
            return false;
        };
        let mut name = relative.as_bytes()[1..].to_vec();
        if !is_dir {
            return self.names.binary_search(&name).is_ok();
        }
        name.push(b'/');
        let next = self.names.partition_point(|other| *other < name);
        self.names
            .get(next)
            .is_some_and(|other| other.starts_with(&name))
    }
}

/// Whether one of the directories above is the top of a work tree.
fn is_below_repository(shown: &Path) -> bool {
    let Ok(real) = shown.canonicalize() else {
        return false;
    };
    let mut above = real.ancestors().skip(1);
    above.any(|dir| dir.join(".git").symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole_and_below_directories() {
        let listed = b"a/b/c\0a.txt\0a/b-c\0z\xff\0";
        let tracked = Tracked::new(&"/sub".parse().unwrap(), listed);
        let holds = |path: &str, is_dir| tracked.holds(&path.parse().unwrap(), is_dir);
        assert!(holds("/sub/a/b/c", false) && holds("/sub/a", true) && holds("/sub/a/b", true));
        assert!(!holds("/sub/a/b", false) && !holds("/sub/a/b/c", true));
        assert!(!holds("/sub/a/b/c/d", true) && !holds("/sub/z", true) && !holds("/a.txt", false));
        let odd = VaultPath::parse(b"/sub/z\xff").unwrap();
        assert!(tracked.holds(&odd, false));
    }
}
