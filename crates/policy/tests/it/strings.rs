//! Random strings that cannot be parsed: no panic, and never `allow`, under any rules.
//!
//! `AVFS_STRINGS=1000000` tries a million of them. The default takes a few seconds, and every run tries the same
//! strings.

use std::panic::{AssertUnwindSafe, catch_unwind};

use avfs_policy::{Action, Decision, Network, Rules};

use crate::fragments::FRAGMENTS;
use crate::support::{Random, permissive, shell_under};

/// Whole scripts, which are then damaged.
const SCRIPTS: &[&str] = &[
    "set -e\nfor f in *.rs; do\n  if grep -q TODO \"$f\"; then echo \"$f: $(wc -l < \"$f\")\"; fi\ndone | sort > out\n",
    "f() { local x=${1:-a}; case $x in a|b) ls;; *) cat <<E\n$x `id`\nE\n;; esac; }\nf \"$@\" 2>&1 &\n",
    "[[ -f a && $x =~ ^(b|c)+$ ]] || { echo $((1 + (2 << 3))) <(ls) >| o; }\nx=(1 'two' \"$3\") y+=z\n",
    "while IFS= read -r l; do printf '%s\\n' \"${l//a/b}\" $'\\x41'; done < <(git log --oneline | head -n 5)\n",
    "git commit -m \"$(cat <<'EOF'\nfix: don't (ever)\nEOF\n)\" && git push origin main; until false; do break; done\n",
    "if ! cd sub && make -j4; then exit 1; elif [ -d x ]; then rm -rf x; else :; fi; coproc cat; time ls {a,b}/*\n",
];

/// Concatenated fragments, random bytes, or a damaged script.
fn text(random: &mut Random) -> String {
    match random.below(8) {
        0 => {
            let length = random.below(40);
            let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        1..=4 => {
            let length = random.below(24);
            let piece = |random: &mut Random| {
                let space = if random.below(2) == 0 { " " } else { "" };
                format!("{}{space}", random.pick(FRAGMENTS))
            };
            (0..length).map(|_| piece(random)).collect()
        }
        _ => damaged(random),
    }
}

fn damaged(random: &mut Random) -> String {
    let script = random.pick(SCRIPTS);
    let mut characters: Vec<char> = script.chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(characters.len());
        let to = at + random.below(characters.len() - at);
        match random.below(5) {
            0 => drop(characters.drain(at..(at + 3).min(to + 1))),
            1 => characters.truncate(at.max(1)),
            2 => characters.swap(at, to),
            3 => {
                let piece = random.pick(FRAGMENTS).chars();
                drop(characters.splice(at..at, piece));
            }
            _ => drop(characters.drain(..at)),
        }
        if characters.is_empty() {
            break;
        }
    }
    characters.into_iter().collect()
}

fn decided(rules: &Rules, text: &str) -> Decision {
    let decision = catch_unwind(AssertUnwindSafe(|| shell_under(rules, text, Network::None)));
    decision.unwrap_or_else(|_| panic!("{text:?} made it panic"))
}

#[test]
fn what_cannot_be_parsed_is_never_allowed() {
    let asked = std::env::var("AVFS_STRINGS").ok();
    let wanted: usize = asked.map_or(20_000, |n| n.parse().expect("AVFS_STRINGS is a number"));
    let (plain, permissive) = (Rules::defaults(), permissive());
    let mut random = Random(6);
    let (mut unparsed, mut tried) = (0, 0);
    while unparsed < wanted {
        let text = text(&mut random);
        tried += 1;
        let decision = decided(&plain, &text);
        let parts = decision.parts.iter();
        if parts.clone().any(|part| part.rule == "default:unparseable") {
            unparsed += 1;
            let allowed = decided(&permissive, &text);
            assert!(
                decision.action.min(allowed.action) >= Action::RequireApproval,
                "{text:?}\n{decision:#?}\n{allowed:#?}"
            );
        }
        assert!(tried < 10 * wanted + 1000, "hardly anything is unparseable");
    }
    assert!(tried > unparsed + unparsed / 10, "hardly anything parses");
}
