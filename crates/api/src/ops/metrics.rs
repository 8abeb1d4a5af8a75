//! Counters of the daemon in the text format of Prometheus. No path, command or principal is named, and vaults only where they
//! are asked for.

use super::Ask;
use super::failure::Failure;
use crate::wire::{MetricsRead, StatusWord};
use avfs_runtime::{ErrorKind, Select, VaultInfo, VaultName};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The media type of the format.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4";

/// Upper ends of the buckets, in seconds.
const BUCKETS: [f64; 11] = [
    0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0, 300.0,
];

/// Vaults whose commands are counted by name. Those of more vaults are counted together only.
const VAULTS_MAX: usize = 1000;

/// What is counted since the daemon started.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    request_seconds: Mutex<BTreeMap<&'static str, Histogram>>,
    execs: Mutex<BTreeMap<String, u64>>,
    /// Those of each vault, by name and how they ended.
    by_vault: Mutex<BTreeMap<VaultName, BTreeMap<String, u64>>>,
    exec_seconds: Mutex<Histogram>,
    unauthenticated: AtomicU64,
}

#[derive(Clone, Default)]
struct Histogram {
    counts: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        for (count, end) in self.counts.iter_mut().zip(BUCKETS) {
            *count += u64::from(seconds <= end);
        }
        self.count += 1;
        self.sum += seconds;
    }

    fn write(&self, text: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        for (count, end) in self.counts.iter().zip(BUCKETS) {
            let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{end}\"}} {count}");
        }
        let Histogram { count, sum, .. } = self;
        let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{labels}}}"),
        };
        let _ = writeln!(
            text,
            "{name}_sum{labels} {sum}\n{name}_count{labels} {count}"
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Metrics {
    /// Counts a request that was answered, up to the head of its answer.
    pub fn request(&self, operation: &'static str, status: u16, took: Duration) {
        *lock(&self.requests).entry((operation, status)).or_default() += 1;
        let mut seconds = lock(&self.request_seconds);
        seconds.entry(operation).or_default().add(took);
    }

    /// Counts a command of a vault.
    pub fn exec(&self, vault: &VaultName, status: StatusWord, took: Duration) {
        let word = serde_json::to_value(status).ok();
        let word = word.and_then(|word| word.as_str().map(str::to_owned));
        let word = word.unwrap_or_default();
        *lock(&self.execs).entry(word.clone()).or_default() += 1;
        lock(&self.exec_seconds).add(took);
        let mut by_vault = lock(&self.by_vault);
        if by_vault.len() < VAULTS_MAX || by_vault.contains_key(vault) {
            let counts = by_vault.entry(vault.clone()).or_default();
            *counts.entry(word).or_default() += 1;
        }
    }

    /// Forgets the counts of a vault that has ended, or has another name now.
    pub fn forget(&self, vault: &VaultName) {
        lock(&self.by_vault).remove(vault);
    }

    /// Forgets vaults that ended otherwise, such as forks of a speculation.
    fn keep(&self, present: &BTreeSet<VaultName>) {
        lock(&self.by_vault).retain(|vault, _| present.contains(vault));
    }

    /// Writes the counts of the vaults that the caller may see.
    fn write_vaults(&self, text: &mut String, seen: impl Fn(&VaultName) -> bool) {
        let name = "avfs_vault_execs_total";
        head(
            text,
            name,
            "counter",
            "Commands of a vault by how they ended.",
        );
        let by_vault = lock(&self.by_vault);
        for (vault, counts) in by_vault.iter().filter(|(vault, _)| seen(vault)) {
            for (status, count) in counts {
                let _ = writeln!(
                    text,
                    "{name}{{vault=\"{vault}\",status=\"{status}\"}} {count}"
                );
            }
        }
    }

    /// Counts a request without a valid credential.
    pub fn unauthenticated(&self) {
        self.unauthenticated.fetch_add(1, Ordering::Relaxed);
    }

    fn write(&self, text: &mut String) {
        head(
            text,
            "avfs_requests_total",
            "counter",
            "Requests by operation and status.",
        );
        for ((operation, status), count) in lock(&self.requests).iter() {
            let _ = writeln!(
                text,
                "avfs_requests_total{{operation=\"{operation}\",status=\"{status}\"}} {count}"
            );
        }
        let name = "avfs_request_seconds";
        head(text, name, "histogram", "Time until the head of an answer.");
        for (operation, histogram) in lock(&self.request_seconds).iter() {
            histogram.write(text, name, &format!("operation=\"{operation}\""));
        }
        head(
            text,
            "avfs_execs_total",
            "counter",
            "Commands by how they ended.",
        );
        for (status, count) in lock(&self.execs).iter() {
            let _ = writeln!(text, "avfs_execs_total{{status=\"{status}\"}} {count}");
        }
        let name = "avfs_exec_seconds";
        head(
            text,
            name,
            "histogram",
            "Time of commands, from request to report.",
        );
        lock(&self.exec_seconds).write(text, name, "");
        let refused = self.unauthenticated.load(Ordering::Relaxed) as f64;
        let name = "avfs_unauthenticated_requests_total";
        single(
            text,
            name,
            "counter",
            "Requests without a valid credential.",
            refused,
        );
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn single(text: &mut String, name: &str, kind: &str, help: &str, value: f64) {
    head(text, name, kind, help);
    let _ = writeln!(text, "{name} {value}");
}

/// Writes all of them.
pub(crate) fn read(
    ask: &Ask,
    _: Select,
    request: MetricsRead,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut text = String::new();
    let vaults = ask.session.vault_list()?;
    for (name, help, value) in gauges(ask, &vaults) {
        single(&mut text, name, "gauge", help, value);
    }
    ask.app.metrics.write(&mut text);
    let present = vaults.into_iter().map(|info| info.vault.name).collect();
    ask.app.metrics.keep(&present);
    if request.vaults {
        let seen = |name: &VaultName| ask.caller.grant.reaches(name);
        ask.app.metrics.write_vaults(&mut text, seen);
    }
    let written = out.write_all(text.as_bytes());
    written.map_err(|error| Failure::new(ErrorKind::Unavailable, error.to_string()))
}

/// What there is now: name, help and value of each.
fn gauges(ask: &Ask, vaults: &[VaultInfo]) -> Vec<(&'static str, &'static str, f64)> {
    let activity = ask.session.activity();
    let forks = vaults.iter().filter(|info| info.vault.parent.is_some());
    vec![
        ("avfs_vaults", "Vaults.", vaults.len() as f64),
        (
            "avfs_forks",
            "Vaults that are forks of others.",
            forks.count() as f64,
        ),
        (
            "avfs_uptime_seconds",
            "Time since the daemon started.",
            ask.app.started.elapsed().as_secs_f64(),
        ),
        (
            "avfs_running_execs",
            "Commands that run now.",
            activity.running_execs as f64,
        ),
        (
            "avfs_running_jobs",
            "Jobs that run now.",
            activity.running_jobs as f64,
        ),
        (
            "avfs_live_views",
            "Views with a sandbox.",
            activity.live_views as f64,
        ),
        (
            "avfs_mounts",
            "Vaults mounted on the host.",
            activity.mounts as f64,
        ),
        (
            "avfs_store_bytes",
            "Bytes of the store's files.",
            stored(ask.app.place.home()) as f64,
        ),
        (
            "avfs_resident_bytes",
            "Memory of the daemon's own, without files and shared pages.",
            avfs_runtime::resident_bytes() as f64,
        ),
        (
            "avfs_allocated_bytes",
            "Memory that the daemon has allocated and not freed.",
            avfs_runtime::allocated_bytes() as f64,
        ),
    ]
}

/// The sizes of the database, its log, packs and large objects.
fn stored(home: &Path) -> u64 {
    let size = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
    let files = ["store.db", "store.db-wal"].map(|name| size(&home.join(name)));
    let below = |name: &str| {
        let entries = fs::read_dir(home.join(name))
            .into_iter()
            .flatten()
            .flatten();
        entries.map(|entry| size(&entry.path())).sum::<u64>()
    };
    files.iter().sum::<u64>() + below("packs") + below("objects")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_buckets_add_up() {
        let metrics = Metrics::default();
        metrics.request("ls", 200, Duration::from_millis(3));
        metrics.request("ls", 200, Duration::from_secs(400));
        metrics.request("ls", 403, Duration::ZERO);
        let vault = |name: &str| name.parse::<VaultName>().unwrap();
        metrics.exec(&vault("one"), StatusWord::TimedOut, Duration::from_secs(2));
        let mut text = String::new();
        metrics.write(&mut text);
        for line in [
            "avfs_requests_total{operation=\"ls\",status=\"200\"} 2",
            "avfs_requests_total{operation=\"ls\",status=\"403\"} 1",
            "avfs_request_seconds_bucket{operation=\"ls\",le=\"0.002\"} 1",
            "avfs_request_seconds_bucket{operation=\"ls\",le=\"0.005\"} 2",
            "avfs_request_seconds_bucket{operation=\"ls\",le=\"300\"} 2",
            "avfs_request_seconds_bucket{operation=\"ls\",le=\"+Inf\"} 3",
            "avfs_request_seconds_count{operation=\"ls\"} 3",
            "avfs_execs_total{status=\"timed_out\"} 1",
            "avfs_exec_seconds_bucket{le=\"5\"} 1",
            "avfs_exec_seconds_count 1",
            "avfs_unauthenticated_requests_total 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }

    #[test]
    fn vaults_that_are_gone_or_beyond_the_bound_are_not_kept() {
        let metrics = Metrics::default();
        let vault = |number: usize| format!("v{number}").parse::<VaultName>().unwrap();
        for number in 0..VAULTS_MAX + 7 {
            metrics.exec(&vault(number), StatusWord::Exited, Duration::ZERO);
        }
        assert_eq!(lock(&metrics.execs)["exited"], VAULTS_MAX as u64 + 7);
        assert_eq!(lock(&metrics.by_vault).len(), VAULTS_MAX);
        let mut text = String::new();
        let present = [vault(1), vault(2)].into();
        metrics.keep(&present);
        metrics.write_vaults(&mut text, |name| *name == vault(2));
        let lines: Vec<_> = text.lines().filter(|it| !it.starts_with('#')).collect();
        let expected = r#"avfs_vault_execs_total{vault="v2",status="exited"} 1"#;
        assert_eq!(lines, [expected]);
        assert_eq!(lock(&metrics.by_vault).len(), 2);
        metrics.forget(&vault(1));
        assert!(!lock(&metrics.by_vault).contains_key(&vault(1)));
    }
}
