//! Bash is the referee: it runs generated texts where every program is a stub that only notes what it was called with.
//! Of what it called, nothing may have been judged more mildly than it is in plain sight.
//!
//! A longer run: `AVFS_TEST_CASES=20000 cargo test --release -p avfs-policy --test referee`.

mod grammar;
mod milder;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use avfs_policy::Network;

use grammar::Numbers;
use milder::{milder, passes_rule};

/// Programs that are stubs.
const STUBS: &[&str] = &["curl", "git", "mount", "rm", "touch"];
/// Programs that only run others, or copy their input.
const REAL: &[&str] = &["bash", "cat", "env", "nice", "timeout", "xargs"];

/// A directory with nothing but stubs in it, and one to run in.
struct Court {
    directory: tempfile::TempDir,
}

impl Court {
    fn new() -> Court {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let bin = directory.path().join("bin");
        std::fs::create_dir(&bin).expect("a new directory");
        std::fs::create_dir(directory.path().join("work")).expect("a new directory");
        let log = directory.path().join("log");
        for name in STUBS {
            let stub = bin.join(name);
            // One word after another, each with a NUL, and a byte that no word has.
            let text = format!(
                "#!/bin/sh\nprintf '%s\\0' {name} \"$@\" '\u{1}' >> '{}'\n",
                log.display()
            );
            std::fs::write(&stub, text).expect("a new file");
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&stub, executable).expect("our file");
        }
        for name in REAL {
            let places = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(name));
            let program = places.iter().find(|program| program.exists());
            let program = program.unwrap_or_else(|| panic!("this test needs {name}"));
            symlink(program, bin.join(name)).expect("a new link");
        }
        Court { directory }
    }

    /// What bash calls when it runs the text.
    fn calls(&self, text: &str) -> Vec<Vec<String>> {
        let path = self.directory.path();
        let log = path.join("log");
        std::fs::write(&log, "").expect("our file");
        // The pipe on descriptor 9 ends when the last process does: what runs in the background is waited for.
        let run = "exec 9>&1 > /dev/null 2>&1; \
            exec timeout -s KILL 20 bash --norc --noprofile -c \"$1\"";
        let output = Command::new("/bin/sh")
            .args(["-c", run, "sh"])
            .arg(format!("ulimit -t 10 -f 2048; {text}"))
            .env_clear()
            .env("PATH", path.join("bin"))
            .current_dir(path.join("work"))
            .stdin(Stdio::null())
            .output();
        assert!(output.is_ok(), "this test needs sh: {output:?}");
        let log = String::from_utf8_lossy(&std::fs::read(&log).expect("our file")).into_owned();
        let calls = log.split("\u{1}\0").filter(|call| !call.is_empty());
        calls
            .map(|call| call.split_terminator('\0').map(str::to_owned).collect())
            .collect()
    }
}

/// How many texts to try.
fn cases() -> usize {
    let asked = std::env::var("AVFS_TEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(600)
}

const COMMANDS: &[&str] = &[
    "touch made",
    "rm -rf victim",
    "curl http://x",
    "git push -f",
    "mount -t proc p q",
];

fn complaints(text: &str, call: &[String]) -> Vec<String> {
    let argv: Vec<&str> = call.iter().map(String::as_str).collect();
    let networks = [Network::None, Network::Host].into_iter();
    let mut complaints: Vec<String> = networks
        .filter_map(|network| milder(text, &argv, network))
        .collect();
    if passes_rule(text, &argv[..1]) {
        complaints.push(format!("{text}\n  passes a rule that denies {}", argv[0]));
    }
    complaints
}

#[test]
fn of_what_bash_runs_nothing_was_judged_more_mildly() {
    let court = Court::new();
    let mut numbers = Numbers(5);
    let mut wrong = Vec::new();
    let mut ran = 0;
    let mut tried = 0;
    let first = grammar::texts(0, 0, COMMANDS[1]);
    let first: Vec<String> = first.into_iter().take(cases()).collect();
    let more = cases().saturating_sub(first.len());
    let more = (0..more).map(|_| {
        let command = numbers.pick(COMMANDS);
        grammar::text(&mut numbers, command)
    });
    for text in first.into_iter().chain(more) {
        let calls = court.calls(&text);
        tried += 1;
        ran += usize::from(!calls.is_empty());
        wrong.extend(calls.iter().flat_map(|call| complaints(&text, call)));
    }
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong.join("\n"));
    // The texts would prove nothing if bash did not run what they hide.
    assert!(ran * 10 > tried * 7, "only {ran} of {tried} ran anything");
}

#[test]
fn the_stubs_note_what_they_are_called_with() {
    let court = Court::new();
    let calls = court.calls("git 'a b' \"$(rm -rf x)\" ''; touch");
    assert_eq!(
        calls,
        [
            vec!["rm", "-rf", "x"],
            vec!["git", "a b", "", ""],
            vec!["touch"]
        ]
    );
    assert_eq!(court.calls("/bin/true; ls"), Vec::<Vec<String>>::new());
}
