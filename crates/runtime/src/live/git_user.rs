//! Who commits are by: the user of this host, as git knows them at the moment.
//!
//! Every sandbox has a directory of ours in which a file with this name lies. It is replaced when the user's
//! configuration changes, so commands that run see it, too.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::live::host::HostFacts;
use crate::runtime::lock;

/// Its name, in the directory of shims.
pub(crate) const GIT_USER: &str = ".gitconfig";
/// How much git may answer.
const ANSWER: u64 = 64 << 10;

/// A name and an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct GitUser {
    name: Option<String>,
    email: Option<String>,
}

/// What a file was when it was read.
type Stamp = (PathBuf, Option<(u64, u64, u64, i64, i64)>);

/// The user's identity, and how it becomes a file.
pub(crate) struct GitIdentity {
    /// What the owner said when the daemon was started, which goes before everything.
    said: GitUser,
    home: Option<PathBuf>,
    file: PathBuf,
    known: Mutex<Option<Known>>,
}

struct Known {
    /// The files that it comes from, and those where it would be.
    stamps: Vec<Stamp>,
    is_complete: bool,
}

impl GitIdentity {
    pub fn new(facts: &HostFacts, dir: &Path) -> GitIdentity {
        GitIdentity {
            said: GitUser {
                name: facts.git_name.clone(),
                email: facts.git_email.clone(),
            },
            home: facts.user_home.clone(),
            file: dir.join(GIT_USER),
            known: Mutex::new(None),
        }
    }

    /// Reads it again if a file of it has changed; says whether both name and address are known.
    pub fn refresh(&self) -> bool {
        let mut known = lock(&self.known);
        if let Some(known) = &*known
            && known.stamps.iter().all(|(path, then)| stamp(path) == *then)
        {
            return known.is_complete;
        }
        // Before git is asked: what changes meanwhile is seen next time.
        let usual = self.usual_files();
        let mut stamps: Vec<Stamp> = usual.iter().map(|path| stamped(path)).collect();
        let (found, origins) = self.ask();
        stamps.extend(origins.difference(&usual).map(|path| stamped(path)));
        let user = GitUser {
            name: self.said.name.clone().or(found.name),
            email: self.said.email.clone().or(found.email),
        };
        let is_complete = user.name.is_some() && user.email.is_some();
        // On a full disk commands run all the same, and it is tried again.
        *known = self.write(&user).ok().map(|()| Known {
            stamps,
            is_complete,
        });
        is_complete
    }

    /// Where git looks for the configuration of a user.
    fn usual_files(&self) -> BTreeSet<PathBuf> {
        let named = std::env::var_os("GIT_CONFIG_GLOBAL").map(PathBuf::from);
        if let Some(named) = named {
            return BTreeSet::from([named]);
        }
        let home = self.home.iter().map(|home| home.join(".gitconfig"));
        let config = std::env::var_os("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty());
        let config = config.map(PathBuf::from);
        let config = config.or(self.home.as_ref().map(|home| home.join(".config")));
        home.chain(config.map(|config| config.join("git/config")))
            .collect()
    }

    /// Asks git, which knows how its files are read; also says which files the answer is from.
    fn ask(&self) -> (GitUser, BTreeSet<PathBuf>) {
        let Some(home) = &self.home else {
            return Default::default();
        };
        let mut command = Command::new("git");
        command
            .args(["config", "--global", "--includes", "--show-origin", "-z"])
            .args(["--get-regexp", r"^user\.(name|email)$"])
            .env("HOME", home)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut answer = Vec::new();
        if let Ok(mut child) = command.spawn() {
            // Without an answer, nobody is known.
            let _ = child
                .stdout
                .take()
                .map(|stdout| stdout.take(ANSWER).read_to_end(&mut answer));
            let _ = child.wait();
        }
        read_answer(&String::from_utf8_lossy(&answer))
    }

    fn write(&self, user: &GitUser) -> io::Result<()> {
        let text = match user {
            GitUser {
                name: None,
                email: None,
            } => String::new(),
            GitUser { name, email } => {
                let name = name
                    .iter()
                    .map(|it| format!("\tname = {}\n", git_value(it)));
                let email = email
                    .iter()
                    .map(|it| format!("\temail = {}\n", git_value(it)));
                let lines: String = name.chain(email).collect();
                format!("[user]\n{lines}")
            }
        };
        if fs::read(&self.file).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(());
        }
        let new = self.file.with_extension("new");
        fs::write(&new, text)?;
        fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        fs::rename(new, &self.file)
    }
}

/// Pairs of a file and a setting: `file:PATH`, then the name, a newline and the value.
fn read_answer(answer: &str) -> (GitUser, BTreeSet<PathBuf>) {
    let (mut user, mut origins) = (GitUser::default(), BTreeSet::new());
    let mut parts = answer.split('\0');
    while let (Some(origin), Some(setting)) = (parts.next(), parts.next()) {
        origins.extend(origin.strip_prefix("file:").map(PathBuf::from));
        // The last one counts.
        match setting.split_once('\n') {
            Some(("user.name", value)) => user.name = Some(value.to_owned()),
            Some(("user.email", value)) => user.email = Some(value.to_owned()),
            _ => {}
        }
    }
    (user, origins)
}

fn stamped(path: &Path) -> Stamp {
    (path.to_owned(), stamp(path))
}

fn stamp(path: &Path) -> Option<(u64, u64, u64, i64, i64)> {
    let meta = fs::metadata(path).ok()?;
    let (inode, size) = (meta.ino(), meta.size());
    let changed = meta.ctime().wrapping_mul(1_000_000_000);
    let changed = changed.wrapping_add(meta.ctime_nsec());
    Some((meta.dev(), inode, size, meta.mtime_nsec(), changed))
}

fn git_value(text: &str) -> String {
    let clean: String = text.chars().filter(|symbol| !symbol.is_control()).collect();
    format!("\"{}\"", clean.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether a simple command makes commits, as far as its text says, without an identity of its own.
pub(crate) fn makes_commits(command: &str) -> bool {
    const COMMITS: [&str; 6] = ["commit", "merge", "rebase", "cherry-pick", "revert", "am"];
    let mut words = command.split_whitespace();
    let is_git = words
        .next()
        .is_some_and(|word| word.rsplit('/').next() == Some("git"));
    if !is_git || command.contains("user.email") {
        return false;
    }
    while let Some(word) = words.next() {
        match word {
            "-c" | "-C" | "--git-dir" | "--work-tree" => drop(words.next()),
            option if option.starts_with('-') => {}
            verb => return COMMITS.contains(&verb),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_commit_are_known_by_their_text() {
        for text in [
            "git commit -m x",
            "/usr/bin/git -C /repo commit",
            "git -c core.pager=cat --no-pager merge x",
        ] {
            assert!(makes_commits(text), "{text}");
        }
        for text in [
            "git status",
            "git",
            "echo git commit",
            "git -c user.email=a@b commit",
            "git log commit",
            "",
        ] {
            assert!(!makes_commits(text), "{text}");
        }
    }

    #[test]
    fn the_last_value_counts_and_its_file_is_watched() {
        let answer =
            "file:/a\0user.name\nOne\0file:/b\0user.name\nTwo Names\0file:/b\0user.email\na@b\0";
        let (user, origins) = read_answer(answer);
        assert_eq!(user.name.as_deref(), Some("Two Names"));
        assert_eq!(user.email.as_deref(), Some("a@b"));
        assert_eq!(origins.len(), 2);
        assert_eq!(read_answer("").0, GitUser::default());
    }
}
