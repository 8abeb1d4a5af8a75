//! Vaults while something is at work in them, through the real binary, as every user this test can be.

mod beside;
mod commits;
mod documents;
mod editor;
mod mount_options;
mod mounts;
mod mounts_lost;
mod overlap;
mod verbs;

use std::process::{Child, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use avfs_testkit::{Home, SOON, wait_for};

/// A command that runs in the vault `v` until it is told to end.
struct Worker<'a> {
    home: &'a Home,
    child: Option<Child>,
}

impl Worker<'_> {
    /// Starts shell text that loops until /tmp/stop is there; `body` is one turn.
    fn start<'a>(home: &'a Home, before: &str, body: &str) -> Worker<'a> {
        // Another one may have been up in this vault before.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let script = format!(
            "rm -f /tmp/stop; {before}; echo {number} > /tmp/up; \
             while [ ! -e /tmp/stop ]; do {body}; sleep 0.005; done"
        );
        let child = home
            .command(&["--json", "proxy", "exec", "--shell", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let worker = Worker {
            home,
            child: Some(child),
        };
        let said = format!("{number}\n");
        let up = || home.avfs(&["cat", "/tmp/up"]).stdout == said.as_bytes();
        assert!(wait_for(SOON, up), "it runs, as {}", home.user());
        worker
    }

    /// Tells it to end, and gives the envelope.
    fn stop(mut self) -> serde_json::Value {
        self.home.ok(&["write", "/tmp/stop", ""]);
        let output = self.finish().expect("it is still there");
        serde_json::from_slice(&output.stdout).expect("an envelope")
    }

    fn finish(&mut self) -> Option<Output> {
        let child = self.child.take()?;
        Some(child.wait_with_output().expect("it ends"))
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if self.child.is_some() {
            let _ = self.home.avfs(&["write", "/tmp/stop", ""]);
            let _ = self.finish();
        }
    }
}

/// The causes of the vault's versions, oldest first.
fn causes(home: &Home) -> Vec<String> {
    let log = home.json(&["vault", "log", "-n", "1000"]);
    let versions = log.as_array().expect("a list").iter();
    versions
        .rev()
        .map(|it| it["cause"].as_str().expect("a cause").to_owned())
        .collect()
}
