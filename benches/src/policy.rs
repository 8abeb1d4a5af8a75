//! The cost of a decision: an argv, a line of shell, a script of 200 lines.

use avfs_policy::{CommandForm, Level, Network, Request, RuleFile, Rules, decide};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 200;

/// A realistic script: functions, loops, conditions, here-documents, and no line twice.
const SCRIPT: &str = include_str!("policy/release.sh");

pub fn measure() {
    println!("\n## deciding (budget: 50 µs an argv, 300 µs a script of 200 lines)\n");
    let argv: Vec<Vec<u8>> = ["git", "-C", "/workspace/repo", "commit", "-m", "fix: it"]
        .map(|word| word.as_bytes().to_vec())
        .into();
    assert_eq!(SCRIPT.lines().count(), 200);
    let rules = Rules::load(&[written_rules()]).expect("they are right");
    for (name, rules) in [("defaults", Rules::defaults()), ("50 written rules", rules)] {
        for (what, command) in [
            ("argv", CommandForm::Argv(&argv)),
            (
                "one line",
                CommandForm::Shell("cd sub && cargo test 2>&1 | tail -20"),
            ),
            ("200 lines", CommandForm::Shell(SCRIPT)),
        ] {
            println!("{name}, {what}: {:?}", median(&rules, command));
        }
    }
}

fn median(rules: &Rules, command: CommandForm<'_>) -> Duration {
    let request = Request {
        command,
        cwd: b"/workspace",
        network: Network::None,
        env: &[],
    };
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            black_box(decide(rules, black_box(&request)));
            started.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

fn written_rules() -> RuleFile {
    let rule = |i: usize| {
        format!("[[rule]]\ncommand = [\"tool{i}\", \"run\"]\naction = \"require_approval\"\n")
    };
    RuleFile {
        level: Level::User,
        name: "bench".into(),
        text: (0..50).map(rule).collect(),
    }
}
