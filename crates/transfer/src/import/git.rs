//! git, run on repositories of anybody.
//!
//! Only commands that print what is stored are run, and git is told to fetch nothing, to run no hook and no monitor.
//! Nothing that a repository's configuration could name is executed by these commands: filters, attributes and signatures
//! are never asked for.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Of the environment, what git is run with.
#[derive(Debug, Clone, Copy)]
pub struct GitEnvironment<'a> {
    /// Where programs are looked for.
    pub path: &'a OsStr,
    /// The owner's own configuration says which repositories of others are safe.
    pub user_home: Option<&'a Path>,
}

impl GitEnvironment<'_> {
    /// git, about to be run in that directory.
    pub(super) fn command(&self, dir: &Path, words: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(dir)
            .args(["--no-optional-locks", "--no-pager", "--no-replace-objects"])
            .args([
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "core.fsmonitor=false",
            ])
            .args(["-c", "protocol.allow=never", "-c", "core.pager=cat"])
            .args(words)
            .env_clear()
            .env("PATH", self.path)
            .envs(self.user_home.map(|home| ("HOME", home)))
            .envs([
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_NO_LAZY_FETCH", "1"),
                ("GIT_TERMINAL_PROMPT", "0"),
                ("LC_ALL", "C"),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}
