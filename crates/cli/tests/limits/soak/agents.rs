//! One agent's day: a fork of its own, all verbs on it and on a vault that everybody shares, and the fork's end.

use std::process::Output;
use std::time::Instant;

use avfs_testkit::Home;

/// Told what should not have happened.
pub trait Say: Sync {
    /// `what` is the same for the same fault.
    fn failed(&self, what: &str, example: String);
}

pub struct Agent<'a> {
    home: &'a Home,
    name: String,
    /// Its current vault.
    vault: String,
    dice: u64,
    failures: &'a dyn Say,
    /// What `/w/note` of its vault holds.
    note: String,
    /// Whether this user can mount anything.
    mounts: bool,
    steps: u64,
}

impl<'a> Agent<'a> {
    pub fn new(home: &'a Home, number: u64, part: u32, failures: &'a dyn Say) -> Agent<'a> {
        Agent {
            home,
            name: format!("agent{number}-{part}"),
            vault: String::new(),
            dice: 20_261_116 + number * 7_919 + u64::from(part),
            failures,
            note: String::new(),
            mounts: home.is_root(),
            steps: 0,
        }
    }

    /// Works until then; gives how many forks it made, used and deleted.
    pub fn work(mut self, until: Instant) -> u64 {
        let mut rounds = 0;
        while rounds == 0 || Instant::now() < until {
            self.vault = format!("{}-{rounds}", self.name);
            let vault = self.vault.clone();
            self.ok(&["vault", "fork", "base", &vault]);
            self.begin();
            for _ in 0..12 {
                self.step();
            }
            self.check();
            self.ok(&["vault", "delete", &vault, "--force"]);
            rounds += 1;
        }
        rounds
    }

    fn begin(&mut self) {
        self.note = "first".into();
        self.mine(&["write", "/w/note", "first"]);
        self.mine(&["checkpoint", "save", "first"]);
    }

    fn step(&mut self) {
        self.steps += 1;
        match self.roll(15) {
            0..=2 => self.exec(),
            3 => self.write(),
            4 => self.remove(),
            5 => self.rename(),
            6 => self.go_back(),
            7 => self.job(),
            8 => self.mount(),
            9 => self.look(),
            10..=12 => self.share(),
            _ => self.care(),
        }
    }

    fn exec(&mut self) {
        let text = format!("text {}", self.steps);
        let script = format!(
            "cat /w/note; mkdir -p /w/made && echo x > /w/made/{}; rm -rf /w/old; mv /w/d /w/old; mkdir /w/d; printf '{text}' > /w/note",
            self.steps
        );
        let said = self.mine(&["exec", "--shell", &script]);
        let expected = std::mem::replace(&mut self.note, text);
        self.expect(&said, &expected, "exec sees what was written before");
    }

    fn write(&mut self) {
        self.note = format!("written {}", self.steps);
        let note = self.note.clone();
        self.mine(&["write", "/w/note", &note]);
    }

    fn remove(&mut self) {
        self.mine(&["write", "/w/gone", "soon"]);
        self.mine(&["rm", "/w/gone"]);
    }

    fn rename(&mut self) {
        self.mine(&["write", "/w/before", "here"]);
        self.mine(&["mv", "/w/before", "/w/after"]);
        let said = self.mine(&["cat", "/w/after"]);
        self.expect(&said, "here", "mv");
        self.mine(&["rm", "/w/after"]);
    }

    fn go_back(&mut self) {
        let name = format!("at-{}", self.steps);
        self.mine(&["checkpoint", "save", &name]);
        self.mine(&["exec", "--shell", "echo lost > /w/note; rm -rf /w/d"]);
        self.mine(&["diff", &name]);
        self.mine(&["checkpoint", "restore", &name]);
    }

    fn job(&mut self) {
        let script = "sleep 0.1; echo from a job > /w/job";
        let started = self.mine(&["--json", "job", "start", "--shell", script]);
        let number = serde_json::from_str::<serde_json::Value>(&started).unwrap_or_default();
        let number = number["job_id"].clone();
        // Beside the job, through the same view.
        self.write();
        self.rename();
        self.mine(&["job", "wait", &number.to_string()]);
        let said = self.mine(&["cat", "/w/job"]);
        self.expect(&said, "from a job\n", "a job's work");
    }

    fn mount(&mut self) {
        if !self.mounts {
            return self.look();
        }
        let dir = self.home.path().join(format!("mount-{}", self.vault));
        let text = dir.to_str().expect("a path of ours is text").to_owned();
        self.mine(&["mount", &text]);
        let note = format!("mounted {}", self.steps);
        if std::fs::write(dir.join("w/note"), &note).is_ok() {
            self.note = note;
        }
        let said = self.mine(&["cat", "/w/note"]);
        let expected = self.note.clone();
        self.expect(&said, &expected, "what was written through a mount");
        self.mine(&["unmount", &text]);
        let _ = std::fs::remove_dir(dir);
    }

    fn look(&mut self) {
        self.mine(&["ls", "/w"]);
        self.mine(&["log"]);
        self.mine(&["diff"]);
        self.ok(&["vault", "list"]);
    }

    /// All agents are in this vault at once: none may be in another's way.
    fn share(&mut self) {
        let path = format!("/w/{}", self.name);
        let text = format!("{} {}", self.name, self.steps);
        let shared = |words: &[&str]| {
            let mut all = vec!["--vault", "shared"];
            all.extend(words);
            self.ok(&all)
        };
        shared(&["write", &path, &text]);
        let seen = shared(&["exec", "--shell", &format!("sleep 0.02; cat {path}")]);
        shared(&["mv", &path, &format!("{path}.moved")]);
        let moved = shared(&["cat", &format!("{path}.moved")]);
        shared(&["rm", &format!("{path}.moved")]);
        self.expect(&seen, &text, "what was written beside others");
        self.expect(&moved, &text, "what was renamed beside others");
    }

    fn care(&mut self) {
        match self.roll(4) {
            0 => self.ok(&["gc", "--grace", "0"]),
            1 => self.ok(&["stats"]),
            2 => self.ok(&["compact"]),
            _ => self.ok(&["quota"]),
        };
    }

    fn check(&mut self) {
        let said = self.mine(&["exec", "--", "cat", "/w/note"]);
        let expected = self.note.clone();
        self.expect(&said, &expected, "what the vault holds in the end");
    }

    /// Asks for something in its own vault.
    fn mine(&self, words: &[&str]) -> String {
        let mut all = vec!["--vault", &self.vault];
        all.extend(words);
        self.ok(&all)
    }

    fn ok(&self, words: &[&str]) -> String {
        let output = self.home.avfs(words);
        if !output.status.success() {
            let (what, example) = told(words, &output);
            self.failures.failed(&what, example);
        }
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn expect(&self, said: &str, expected: &str, what: &str) {
        if said != expected {
            let example = format!("{said:?} in place of {expected:?}, in {}", self.vault);
            self.failures.failed(what, example);
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }
}

/// A failure without the numbers and names that differ each time, and all of it.
fn told(words: &[&str], output: &Output) -> (String, String) {
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let verb = words.iter().filter(|word| !word.starts_with('-'));
    let verb = verb.filter(|word| !word.contains(|c: char| c.is_ascii_digit() || c == '/'));
    let verb: Vec<_> = verb.take(3).copied().collect();
    let error = said.lines().find(|line| line.contains("error"));
    let error = error.unwrap_or("without an error");
    let error: String = error.chars().filter(|c| !c.is_ascii_digit()).collect();
    (format!("{verb:?}: {error}"), format!("{words:?}: {said}"))
}
