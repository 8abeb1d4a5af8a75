//! Generated texts that hide a command are judged as strictly as the plain command, except as `strictness` says. No
//! text avoids a rule that denies its command.

use crate::grammar::{COMMANDS, texts};
use crate::strictness::{milder, passes_rule};
use crate::support::{NETWORKS, cases};

/// Different texts for each command.
const TEXTS: u32 = 600;

#[test]
fn no_generated_text_weakens_a_verdict() {
    let mut weaker = Vec::new();
    for command in COMMANDS {
        let argv: Vec<&str> = command.split(' ').collect();
        let texts = texts(cases(TEXTS) as usize, 12, command);
        assert!(texts.len() >= 350, "{}", texts.len());
        for text in &texts {
            for network in NETWORKS {
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
        let texts = texts(cases(TEXTS) as usize, 12, command);
        passed.extend(texts.into_iter().filter(|text| passes_rule(text, denied)));
    }
    assert!(passed.is_empty(), "{}: {passed:#?}", passed.len());
}
