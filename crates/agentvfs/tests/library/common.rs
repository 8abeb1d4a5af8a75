//! What the tests of the library share: the `avfs` program, homes of their own, and both faces.

use agentvfs::{Avfs, Builder};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// The directory of the programs that cargo built.
pub fn built() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().to_owned()
}

/// The `avfs` program, built if need be: it is another package's, so cargo does not know that these tests need it.
pub fn avfs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(binary) = std::env::var_os("AVFS_TEST_BIN") {
            return binary.into();
        }
        // Tests of the whole workspace come after it was built. Built alone, it has other features and takes a minute.
        if std::env::var_os("AVFS_TEST_PREBUILT").is_some() {
            return built().join("avfs");
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--offline", "-p", "agentvfs-cli"]);
        let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
        assert!(status.unwrap().success(), "avfs builds");
        built().join("avfs")
    })
}

/// A home of its own. Its daemon, if it has one, ends with it.
pub struct Home {
    dir: TempDir,
}

impl Home {
    pub fn new() -> Home {
        let dir = tempfile::Builder::new().prefix("avfs-").tempdir_in("/tmp");
        let dir = dir.unwrap();
        std::fs::create_dir(dir.path().join("run")).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(dir.path().join("run"), private).unwrap();
        Home { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn builder(&self) -> Builder {
        Avfs::builder()
            .home(self.path().join("home"))
            .runtime_dir(self.path().join("run"))
            .binary(avfs())
    }

    /// A program with the environment of this home.
    pub fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("AVFS_HOME", self.path().join("home"))
            .env("XDG_RUNTIME_DIR", self.path().join("run"))
            .env("AGENTVFS_BIN", avfs())
            .env_remove("AVFS_CLASS")
            .env_remove("AVFS_AGENT");
        command
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // There may be none.
        let _ = self
            .program(avfs())
            .args(["daemon", "stop", "--force"])
            .output();
    }
}

/// Runs a test on either face: a daemon's home, and one in this process.
pub fn on_both(test: impl Fn(&Avfs, &Home)) {
    let home = Home::new();
    test(&home.builder().connect().unwrap(), &home);
    let home = Home::new();
    test(&home.builder().embedded().unwrap(), &home);
}
