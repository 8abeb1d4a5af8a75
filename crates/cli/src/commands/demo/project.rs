//! The demo's project: a few files, a test that fails, and two fixes.

use crate::error::{Error, Result};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A project with a bug.
pub struct Project {
    files: Vec<(&'static str, &'static str)>,
    /// Runs the test, in the project's directory.
    pub test: &'static str,
    pub env: Vec<(&'static str, &'static str)>,
    pub fixes: [Fix; 2],
}

/// One fix.
pub struct Fix {
    pub vault: &'static str,
    /// Applies the fix, and runs the test.
    pub command: String,
}

const MEAN: &str = "\
def mean(values):
    return sum(values) / len(values)
";

const TEST_MEAN: &str = "\
from mean import mean

assert mean([1, 2, 3]) == 2
assert mean([]) == 0, \"the mean of nothing is nothing\"
print(\"all tests pass\")
";

const GREET: &str = "\
echo \"hello, $1\"
";

const TEST_GREET: &str = "\
set -eu
[ \"$(sh greet.sh you)\" = 'hello, you' ]
[ \"$(sh greet.sh)\" = 'hello, world' ] || { echo 'nobody is greeted'; exit 1; }
echo 'all tests pass'
";

const README: &str = "A small project with a bug.\n";

impl Project {
    /// In Python if the sandbox has it, else in shell.
    pub fn choose() -> Project {
        let has_python = ["/usr/bin", "/usr/local/bin", "/bin"]
            .iter()
            .any(|dir| Path::new(dir).join("python3").exists());
        if has_python {
            Project::in_python()
        } else {
            Project::in_shell()
        }
    }

    fn in_python() -> Project {
        let test = "python3 test_mean.py";
        let fix = |vault, line: &str| Fix {
            vault,
            command: format!("sed -i 's|return .*|return {line}|' mean.py && {test}"),
        };
        Project {
            files: vec![
                ("mean.py", MEAN),
                ("test_mean.py", TEST_MEAN),
                ("README", README),
            ],
            test,
            env: vec![("PYTHONDONTWRITEBYTECODE", "1")],
            fixes: [
                fix("careful", "sum(values) / len(values) if values else 0"),
                fix("bold", "sum(values) / max(len(values), 1)"),
            ],
        }
    }

    fn in_shell() -> Project {
        let test = "sh test_greet.sh";
        let fix = |vault, line: &str| Fix {
            vault,
            command: format!("sed -i 's|.*|{line}|' greet.sh && {test}"),
        };
        Project {
            files: vec![
                ("greet.sh", GREET),
                ("test_greet.sh", TEST_GREET),
                ("README", README),
            ],
            test,
            env: vec![],
            fixes: [
                fix("careful", r#"echo "hello, ${1:-world}""#),
                fix("bold", r#"printf "hello, %s\\n" "${1-world}""#),
            ],
        }
    }

    /// The name of the file with the bug.
    pub fn faulty_file(&self) -> &str {
        self.files[0].0
    }

    /// The text with the bug.
    pub fn faulty_source(&self) -> &str {
        self.files[0].1
    }

    /// Writes the project and commits it if git is installed; says what it did.
    pub fn write(&self, dir: &Path) -> Result<String> {
        fs::create_dir(dir).map_err(Error::io(format!("cannot make {}", dir.display())))?;
        for (name, text) in &self.files {
            let path = dir.join(name);
            fs::write(&path, text)
                .map_err(Error::io(format!("cannot write {}", path.display())))?;
        }
        let committed = git(dir, &["init", "-q"])
            && git(dir, &["add", "."])
            && git(dir, &["commit", "-q", "-m", "A small project"]);
        Ok(if committed {
            "committed with git".into()
        } else {
            "not committed: git is not installed, and the demo continues without it".into()
        })
    }
}

/// Runs git without this user's configuration.
fn git(dir: &Path, arguments: &[&str]) -> bool {
    let ran = Command::new("git")
        .args(["-c", "user.name=Demo", "-c", "user.email=demo@localhost"])
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    ran.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(dir: &Path, command: &str) -> bool {
        let ran = Command::new("sh")
            .args(["-c", command])
            .current_dir(dir)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        ran.unwrap().success()
    }

    fn fails_until_fixed(project: &Project) {
        for fix in &project.fixes {
            let temp = tempfile::tempdir().unwrap();
            let dir = temp.path().join("project");
            project.write(&dir).unwrap();
            assert!(!shell(&dir, project.test), "the test should fail at first");
            assert!(shell(&dir, &fix.command), "{} should mend it", fix.command);
        }
    }

    #[test]
    fn both_projects_fail_until_fixed() {
        fails_until_fixed(&Project::in_shell());
        if shell(Path::new("/"), "command -v python3") {
            fails_until_fixed(&Project::in_python());
        }
    }
}
