//! Texts generated from bash's grammar: whatever they do to hide a command, they are judged as strictly as the command
//! is in plain sight, but for the exceptions that `milder` names, and no rule that denies the command is passed.

mod grammar;
mod milder;

use avfs_policy::Network;

use milder::{milder, passes_rule};

/// Different texts for each command. `AVFS_TEST_CASES` asks for more.
fn count() -> usize {
    let asked = std::env::var("AVFS_TEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(600)
}

/// Commands of every strictness.
const COMMANDS: &[&str] = &[
    "touch made",
    "rm -rf victim",
    "curl http://x",
    "git push -f",
    "mount -t proc p q",
];

#[test]
fn no_generated_text_weakens_a_verdict() {
    let mut weaker = Vec::new();
    for command in COMMANDS {
        let argv: Vec<&str> = command.split(' ').collect();
        let texts = grammar::texts(count(), 12, command);
        assert!(texts.len() >= 350, "{}", texts.len());
        for text in &texts {
            for network in [Network::None, Network::Host] {
                weaker.extend(milder(text, &argv, network));
            }
        }
    }
    assert!(weaker.is_empty(), "{}: {}", weaker.len(), weaker.join("\n"));
}

#[test]
fn no_generated_text_passes_a_rule_that_denies_its_command() {
    let mut passed = Vec::new();
    for (command, denied) in [
        ("rm -rf victim", &["rm"] as &[&str]),
        ("git push -f", &["git", "push"]),
    ] {
        let texts = grammar::texts(count(), 12, command);
        passed.extend(texts.into_iter().filter(|text| passes_rule(text, denied)));
    }
    assert!(passed.is_empty(), "{}: {passed:#?}", passed.len());
}
