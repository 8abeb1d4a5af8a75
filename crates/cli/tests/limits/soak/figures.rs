//! What a daemon and its home amount to while nothing is asked of it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use avfs_testkit::{Home, ask, processes_below, status_and_body, status_kib, wait_for};

/// Long enough that threads without work have ended, and memory which only speed needs has been given back.
const REST: Duration = Duration::from_secs(8);
pub const SOON: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How much more there may be of each in the end. Threads of a pool come and go, and a first use of something opens a file.
const SLACK: [(&str, u64); 9] = [
    ("anonymous memory in KiB", 6 << 10),
    ("descriptors", 6),
    ("threads", 4),
    ("mounts of the keeper", 0),
    ("mounts of the host", 0),
    ("layers", 0),
    ("temporary files", 0),
    ("processes", 0),
    // Tables and buffers grow in steps; what is resident also has free pieces between what is in use.
    ("allocated memory in KiB", 1 << 10),
];

pub struct Figures(BTreeMap<&'static str, u64>);

impl Figures {
    /// Waits until what is done in the background is over, then counts.
    pub fn at_rest(home: &Home, daemon: u32) -> Figures {
        let mut before = Figures::of(home, daemon).counts();
        let settled = wait_for(SOON, || {
            std::thread::sleep(REST);
            let now = Figures::of(home, daemon).counts();
            std::mem::replace(&mut before, now) == before
        });
        let figures = Figures::of(home, daemon);
        assert!(settled, "it does not come to rest: {figures}");
        // The least of a few looks: something may just be under way.
        let looks = (0..5).map(|_| {
            std::thread::sleep(LOOK_EVERY);
            Figures::of(home, daemon)
        });
        looks.fold(figures, Figures::least)
    }

    /// All but memory, which a kernel may take and give when it likes.
    fn counts(self) -> BTreeMap<&'static str, u64> {
        let mut counts = self.0;
        counts.retain(|name, _| !name.ends_with("in KiB"));
        counts
    }

    fn least(mut self, other: Figures) -> Figures {
        for (name, count) in &mut self.0 {
            *count = other.0[name].min(*count);
        }
        self
    }

    fn of(home: &Home, daemon: u32) -> Figures {
        let below = processes_below(daemon);
        let keeper = below
            .iter()
            .copied()
            .find(|pid| name(*pid) == "avfs-keeper");
        let mounts = |pid: &str, holding: &str| {
            let text = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
            text.lines().filter(|line| line.contains(holding)).count() as u64
        };
        let at = home.path().to_str().expect("a path of ours is text");
        let of_keeper = keeper.map_or(0, |pid| mounts(&pid.to_string(), ""));
        Figures(BTreeMap::from([
            (SLACK[0].0, memory(daemon)),
            (SLACK[1].0, names(&format!("/proc/{daemon}/fd"))),
            (SLACK[2].0, names(&format!("/proc/{daemon}/task"))),
            (SLACK[3].0, of_keeper),
            (SLACK[4].0, mounts("self", at)),
            (SLACK[5].0, layers(home)),
            (
                SLACK[6].0,
                temporary(&home.avfs_home()) + temporary(&home.runtime_base()),
            ),
            (SLACK[7].0, below.len() as u64),
            (SLACK[8].0, allocated(home)),
        ]))
    }

    /// What there is more of than there was `before`, and more than a little; nothing if nothing is.
    pub fn beyond(&self, before: &Figures) -> String {
        let grown = SLACK
            .iter()
            .filter(|(name, slack)| self.0[name] > before.0[name] + slack);
        let grown = grown.map(|(name, _)| format!("{name}: {} → {}", before.0[name], self.0[name]));
        grown.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = SLACK
            .iter()
            .map(|(name, _)| format!("{name} {}", self.0[name]));
        f.write_str(&each.collect::<Vec<_>>().join(", "))
    }
}

fn memory(pid: u32) -> u64 {
    status_kib(pid, "RssAnon:") + status_kib(pid, "RssShmem:")
}

/// What the daemon's allocator says.
fn allocated(home: &Home) -> u64 {
    let answer = ask(&home.socket(), &[], ("GET", "/metrics"), b"");
    let (_, text) = status_and_body(&answer);
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("avfs_allocated_bytes "));
    let bytes: u64 = value.and_then(|it| it.parse().ok()).expect(&text);
    bytes >> 10
}

fn names(directory: &str) -> u64 {
    fs::read_dir(directory).map_or(0, |names| names.count() as u64)
}

fn name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// Directories of layers, beside the scratch of their vaults.
fn layers(home: &Home) -> u64 {
    let vaults = fs::read_dir(home.avfs_home().join("layers"));
    let vaults = vaults.into_iter().flatten().flatten();
    vaults
        .map(|vault| names(vault.path().to_str().unwrap_or_default()))
        .sum()
}

/// What is called as things are that are not finished.
fn temporary(top: &Path) -> u64 {
    let entries = fs::read_dir(top).into_iter().flatten().flatten();
    let mut found = 0;
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_layers = name == "layers";
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if name.contains("tmp") || name.starts_with(".avfs-") || name.starts_with("listing-") {
            found += 1;
        } else if is_directory && !is_layers {
            found += temporary(&entry.path());
        }
    }
    found
}
