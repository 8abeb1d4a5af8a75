//! A temporary home with a daemon of its own, and the avfs binary to drive it.

use crate::processes::{status_kib, wait_for, with_environment};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// An unused uid.
pub(crate) const ORDINARY_UID: u32 = 54_321;
/// `daemon`, a user of every distribution that runs nothing.
const NAMED_UID: u32 = 1;

/// One installation: a home, a runtime directory, and a user. Its daemon ends with it.
pub struct Home {
    binary: PathBuf,
    dir: TempDir,
    run_as: Option<u32>,
    user_home: PathBuf,
}

impl Home {
    /// A home of the user who runs the test. `binary` is `env!("CARGO_BIN_EXE_avfs")`; the
    /// variable `AVFS_TEST_BIN` overrides it.
    pub fn new(binary: &str) -> Home {
        let binary = std::env::var_os("AVFS_TEST_BIN").unwrap_or_else(|| binary.into());
        let dir = tempfile::Builder::new()
            .prefix("avfs-")
            .tempdir_in("/tmp")
            .expect("a directory");
        for name in ["run", "user"] {
            let path = dir.path().join(name);
            fs::create_dir(&path).expect("a fresh directory");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("own directory");
        }
        Home {
            binary: binary.into(),
            user_home: dir.path().join("user"),
            dir,
            run_as: None,
        }
    }

    /// A home of an ordinary user, if the test runs as root.
    pub fn of_ordinary_user(binary: &str) -> Option<Home> {
        Home::of_user(binary, ORDINARY_UID)
    }

    /// A home of an ordinary user who is in `/etc/passwd`: `fusermount3` serves nobody else.
    pub fn of_named_user(binary: &str) -> Option<Home> {
        Home::of_user(binary, NAMED_UID)
    }

    fn of_user(binary: &str, uid: u32) -> Option<Home> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let mut home = Home::new(binary);
        home.run_as = Some(uid);
        for path in [
            home.path().to_owned(),
            home.path().join("run"),
            home.path().join("user"),
        ] {
            std::os::unix::fs::chown(&path, Some(uid), Some(uid)).expect("root");
        }
        if !home.starts() {
            // The path to the binary may be closed to other users.
            home.binary = home.binary_within_reach();
            assert!(home.starts(), "the binary runs as uid {ORDINARY_UID}");
        }
        Some(home)
    }

    fn starts(&self) -> bool {
        self.avfs(&["--version"]).status.success()
    }

    /// A hard link or a copy of the binary in this home.
    fn binary_within_reach(&self) -> PathBuf {
        let reachable = self.path().join("avfs");
        if fs::hard_link(&self.binary, &reachable).is_err() {
            fs::copy(&self.binary, &reachable).expect("a copy of the binary");
        }
        reachable
    }

    /// Uses this user's real `HOME`, so that commands get the toolchains in it.
    pub fn with_real_user_home(mut self) -> Home {
        if let Some(home) = std::env::var_os("HOME") {
            self.user_home = home.into();
        }
        self
    }

    /// A home for every kind of user that this test can be: its own, and an ordinary one unless an ordinary user runs
    /// the tests too.
    pub fn of_every_user(binary: &str) -> Vec<Home> {
        match is_run_by_each_user() {
            true => vec![Home::new(binary)],
            false => Home::of_root_and_ordinary_user(binary),
        }
    }

    /// As [`of_every_user`](Home::of_every_user), with an ordinary user who is in `/etc/passwd`.
    pub fn of_every_named_user(binary: &str) -> Vec<Home> {
        let named = (!is_run_by_each_user()).then(|| Home::of_named_user(binary));
        std::iter::once(Home::new(binary))
            .chain(named.flatten())
            .collect()
    }

    /// Homes of root and an ordinary user, for tests whose ordinary user needs something that only root can make.
    pub fn of_root_and_ordinary_user(binary: &str) -> Vec<Home> {
        std::iter::once(Home::new(binary))
            .chain(Home::of_ordinary_user(binary))
            .collect()
    }

    /// Homes of every user, each with a current vault `v`.
    pub fn of_every_user_with_vault(binary: &str) -> Vec<Home> {
        let homes = Home::of_every_user(binary);
        for home in &homes {
            home.ok(&["vault", "create", "v"]);
        }
        homes
    }

    /// The user, for messages of failing tests.
    pub fn user(&self) -> String {
        match self.run_as {
            Some(uid) => format!("ordinary user {uid}"),
            None => format!("uid {}", rustix::process::geteuid().as_raw()),
        }
    }

    /// Whether its daemon is root's.
    pub fn is_root(&self) -> bool {
        self.run_as.is_none() && rustix::process::geteuid().is_root()
    }

    /// The directory with everything, the home included.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The `HOME` of its user.
    pub fn user_home(&self) -> &Path {
        &self.user_home
    }

    pub fn avfs_home(&self) -> PathBuf {
        self.path().join("home")
    }

    pub fn runtime_base(&self) -> PathBuf {
        self.path().join("run")
    }

    /// The binary with arguments, in an environment of this home.
    pub fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = self.host_command(&self.binary);
        command.args(words);
        command
    }

    /// A program of the host, run by this home's user in this environment.
    pub fn host_command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match self.run_as {
            None => Command::new(program),
            Some(uid) => {
                let mut command = Command::new("setpriv");
                command
                    .arg(format!("--reuid={uid}"))
                    .arg(format!("--regid={uid}"));
                command.args(["--clear-groups", "--"]).arg(program);
                command
            }
        };
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.user_home)
            .env("AVFS_HOME", self.avfs_home())
            .env("XDG_RUNTIME_DIR", self.runtime_base())
            .env("RUST_BACKTRACE", "1")
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// The binary with arguments, in a session without a controlling terminal.
    pub fn command_without_terminal<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = self.command(words);
        // SAFETY: between fork and exec only one system call is made.
        unsafe {
            command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?));
        }
        command
    }

    /// Runs the binary to its end.
    pub fn avfs<S: AsRef<OsStr>>(&self, words: &[S]) -> Output {
        self.command(words).output().expect("the binary runs")
    }

    /// Runs the binary, which must succeed; returns its standard output.
    pub fn ok<S: AsRef<OsStr>>(&self, words: &[S]) -> String {
        let output = self.avfs(words);
        assert!(
            output.status.success(),
            "avfs {} as {}: {}\n{}{}",
            words
                .iter()
                .map(|word| word.as_ref().to_string_lossy())
                .collect::<Vec<_>>()
                .join(" "),
            self.user(),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs the binary with `--json`, whatever its exit code; returns the JSON. Every object says the version of its shape,
    /// which is checked here; only an envelope, which has it as a field of its own, keeps it.
    pub fn json<S: AsRef<OsStr>>(&self, words: &[S]) -> Value {
        let mut answer = self.whole_json(words);
        if let Some(fields) = answer.as_object_mut() {
            assert_eq!(fields["schema_version"], 1, "{fields:?}");
            if !fields.contains_key("kind") {
                fields.remove("schema_version");
            }
        }
        answer
    }

    /// Runs the binary with `--json`, whatever its exit code; returns the JSON as it is.
    pub fn whole_json<S: AsRef<OsStr>>(&self, words: &[S]) -> Value {
        let mut all: Vec<&OsStr> = vec![OsStr::new("--json")];
        all.extend(words.iter().map(AsRef::as_ref));
        let output = self.avfs(&all);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "avfs {all:?} as {} did not answer in JSON ({error}): {}\n{}",
                self.user(),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            )
        })
    }

    /// Runs a command in the current vault; returns the envelope.
    pub fn exec<S: AsRef<OsStr>>(&self, command: &[S]) -> Value {
        let mut words: Vec<&OsStr> = ["proxy", "exec", "--"].iter().map(OsStr::new).collect();
        words.extend(command.iter().map(AsRef::as_ref));
        self.json(&words)
    }

    /// Runs shell text in the current vault; returns the envelope.
    pub fn shell(&self, text: &str) -> Value {
        self.json(&["proxy", "exec", "--shell", text])
    }

    /// Runs the binary with `--json`, which must refuse; gives the error's kind and the whole answer.
    #[track_caller]
    pub fn refused<S: AsRef<OsStr>>(&self, words: &[S]) -> (String, Value) {
        let answer = self.json(words);
        let text = |key: &str| answer[key].as_str().filter(|text| !text.is_empty());
        let (Some(kind), Some(_)) = (text("error"), text("message")) else {
            let words: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
            panic!(
                "avfs {words:?} as {} was not refused: {answer}",
                self.user()
            );
        };
        (kind.to_owned(), answer)
    }

    /// Makes everything beneath a path of the host belong to this home's user.
    pub fn give(&self, path: &Path) {
        let owner = fs::metadata(self.path()).expect("the home is there");
        let owner = format!("{}:{}", owner.uid(), owner.gid());
        let mut chown = Command::new("chown");
        let given = chown.args(["-R", "-h", &owner]).arg(path).status();
        assert!(given.is_ok_and(|status| status.success()), "chown {path:?}");
    }

    /// The next command in the current vault starts over a fresh layer: a view shows its vault's name, so it goes
    /// when that changes.
    pub fn close_view(&self) {
        let name = self.json(&["vault", "info"])["name"].clone();
        let name = name.as_str().expect("a text");
        self.ok(&["vault", "rename", name, "renamed"]);
        self.ok(&["vault", "rename", "renamed", name]);
    }

    /// The most memory that the daemon has had, in bytes.
    pub fn peak_memory(&self) -> u64 {
        status_kib(self.daemon_pid().expect("a daemon runs"), "VmHWM:") << 10
    }

    /// The daemon's pid, if one runs.
    pub fn daemon_pid(&self) -> Option<u32> {
        let pid = self.json(&["daemon", "status"])["pid"].as_u64()?;
        u32::try_from(pid).ok()
    }

    /// The socket a running daemon listens on.
    pub fn socket(&self) -> PathBuf {
        let status = self.json(&["daemon", "status"]);
        PathBuf::from(
            status["socket"]
                .as_str()
                .expect("a running daemon has a socket"),
        )
    }
}

/// Does `check` in a fresh home of every kind of user this test can be, with a current vault `v` in it.
pub fn with_vault(binary: &str, check: impl Fn(&Home)) {
    for home in Home::of_every_user_with_vault(binary) {
        check(&home);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.command(&["daemon", "stop"]).output();
        self.kill_what_is_left();
        let _ = open_up(self.path());
    }
}

impl Home {
    /// Kills a daemon that does not answer.
    fn kill_what_is_left(&self) {
        let variable = format!("AVFS_HOME={}\0", self.avfs_home().display());
        for pid in with_environment(&variable) {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        wait_for(Duration::from_secs(5), || {
            with_environment(&variable).is_empty()
        });
    }
}

/// Whether root and an ordinary user each run the tests, as `scripts/test` does it: then root does not act as the other.
pub fn is_run_by_each_user() -> bool {
    std::env::var_os("AVFS_TEST_USERS").is_some_and(|users| users == "each")
}

/// Makes directories writable, so that they can be removed.
fn open_up(dir: &Path) -> std::io::Result<()> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
