//! Files that tools of the host run by themselves: git its hooks, direnv `.envrc`, editors their tasks.
//!
//! Whoever writes in a vault may leave such a file, and an export brings it to where somebody works. So an export names
//! them, and does not write what git would run, unless the owner says so. The list is short and cannot be complete: what a
//! person runs (scripts, makefiles, tests) is content like any other.

mod git_config;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use avfs_vault::{Entry, Kind, RootId, Trees, VaultPath};

use crate::damage::{OnDamage, readable};
use crate::error::{Error, Result};
use git_config::{Setting, unsafe_settings};

/// Larger files are not parsed as a git configuration; they are guarded.
const MOST_CONFIG: u64 = 1 << 20;

/// Directories of which tools run what is in them.
const DIRECTORIES: [(&str, &str); 4] = [
    (".husky", "git runs it as a hook where husky is used"),
    (
        ".githooks",
        "git runs it as a hook where core.hooksPath says so",
    ),
    (
        ".devcontainer",
        "editors run it when they open the directory",
    ),
    (".ssh", "ssh heeds it, and may run what it says"),
];

/// Files that tools run, by the last names of their paths.
const FILES: [(&[&str], &str); 22] = [
    (&[".envrc"], "direnv runs it on entering the directory"),
    (&["mise.toml"], "mise runs it on entering the directory"),
    (&[".mise.toml"], "mise runs it on entering the directory"),
    (
        &[".vscode", "tasks.json"],
        "editors may run it when they open the directory",
    ),
    (
        &[".vscode", "settings.json"],
        "editors may run programs that it names",
    ),
    (
        &[".vscode", "launch.json"],
        "editors run programs that it names",
    ),
    (
        &[".devcontainer.json"],
        "editors run it when they open the directory",
    ),
    (
        &[".pre-commit-config.yaml"],
        "git runs it where pre-commit is installed",
    ),
    (&["lefthook.yml"], "git runs it where lefthook is installed"),
    (
        &["lefthook.yaml"],
        "git runs it where lefthook is installed",
    ),
    (&[".mcp.json"], "agents start servers that it names"),
    (
        &[".cursor", "mcp.json"],
        "agents start servers that it names",
    ),
    (
        &[".claude", "settings.json"],
        "agents run hooks that it names",
    ),
    (
        &[".claude", "settings.local.json"],
        "agents run hooks that it names",
    ),
    (&[".bashrc"], "shells run it"),
    (&[".bash_profile"], "shells run it"),
    (&[".profile"], "shells run it"),
    (&[".zshrc"], "shells run it"),
    (&[".zshenv"], "shells run it"),
    (&[".vimrc"], "editors run it"),
    (&[".exrc"], "editors run it"),
    (&[".gdbinit"], "debuggers run it"),
];

/// Whether an export writes what git runs by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hooks {
    /// It names it, and writes nothing at all.
    #[default]
    Refuse,
    /// The owner wants it.
    Write,
}

/// A file of an export that a tool runs by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsByItself {
    /// Relative to the directory on the host.
    pub path: Vec<u8>,
    pub why: &'static str,
    /// Whether it is written only with [`Hooks::Write`].
    pub guarded: bool,
}

/// What goes to the host, and where to.
pub(crate) struct Outgoing<'a> {
    pub trees: &'a Trees,
    pub root: RootId,
    /// The directory of the vault.
    pub at: &'a VaultPath,
    pub host_dir: &'a Path,
    /// With `KeepGoing`, what cannot be read is not exported either, and is passed over.
    pub on_damage: OnDamage,
}

impl Outgoing<'_> {
    /// All of the directory that runs by itself.
    pub fn all(&self) -> Result<Vec<RunsByItself>> {
        let mut found = Vec::new();
        let Some(top) = self.trees.entry(self.root, self.at)? else {
            return Ok(found);
        };
        let mut ahead = vec![(VaultPath::root(), top)];
        while let Some((path, entry)) = ahead.pop() {
            let Kind::Directory { tree, .. } = entry.kind else {
                continue;
            };
            for (name, entry) in readable(self.trees, tree, self.on_damage)?.entries {
                let path = path.join(&name)?;
                if entry.is_dir() {
                    ahead.push((path, entry));
                    continue;
                }
                let looked = match self.look(&path, &entry, None) {
                    Err(Error::Vault(error))
                        if error.is_damage() && self.on_damage == OnDamage::KeepGoing =>
                    {
                        self.in_doubt(&path, &entry)
                    }
                    looked => looked?,
                };
                found.extend(looked);
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// A file that is exported although damage elsewhere hides whether git would run it: guarded.
    fn in_doubt(&self, path: &VaultPath, entry: &Entry) -> Option<RunsByItself> {
        if let Kind::File { content, size, .. } = entry.kind
            && self.trees.check_content(content, size).is_err()
        {
            // It is damaged itself, so it is not exported.
            return None;
        }
        Some(RunsByItself {
            path: path.as_bytes()[1..].to_vec(),
            why: "damage keeps it from being told whether git runs it",
            guarded: true,
        })
    }

    /// What of these paths, written since `base` and counted from the top of what is exported, runs by itself.
    pub fn written<'b>(
        &self,
        base: RootId,
        paths: impl Iterator<Item = &'b [u8]>,
    ) -> Result<Vec<RunsByItself>> {
        let mut found = Vec::new();
        for path in paths {
            let path = VaultPath::parse(&[b"/", path].concat())?;
            let Some(inside) = path.rebase(&VaultPath::root(), self.at) else {
                continue;
            };
            let entry = self.trees.entry(self.root, &inside)?;
            let Some(entry) = entry.filter(|entry| !entry.is_dir()) else {
                continue;
            };
            let before = self.trees.entry(base, &inside)?;
            found.extend(self.look(&path, &entry, before.as_ref())?);
        }
        Ok(found)
    }

    /// One path, counted from the top of what is exported, that is no directory.
    fn look(
        &self,
        path: &VaultPath,
        entry: &Entry,
        before: Option<&Entry>,
    ) -> Result<Option<RunsByItself>> {
        let of_git = self.look_at_git(path, entry, before)?;
        let why = of_git.or_else(|| by_name(path));
        Ok(why.map(|why| RunsByItself {
            path: path.as_bytes()[1..].to_vec(),
            why,
            guarded: of_git.is_some(),
        }))
    }

    fn look_at_git(
        &self,
        path: &VaultPath,
        entry: &Entry,
        before: Option<&Entry>,
    ) -> Result<Option<&'static str>> {
        let names: Vec<&[u8]> = path.components().collect();
        let Some((last, above)) = names.split_last() else {
            return Ok(None);
        };
        if is(last, ".git") {
            return Ok(Some("it makes git take another directory for its own"));
        }
        for (place, name) in names.iter().enumerate() {
            let is_config =
                place == above.len() && (is(name, "config") || is(name, "config.worktree"));
            if !(is(name, "hooks") || is_config) || !self.is_of_git(&names[..place])? {
                continue;
            }
            if is_config {
                let unsafe_now = !self.has_only_known_settings(entry, before)?;
                return Ok(unsafe_now.then_some("it names programs, or files, for git to use"));
            }
            // git never runs these.
            return Ok((!last.ends_with(b".sample")).then_some("git runs it as a hook"));
        }
        Ok(None)
    }

    /// Whether git would take the directory for one of its own.
    fn is_of_git(&self, names: &[&[u8]]) -> Result<bool> {
        let host = self
            .host_dir
            .as_os_str()
            .as_bytes()
            .split(|byte| *byte == b'/');
        let all: Vec<&[u8]> = host.chain(names.iter().copied()).collect();
        if let Some(git) = all.iter().position(|name| is(name, ".git")) {
            // Below these, names are those of branches and objects.
            let kept = ["refs", "logs", "objects"];
            return Ok(!all
                .get(git + 1)
                .is_some_and(|below| kept.iter().any(|kept| is(below, kept))));
        }
        // A bare repository may have any name.
        let mut directory = self.at.clone();
        for name in names {
            directory = directory.join(name)?;
        }
        for name in ["HEAD", "objects", "refs"] {
            if self
                .trees
                .entry(self.root, &directory.join(name.as_bytes())?)?
                .is_none()
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a configuration of git sets nothing that makes git run or read something, besides what it set before.
    fn has_only_known_settings(&self, entry: &Entry, before: Option<&Entry>) -> Result<bool> {
        let Some(now) = self.settings(entry)? else {
            return Ok(false);
        };
        let before = match before {
            Some(before) => self.settings(before)?.unwrap_or_default(),
            None => BTreeSet::new(),
        };
        Ok(now.is_subset(&before))
    }

    /// The settings of a configuration that are not known to be harmless; none if it cannot be read.
    fn settings(&self, entry: &Entry) -> Result<Option<BTreeSet<Setting>>> {
        let Kind::File { content, size, .. } = entry.kind else {
            return Ok(None);
        };
        if size > MOST_CONFIG {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            let piece = self
                .trees
                .read(content, bytes.len() as u64, MOST_CONFIG as usize)?;
            if piece.is_empty() {
                return Ok(None);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(unsafe_settings(&bytes))
    }
}

/// Refuses an export with files that git runs by itself.
pub(crate) fn check(found: &[RunsByItself], hooks: Hooks) -> Result<()> {
    let guarded = found.iter().filter(|it| it.guarded);
    let paths: Vec<(String, &'static str)> = guarded
        .map(|it| (String::from_utf8_lossy(&it.path).into_owned(), it.why))
        .collect();
    match hooks == Hooks::Write || paths.is_empty() {
        true => Ok(()),
        false => Err(Error::RunsByItself { paths }),
    }
}

fn by_name(path: &VaultPath) -> Option<&'static str> {
    let names: Vec<&[u8]> = path.components().collect();
    let directory = DIRECTORIES
        .iter()
        .find(|(directory, _)| names.iter().any(|name| is(name, directory)));
    let file = FILES.iter().find(|(file, _)| {
        let last = names
            .len()
            .checked_sub(file.len())
            .map(|start| &names[start..]);
        last.is_some_and(|last| {
            last.iter()
                .zip(*file)
                .all(|(name, wanted)| is(name, wanted))
        })
    });
    let why = directory.map(|(_, why)| *why);
    why.or(file.map(|(_, why)| *why))
}

/// Ignores case: some filesystems of hosts do.
fn is(name: &[u8], wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted.as_bytes())
}
