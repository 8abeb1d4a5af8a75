//! Attempts from inside a sandbox, what is expected of each, and whether it came so.

use crate::{World, succeeded};
use serde_json::{Value, json};

const CODE: &str = include_str!("../scripts/network.py");

/// An attempt with what is expected: how its outcome begins, and which host and rule are in the journal.
pub struct Attack {
    attempt: Value,
    outcomes: &'static [&'static str],
    noted: Option<(String, &'static str)>,
}

pub const REFUSED: &[&str] = &["HTTP/1.1 403", "HTTP/1.1 400", "HTTP/1.0 40"];
pub const MALFORMED: &str = "default:malformed";
pub const NO_HOST: &str = "default:no-host";
pub const NOT_LISTED: &str = "default:not-listed";
pub const OTHER_HOST: &str = "default:other-host";

pub fn attack(
    attempt: Value,
    outcomes: &'static [&'static str],
    noted: Option<(&str, &'static str)>,
) -> Attack {
    let noted = noted.map(|(host, rule)| (host.to_owned(), rule));
    Attack {
        attempt,
        outcomes,
        noted,
    }
}

/// A report lists at most a hundred refusals, so this many attacks are done by one command.
const AT_ONCE: usize = 60;

/// Does the attacks, and judges them.
pub fn judge(world: &World, list: &str, attacks: &[Attack]) {
    for some in attacks.chunks(AT_ONCE) {
        judge_some(world, list, some);
    }
}

fn judge_some(world: &World, list: &str, attacks: &[Attack]) {
    let home = &world.home;
    home.ok(&["write", "/network.py", CODE]);
    let attempts: Vec<&Value> = attacks.iter().map(|attack| &attack.attempt).collect();
    home.ok(&["write", "/attempts.json", &json!(attempts).to_string()]);
    let ran = world.run(list, &["python3", "/network.py", "/attempts.json"]);
    let got: Vec<String> = serde_json::from_str(succeeded(&ran)).unwrap();
    let exec = ran["exec"].as_str().unwrap();
    let log = home.json(&["network", "log", exec]);
    let denied = log["execs"][0]["denied"].as_array();
    let denied = denied.unwrap_or_else(|| panic!("{log:#}"));
    let mut wrong = Vec::new();
    for (attack, outcome) in attacks.iter().zip(&got) {
        let expected = attack.outcomes.iter().any(|one| outcome.starts_with(one));
        let noted = attack.noted.as_ref().is_none_or(|(host, rule)| {
            let is_it = |one: &Value| one["host"] == *host && one["rule"] == *rule;
            denied.iter().any(is_it)
        });
        if !expected || !noted {
            wrong.push(format!(
                "{} gave {outcome:?}, noted: {noted}",
                attack.attempt
            ));
        }
    }
    let noted: Vec<_> = denied
        .iter()
        .map(|one| format!("{} {} {}", one["host"], one["port"], one["rule"]))
        .collect();
    assert!(
        wrong.is_empty(),
        "as {}:\n{}\n{}",
        home.user(),
        wrong.join("\n"),
        noted.join("\n")
    );
}
