//! Many agents at work for long: nothing fails that has no reason to, and nothing grows.
//!
//! `AVFS_SOAK_MINUTES=30 AVFS_SOAK_AGENTS=16 cargo test -p agentvfs-cli --test limits soak -- --nocapture` is the whole. The time is cut
//! into parts, between which everything comes to rest and is counted.

mod agents;
mod figures;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use avfs_testkit::{Home, number, wait_for};

use agents::{Agent, Say};
use figures::{Figures, SOON};

use crate::AVFS;
/// A part for every run, for each kind of user.
const SECONDS: u64 = 15;
const AGENTS: u64 = 5;
/// The first of them is the one that later ones are compared with.
const PARTS: u32 = 3;
/// In a shorter run, nothing is counted in the middle.
const LONG: Duration = Duration::from_secs(60);

fn length() -> Duration {
    let minutes = number("AVFS_SOAK_MINUTES", 0);
    Duration::from_secs(if minutes == 0 { SECONDS } else { minutes * 60 })
}

#[test]
fn nothing_fails_and_nothing_grows() {
    let agents = number("AVFS_SOAK_AGENTS", AGENTS);
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "base"]);
        home.ok(&["exec", "--shell", "mkdir -p /w/d && echo base > /w/base"]);
        home.ok(&["vault", "fork", "base", "shared"]);
        home.ok(&["vault", "use", "shared"]);
        let daemon = home.daemon_pid().unwrap();
        let failures = Failures::default();
        let mut counted = Vec::new();
        for part in 0..PARTS {
            let until = Instant::now() + length() / PARTS;
            let rounds = at_work(&home, agents, (part, until), &failures);
            failures.check(&home);
            assert!(rounds >= agents, "nobody got anything done: {rounds}");
            if part == 1 && length() < LONG {
                continue;
            }
            let figures = Figures::at_rest(&home, daemon);
            say(&format!("as {}: {rounds} rounds; {figures}", home.user()));
            counted.push(figures);
        }
        assert_eq!(home.daemon_pid(), Some(daemon), "it is still the same one");
        // Threads that wait for more work, and what they hold, go away by and by: what is left for good has grown.
        let first = &counted[0];
        let mut grown = counted[counted.len() - 1].beyond(first);
        let is_flat = grown.is_empty()
            || wait_for(SOON, || {
                grown = Figures::at_rest(&home, daemon).beyond(first);
                grown.is_empty()
            });
        assert!(is_flat, "as {}: {first}, then {grown}", home.user());
        let checked = home.json(&["fsck"]);
        let is_clean = (&checked["clean"], &checked["journal_valid"]);
        assert_eq!(is_clean, (&true.into(), &true.into()), "{checked:#}");
    }
}

/// All agents work until then; gives how many rounds they made together.
fn at_work(home: &Home, agents: u64, (part, until): (u32, Instant), failures: &Failures) -> u64 {
    std::thread::scope(|scope| {
        let working: Vec<_> = (0..agents)
            .map(|number| scope.spawn(move || Agent::new(home, number, part, failures).work(until)))
            .collect();
        let rounds = working.into_iter().map(|agent| agent.join());
        rounds.map(|rounds| rounds.expect("no panic")).sum()
    })
}

/// What went wrong, by what was said.
#[derive(Default)]
struct Failures(Mutex<BTreeMap<String, (u64, String)>>);

impl Say for Failures {
    fn failed(&self, what: &str, example: String) {
        let mut known = self.0.lock().unwrap();
        known.entry(what.to_owned()).or_insert((0, example)).0 += 1;
    }
}

impl Failures {
    fn check(&self, home: &Home) {
        let known = self.0.lock().unwrap();
        let lines = known
            .iter()
            .map(|(what, (times, example))| format!("{times} times {what}\n    {example}\n"));
        let lines: String = lines.collect();
        assert!(lines.is_empty(), "as {}:\n{lines}", home.user());
    }
}

#[allow(clippy::print_stderr, reason = "figures of a long run are to be read")]
fn say(text: &str) {
    eprintln!("{text}");
}
