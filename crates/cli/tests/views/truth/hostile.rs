//! Hostile commands beside honest ones: all reports are exact, memory is bounded, the honest are served.
//!
//! Three kinds of clients at once, each in vaults of its own: one leaves whatever may confuse a report and compares
//! it with a scan; one wants more of everything than it may have; one is honest, and its waits are measured.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use avfs_testkit::{Home, processes_below};

use super::judge::{differences, reported, scan};
use crate::AVFS;

/// A part for every run; `AVFS_HOSTILE_SECONDS=600 cargo test --test views truth::hostile -- --nocapture` is the whole.
const SECONDS: u64 = 25;
/// No process of ours may need more, whatever commands do.
const MEMORY_KIB: u64 = 150 * 1024;
/// A slow machine is none of ours, but somebody who waits longer is not served. The figures are printed.
const SERVED: Duration = Duration::from_secs(60);
/// What is left behind grows; all of it is to be seen in one output.
const ROUNDS_PER_VAULT: u64 = 6;

fn length() -> Duration {
    let asked = std::env::var("AVFS_HOSTILE_SECONDS").ok();
    Duration::from_secs(asked.and_then(|text| text.parse().ok()).unwrap_or(SECONDS))
}

#[test]
fn hostile_commands_beside_honest_ones() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "honest"]);
        home.ok(&["write", "/storm.py", include_str!("../../scripts/storm.py")]);
        home.ok(&["write", "/scan.py", include_str!("../../scripts/scan.py")]);
        home.ok(&[
            "write",
            "/hostile.py",
            include_str!("../../scripts/hostile.py"),
        ]);
        home.ok(&[
            "write",
            "/exhaust.py",
            include_str!("../../scripts/exhaust.py"),
        ]);
        home.ok(&["mkdir", "/w"]);
        let (until, over) = (Instant::now() + length(), AtomicBool::new(false));
        let outcome = std::thread::scope(|scope| {
            let confusing = scope.spawn(|| confuse(&home, until));
            let exhausting = scope.spawn(|| exhaust(&home, until));
            let waiting = scope.spawn(|| wait(&home, until));
            let memory = scope.spawn(|| watch_memory(&home, &over));
            let results = (confusing.join(), exhausting.join(), waiting.join());
            over.store(true, Ordering::Relaxed);
            (results, memory.join())
        });
        let ((confused, exhausted, waits), memory) = outcome;
        let [confused, exhausted] = [confused, exhausted].map(|rounds| rounds.expect("exact"));
        let (waits, memory) = (waits.expect("served"), memory.expect("watched"));
        report(&home, &waits, &memory);
        assert!(confused > 0 && exhausted > 0, "{confused}, {exhausted}");
        for (name, kib) in &memory {
            assert!(*kib < MEMORY_KIB, "{name}: {kib} KiB, as {}", home.user());
        }
        let longest = waits.last().expect("somebody was served");
        assert!(*longest < SERVED, "{longest:?}, as {}", home.user());
    }
}

/// For a reader of the whole run.
#[allow(clippy::print_stderr, reason = "figures of a long run are to be read")]
fn report(home: &Home, waits: &[Duration], memory: &BTreeMap<String, u64>) {
    let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize];
    eprintln!(
        "as {}: {} honest requests, median {:?}, 99 % {:?}, longest {:?}; most memory in KiB: {memory:?}",
        home.user(),
        waits.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

/// Leaves what may confuse a report, and compares the report with a scan.
fn confuse(home: &Home, until: Instant) -> u64 {
    let mut round = 0;
    while Instant::now() < until {
        let vault = format!("confusing-{}", round / ROUNDS_PER_VAULT);
        if round % ROUNDS_PER_VAULT == 0 {
            home.ok(&["vault", "fork", "honest", &vault]);
        }
        let words = ["--vault", &vault];
        let before = scan(home, &words);
        let seed = round.to_string();
        let command = [
            "exec",
            "--changes-limit",
            "10000",
            "--",
            "/usr/bin/python3",
            "/hostile.py",
            "/w",
            &seed,
        ];
        let envelope = home.json(&[&words[..], &command].concat());
        assert_eq!(envelope["result"]["exit_code"], 0, "{envelope:#}");
        let after = scan(home, &words);
        let expected = differences(&before, &after).into_iter();
        let expected: BTreeMap<_, _> = expected
            .map(|(path, word)| (path, word.to_owned()))
            .collect();
        assert_eq!(
            reported(&envelope),
            expected,
            "seed {round} as {}",
            home.user()
        );
        round += 1;
        if round % ROUNDS_PER_VAULT == 0 {
            home.ok(&["vault", "delete", &vault, "--force"]);
        }
    }
    round
}

/// Wants more of everything than it may have. Each ends with an envelope, and its vault can be deleted.
fn exhaust(home: &Home, until: Instant) -> u64 {
    let mut round = 0;
    while Instant::now() < until {
        home.ok(&["vault", "fork", "honest", "greedy"]);
        home.ok(&["--vault", "greedy", "quota", "set", "max_size_mb", "32"]);
        let seed = round.to_string();
        let limits = [
            "--vault",
            "greedy",
            "exec",
            "--timeout",
            "5s",
            "--memory",
            "128m",
            "--disk",
            "64m",
            "--pids",
            "100",
        ];
        let command = ["--", "/usr/bin/python3", "/exhaust.py", "/w/g", &seed];
        let envelope = home.json(&[&limits[..], &command].concat());
        assert!(envelope["result"]["status"].is_string(), "{envelope:#}");
        home.ok(&["vault", "delete", "greedy", "--force"]);
        round += 1;
    }
    round
}

/// An honest user's day: how long each request took, sorted.
fn wait(home: &Home, until: Instant) -> Vec<Duration> {
    let mut waits = Vec::new();
    let mut timed = |words: &[&str]| {
        let began = Instant::now();
        let said = home.ok(words);
        waits.push(began.elapsed());
        said
    };
    let mut round = 0;
    while Instant::now() < until {
        let text = format!("round {round}");
        timed(&["--vault", "honest", "write", "/w/note", &text]);
        assert_eq!(timed(&["--vault", "honest", "cat", "/w/note"]), text);
        let seen = timed(&["--vault", "honest", "exec", "--", "cat", "/w/note"]);
        assert_eq!(seen, text, "as {}", home.user());
        timed(&["vault", "list"]);
        round += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    waits.sort();
    waits
}

/// The most that each kind of our processes needed, by name.
fn watch_memory(home: &Home, over: &AtomicBool) -> BTreeMap<String, u64> {
    let daemon = home.daemon_pid().expect("it runs");
    let mut most = BTreeMap::new();
    while !over.load(Ordering::Relaxed) {
        for pid in processes_below(daemon).into_iter().chain([daemon]) {
            let Some((name, kib)) = ours(pid, pid == daemon) else {
                continue;
            };
            let known = most.entry(name).or_insert(0);
            *known = kib.max(*known);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    most
}

/// The name and memory of a process that is ours: a command has replaced our binary by its own.
fn ours(pid: u32, is_daemon: bool) -> Option<(String, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
    };
    let name = match is_daemon {
        true => "daemon",
        false => field("Name:")?,
    };
    let kib = |name| field(name)?.split_whitespace().next()?.parse::<u64>().ok();
    let kib = kib("RssAnon:")? + kib("RssShmem:")?;
    (is_daemon || name.starts_with("avfs")).then(|| (name.to_owned(), kib))
}
