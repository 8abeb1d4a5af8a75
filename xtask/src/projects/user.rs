//! Somebody who runs the tests: with a directory, a home and an `avfs` of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::catalogue::Project;
use super::shell::{Outcome, bash};

pub struct User {
    pub name: String,
    home: String,
    path: String,
    /// Below this everything is theirs.
    dir: PathBuf,
    avfs: PathBuf,
    /// Whether they are somebody else than whoever runs this.
    is_other: bool,
}

/// This user; for root an ordinary one too, if there is one.
pub fn everyone() -> Outcome<Vec<String>> {
    let this = answer("id", &["-un"])?;
    let ordinary = answer("id", &["-un", "avfs-test"]);
    match (this.as_str(), ordinary) {
        ("root", Ok(ordinary)) => Ok(vec![this, ordinary]),
        ("root", Err(_)) => Err(
            "there is no user avfs-test to run the tests as; scripts/test makes it, or name one with --user".into(),
        ),
        _ => Ok(vec![this]),
    }
}

impl User {
    pub fn new(name: &str, below: &Path, avfs: &Path) -> Outcome<User> {
        let this = answer("id", &["-un"])?;
        let entry = answer("getent", &["passwd", name])?;
        let home = entry.split(':').nth(5).unwrap_or("/").to_owned();
        let is_other = this != name;
        let dir = below.join(name);
        let own = dir.join("avfs");
        let mut script = format!(
            "mkdir -p '{dir}' && cp '{avfs}' '{own}.new' && mv '{own}.new' '{own}'",
            dir = dir.display(),
            avfs = avfs.display(),
            own = own.display()
        );
        if is_other {
            script += &format!(
                " && chmod 755 '{}' && chown '{name}:' '{}'",
                below.display(),
                dir.display()
            );
        }
        fs::create_dir_all(below).map_err(|error| format!("{}: {error}", below.display()))?;
        bash(below, &script)?;
        Ok(User {
            name: name.to_owned(),
            path: search_path(&home, is_other),
            home,
            dir,
            avfs: own,
            is_other,
        })
    }

    /// The exit code, and what was printed.
    pub fn test_natively(&self, project: &Project, tree: &Path) -> Outcome<(i32, String)> {
        let copy = self.dir.join(project.name);
        let _ = fs::remove_dir_all(&copy);
        let owner = match self.is_other {
            true => format!(" && chown -R '{}:' '{}'", self.name, copy.display()),
            false => String::new(),
        };
        let script = format!("cp -a '{}' '{}'{owner}", tree.display(), copy.display());
        bash(&self.dir, &script)?;
        let ended = self.run(&copy, &["bash", "-c", project.test]);
        let _ = fs::remove_dir_all(&copy);
        ended
    }

    /// The exit code, and what was printed, of the tests in a new vault without a network.
    pub fn test_in_vault(&self, project: &Project, tree: &Path) -> Outcome<(i32, String)> {
        let (name, at) = (project.name, format!("/projects/{}", project.name));
        let avfs = self.avfs.display().to_string();
        let tree = tree.display().to_string();
        let must = |words: &[&str]| {
            let (code, printed) = self.run(&self.dir, words)?;
            let ok = code == 0;
            ok.then_some(())
                .ok_or(format!("{words:?} exits with {code}: {printed}"))
        };
        // What an earlier run has left.
        let _ = self.run(&self.dir, &[&avfs, "vault", "delete", name, "--force"]);
        must(&[&avfs, "vault", "create", name])?;
        must(&[&avfs, "--vault", name, "import", &tree, &at])?;
        let words = [
            &avfs,
            "--vault",
            name,
            "exec",
            "--timeout",
            "3h",
            "--cwd",
            &at,
            "--shell",
            project.test,
        ];
        let ended = self.run(&self.dir, &words)?;
        must(&[&avfs, "vault", "delete", name, "--force"])?;
        must(&[&avfs, "daemon", "stop"])?;
        Ok(ended)
    }

    fn run(&self, dir: &Path, words: &[&str]) -> Outcome<(i32, String)> {
        let mut command = Command::new("env");
        command.args(["-i", "LANG=C.UTF-8", "TERM=dumb"]);
        command.arg(format!("HOME={}", self.home));
        command.arg(format!("USER={}", self.name));
        command.arg(format!("PATH={}", self.path));
        command.arg(format!("AVFS_HOME={}", self.dir.join("home").display()));
        if self.is_other {
            command.args(["setpriv", "--reuid", &self.name, "--regid", &self.name]);
            command.arg("--clear-groups");
        }
        let ran = command.args(words).current_dir(dir).stdin(Stdio::null());
        let output = ran
            .output()
            .map_err(|error| format!("{words:?}: {error}"))?;
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        Ok((output.status.code().unwrap_or(-1), format!("{out}{err}")))
    }
}

/// Where this user's programs are. Another user has the toolchain that `scripts/test` gave them.
fn search_path(home: &str, is_other: bool) -> String {
    if !is_other {
        return std::env::var("PATH").unwrap_or_default();
    }
    let toolchains = fs::read_dir(Path::new(home).join(".rustup/toolchains"));
    let toolchains = toolchains.into_iter().flatten().flatten();
    let mut places: Vec<String> = toolchains
        .map(|entry| entry.path().join("bin").display().to_string())
        .collect();
    places.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(str::to_owned));
    places.join(":")
}

fn answer(program: &str, words: &[&str]) -> Outcome<String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() && !text.is_empty() {
        true => Ok(text),
        false => Err(format!("{program} {}: no answer", words.join(" "))),
    }
}
