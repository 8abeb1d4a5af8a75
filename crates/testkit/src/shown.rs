//! A vault shown as a directory, in every way, and programs run in it.

use crate::Home;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// More than any test program prints.
const OUTPUT_LIMIT: &str = "4194304";

/// A vault that programs see as a directory.
pub struct Shown {
    pub home: Home,
    way: Way,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// As the root directory of a sandbox, to commands of root's daemon.
    ExecRoot,
    /// As the root directory of a sandbox, to commands of a daemon of an ordinary user.
    ExecUser,
    /// Mounted by root for every program of the host, as an overlay.
    OverlayRoot,
    /// Mounted by root and served by the daemon.
    FuseRoot,
    /// Mounted by an ordinary user, for the user's own programs, and served by the daemon.
    FuseUser,
}

impl Way {
    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Way::ExecRoot => "exec-root",
            Way::ExecUser => "exec-user",
            Way::OverlayRoot => "overlay-root",
            Way::FuseRoot => "fuse-root",
            Way::FuseUser => "fuse-user",
        }
    }

    /// What serves a mount; nothing for commands in a sandbox.
    fn driver(self) -> Option<&'static str> {
        match self {
            Way::ExecRoot | Way::ExecUser => None,
            Way::OverlayRoot => Some("overlay"),
            Way::FuseRoot | Way::FuseUser => Some("fuse"),
        }
    }
}

/// The exit code and output of a program.
#[derive(Debug)]
pub struct Ran {
    /// What was run.
    pub command: String,
    pub code: Option<i64>,
    pub stdout: String,
    pub stderr: String,
    /// The changes that avfs reports.
    pub changes: Value,
}

impl Ran {
    /// The program must have succeeded; returns its standard output.
    #[track_caller]
    pub fn ok(&self) -> &str {
        let said = format!("{}\n{}{}", self.command, self.stdout, self.stderr);
        assert_eq!(self.code, Some(0), "{said}");
        &self.stdout
    }
}

impl Shown {
    /// A new vault `v` in every way that is possible here.
    pub fn in_every_way(binary: &str) -> Vec<Shown> {
        let mut all: Vec<Shown> = Home::of_every_user(binary)
            .into_iter()
            .map(Shown::by_exec)
            .collect();
        all.extend(Shown::mounted_in_every_way(|| Home::new(binary)));
        all
    }

    /// A new vault `v` in this home, seen by its commands.
    pub fn by_exec(home: Home) -> Shown {
        home.ok(&["vault", "create", "v"]);
        let way = match home.is_root() {
            true => Way::ExecRoot,
            false => Way::ExecUser,
        };
        Shown { home, way }
    }

    /// The ways in which this test's own user can mount; `home` makes the homes.
    pub fn mounted_in_every_way(home: impl Fn() -> Home) -> Vec<Shown> {
        // `fusermount3` needs a user with a name, so only the real user can mount.
        let ways = match rustix::process::geteuid().is_root() {
            true => &[Way::OverlayRoot, Way::FuseRoot][..],
            false => &[Way::FuseUser][..],
        };
        let mounted = |way: &Way| Shown::mounted(home(), *way);
        ways.iter().map(mounted).collect()
    }

    fn mounted(home: Home, way: Way) -> Shown {
        // Other users reach the mount through this directory.
        let open = fs::Permissions::from_mode(0o711);
        fs::set_permissions(home.path(), open).expect("own directory");
        home.ok(&["vault", "create", "v"]);
        let shown = Shown { home, way };
        shown.mount();
        shown
    }

    fn mount(&self) {
        if let Some(driver) = self.way.driver() {
            let dir = self.mount_point();
            self.home
                .ok(&["mount", "--vault", "v", "--driver", driver, &dir]);
        }
    }

    fn unmount(&self) {
        if self.is_mounted() {
            self.home.ok(&["unmount", &self.mount_point()]);
        }
    }

    fn mount_point(&self) -> String {
        let dir = self.home.path().join("mounted");
        dir.to_str().expect("a path of ours is text").to_owned()
    }

    pub fn way(&self) -> Way {
        self.way
    }

    /// Whether it is a directory of the machine.
    pub fn is_mounted(&self) -> bool {
        self.way.driver().is_some()
    }

    /// The path for programs of a path of the vault.
    pub fn at(&self, path: &str) -> String {
        if self.is_mounted() {
            self.mount_point() + path
        } else {
            path.to_owned()
        }
    }

    /// Runs a program in a directory of the vault.
    pub fn run<S: AsRef<OsStr>>(&self, cwd: &str, words: &[S]) -> Ran {
        let words: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
        let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let command = shown.join(" ");
        if self.is_mounted() {
            self.run_on_mount(cwd, &words, command)
        } else {
            self.run_inside(cwd, &words, command)
        }
    }

    fn run_inside(&self, cwd: &str, words: &[&OsStr], command: String) -> Ran {
        let options = ["--vault", "v", "exec", "--cwd", cwd, "--timeout", "600000"];
        let mut all: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        all.extend(["--output-limit", OUTPUT_LIMIT, "--"].map(OsStr::new));
        all.extend(words);
        let mut envelope = self.home.json(&all);
        let report = envelope["result"].take();
        assert!(report.is_object(), "{envelope:#}");
        let text = |key: &str| report[key].as_str().unwrap_or_default().to_owned();
        Ran {
            command,
            code: report["exit_code"].as_i64(),
            stdout: text("stdout"),
            stderr: text("stderr"),
            changes: self.all_changes(&report),
        }
    }

    /// What a command changed outside of its home directory, also what its report cuts off or counts.
    fn all_changes(&self, report: &Value) -> Value {
        let is_whole = |key: &str| report.get(key).is_none();
        if is_whole("changes_truncated") && is_whole("ignored_changes") {
            return report["changes"].clone();
        }
        let exec = report["exec"].as_str().expect("an id");
        let mut all = self.home.json(&["changes", exec, "--all"]);
        let changes = all["changes"].as_array_mut().expect("a list");
        let in_home = |path: &str| path == "/home" || path.starts_with("/home/agent");
        changes.retain(|change| !in_home(change["path"].as_str().expect("a path")));
        all["changes"].take()
    }

    fn run_on_mount(&self, cwd: &str, words: &[&OsStr], command: String) -> Ran {
        let output = Command::new(words[0])
            .args(&words[1..])
            .current_dir(self.at(cwd))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.user_home())
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{command}: {error}"));
        let committed = self.home.json(&["commit", "--vault", "v"]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran {
            command,
            code: output.status.code().map(i64::from),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            changes: committed["changed_files"].clone(),
        }
    }

    /// Runs shell text, which must succeed, in a directory of the vault.
    #[track_caller]
    pub fn shell(&self, cwd: &str, text: &str) -> Ran {
        let ran = self.run(cwd, &["/bin/bash", "-ec", text]);
        ran.ok();
        ran
    }

    /// Commits everything and opens a new view of what is stored.
    pub fn reopen(&self) {
        self.unmount();
        // Renaming a vault closes its view.
        self.home.ok(&["vault", "rename", "v", "renamed"]);
        self.home.ok(&["vault", "rename", "renamed", "v"]);
        self.mount();
    }
}

impl Shown {
    /// Stores everything, starts another daemon, and shows it again.
    pub fn restart(&self) {
        self.unmount();
        self.home.ok(&["daemon", "stop"]);
        self.mount();
    }
}

impl Drop for Shown {
    /// Detaches the mount, even if a program still uses it.
    fn drop(&mut self) {
        if self.is_mounted() {
            let _ = self.home.avfs(&["unmount", "--force", &self.mount_point()]);
        }
    }
}

/// Programs and packages for tests that no system package has; `scripts/test` installs them.
///
/// `None`, with a message, if they are not installed and no variable names them.
pub fn tools(manifest_dir: &str) -> Option<PathBuf> {
    if let Some(told) = std::env::var_os("AVFS_TEST_TOOLS") {
        return Some(told.into());
    }
    let beside = Path::new(manifest_dir).join("../../target/tools");
    let found = beside.canonicalize().ok();
    if found.is_none() {
        skip("there is no target/tools; scripts/test makes it");
    }
    found
}

/// Reports that something is skipped, and why, past the test harness's output capture.
pub fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
