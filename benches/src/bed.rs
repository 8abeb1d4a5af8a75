//! A home, a daemon and a directory for one run, and timing.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use avfs_api::client::Client;
use avfs_api::daemon_paths::DaemonPaths;
use avfs_api::wire::{Envelope, Exec};

pub struct Bed {
    avfs: PathBuf,
    /// All files of the run; on the filesystem of the vaults, so that native figures are comparable.
    pub directory: tempfile::TempDir,
}

impl Bed {
    pub fn make() -> Bed {
        let avfs = std::env::current_exe()
            .expect("this program has a path")
            .with_file_name("avfs");
        assert!(
            avfs.exists(),
            "build it first: cargo build --release -p agentvfs-cli"
        );
        let base =
            std::env::var_os("AVFS_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let directory = tempfile::Builder::new()
            .prefix("avfs-bench-")
            .tempdir_in(base)
            .expect("a directory for the run");
        Bed { avfs, directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn binary(&self) -> PathBuf {
        self.avfs.clone()
    }

    /// The directory of the archive that tools unpack.
    pub fn packed(&self) -> String {
        self.path("packed").to_str().expect("plain path").to_owned()
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.avfs);
        command
            .env("AVFS_HOME", self.path("home"))
            .env_remove("AVFS_VAULT")
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::null());
        command
    }

    /// Runs `avfs` with these arguments; returns its output if it fails.
    pub fn try_avfs(&self, words: &[&str]) -> Result<(), String> {
        let output = self.command().args(words).output().expect("avfs runs");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Runs `avfs` with these arguments; it must succeed.
    pub fn avfs(&self, words: &[&str]) -> Output {
        let output = self.command().args(words).output().expect("avfs runs");
        assert!(
            output.status.success(),
            "avfs {words:?}: {}{}",
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&output.stdout)
        );
        output
    }

    /// How long `avfs` with these arguments takes, from start to exit.
    pub fn cli(&self, words: &[&str]) -> Duration {
        timed(|| drop(self.avfs(words)))
    }

    /// A connection of our own to the daemon.
    pub fn client(&self) -> Client {
        let place = DaemonPaths::new(&self.path("home"), None).expect("the home has a place");
        Client::connect(&place).expect("the daemon is up")
    }

    /// Runs a shell text in the vault and returns its envelope; it must succeed.
    pub fn shell(&self, vault: &str, text: &str) -> Envelope {
        let request = Exec {
            shell: Some(text.into()),
            timeout_ms: Some(600_000),
            ..Exec::default()
        };
        let envelope = self
            .client()
            .exec(vault, &request, &mut |_| ControlFlow::Continue(()))
            .expect("the daemon answers");
        assert!(envelope.success, "{text}: {envelope:?}");
        envelope
    }

    pub fn who(&self) -> &'static str {
        let id = Command::new("id").arg("-u").output().expect("id runs");
        if id.stdout == b"0\n" {
            "root"
        } else {
            "an ordinary user"
        }
    }

    pub fn machine(&self) -> String {
        let shell = |text: &str| {
            let output = Command::new("sh")
                .args(["-c", text])
                .output()
                .expect("sh runs");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        format!(
            "kernel {}, {} cores, {} on {}, load {}\n",
            shell("uname -r"),
            shell("nproc"),
            shell(&format!(
                "stat -f -c %T {}",
                self.directory.path().display()
            )),
            self.directory.path().display(),
            shell("cut -d' ' -f1-3 /proc/loadavg"),
        )
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // The directory is removed next, so a daemon that does not stop cannot continue.
        let _ = self.command().args(["daemon", "stop"]).output();
    }
}

pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The median of `rounds` timings of `work`, in milliseconds.
pub fn median_ms(rounds: usize, mut work: impl FnMut(usize) -> Duration) -> f64 {
    let mut times: Vec<Duration> = (0..rounds).map(&mut work).collect();
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// A tree of `files` files of 4 KB, a hundred to a directory.
pub fn make_tree(top: &Path, files: usize) {
    let mut content = vec![0u8; 4096];
    for number in 0..files {
        let directory = top.join(format!("d{:03}/e{:02}", number / 1000, number / 100 % 10));
        if number % 100 == 0 {
            std::fs::create_dir_all(&directory).expect("a directory");
        }
        // All files differ, and none compresses well.
        let mut state = number as u64 + 1;
        for byte in content.iter_mut() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = b'a' + ((state >> 40) % 26) as u8;
        }
        std::fs::write(directory.join(format!("f{number}.txt")), &content).expect("a file");
    }
}

pub fn host(words: &[&str]) {
    let status = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the command runs");
    assert!(status.success(), "{words:?}");
}

/// Waits until the daemon was idle for a while and has freed its caches.
pub fn rest() {
    std::thread::sleep(Duration::from_secs(12));
}

/// The caches that the kernel drops.
pub enum Caches {
    Pages,
    All,
}

/// Drops the kernel's caches. Only root can.
pub fn drop_caches(which: Caches) -> std::io::Result<()> {
    host(&["sync"]);
    let which = match which {
        Caches::Pages => "1",
        Caches::All => "3",
    };
    std::fs::write("/proc/sys/vm/drop_caches", which)
}

/// Whether the host has a program.
pub fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|output| output.status.success())
}
