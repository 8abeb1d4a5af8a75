//! Strings that cannot be parsed, by the million: no panic, and never `allow`, whatever the rules.
//!
//! `AVFS_STRINGS=1000000` asks for the million; without it a part of some seconds is run, always the same.

mod pieces;

use std::panic::{AssertUnwindSafe, catch_unwind};

use avfs_policy::{
    Action, Category, CommandForm, Decision, Level, Network, Request, RuleFile, Rules, decide,
};
use pieces::PIECES;

/// Whole scripts to be spoiled.
const SCRIPTS: &[&str] = &[
    "set -e\nfor f in *.rs; do\n  if grep -q TODO \"$f\"; then echo \"$f: $(wc -l < \"$f\")\"; fi\ndone | sort > out\n",
    "f() { local x=${1:-a}; case $x in a|b) ls;; *) cat <<E\n$x `id`\nE\n;; esac; }\nf \"$@\" 2>&1 &\n",
    "[[ -f a && $x =~ ^(b|c)+$ ]] || { echo $((1 + (2 << 3))) <(ls) >| o; }\nx=(1 'two' \"$3\") y+=z\n",
    "while IFS= read -r l; do printf '%s\\n' \"${l//a/b}\" $'\\x41'; done < <(git log --oneline | head -n 5)\n",
    "git commit -m \"$(cat <<'EOF'\nfix: don't (ever)\nEOF\n)\" && git push origin main; until false; do break; done\n",
    "if ! cd sub && make -j4; then exit 1; elif [ -d x ]; then rm -rf x; else :; fi; coproc cat; time ls {a,b}/*\n",
];

/// A generator of numbers, so that a run can be repeated.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Pieces strung together, bytes at random, or a script with some damage.
    fn text(&mut self) -> String {
        match self.below(8) {
            0 => {
                let length = self.below(40);
                let bytes: Vec<u8> = (0..length).map(|_| self.next() as u8).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            1..=4 => {
                let length = self.below(24);
                let piece = |numbers: &mut Numbers| {
                    let space = if numbers.below(2) == 0 { " " } else { "" };
                    format!("{}{space}", PIECES[numbers.below(PIECES.len())])
                };
                (0..length).map(|_| piece(self)).collect()
            }
            _ => self.spoiled(),
        }
    }

    fn spoiled(&mut self) -> String {
        let script = SCRIPTS[self.below(SCRIPTS.len())];
        let mut characters: Vec<char> = script.chars().collect();
        for _ in 0..=self.below(3) {
            let at = self.below(characters.len());
            let to = at + self.below(characters.len() - at);
            match self.below(5) {
                0 => drop(characters.drain(at..(at + 3).min(to + 1))),
                1 => characters.truncate(at.max(1)),
                2 => characters.swap(at, to),
                3 => {
                    let piece = PIECES[self.below(PIECES.len())].chars();
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
}

fn decided(rules: &Rules, text: &str) -> Decision {
    let request = Request {
        command: CommandForm::Shell(text),
        cwd: b"/workspace",
        network: Network::None,
        env: &[],
    };
    let decision = catch_unwind(AssertUnwindSafe(|| decide(rules, &request)));
    decision.unwrap_or_else(|_| panic!("{text:?} made it panic"))
}

/// Rules that allow all that can be named but what cannot be parsed.
fn permissive() -> Rules {
    let rule =
        |category: Category| format!("[[rule]]\ncategory = \"{category}\"\naction = \"allow\"\n");
    let file = RuleFile {
        level: Level::User,
        name: "permissive".into(),
        text: Category::ALL.into_iter().map(rule).collect(),
    };
    Rules::load(&[file]).expect("they are right")
}

#[test]
fn what_cannot_be_parsed_is_never_allowed() {
    let asked = std::env::var("AVFS_STRINGS").ok();
    let wanted: usize = asked.map_or(20_000, |n| n.parse().expect("AVFS_STRINGS is a number"));
    let (plain, permissive) = (Rules::defaults(), permissive());
    let mut numbers = Numbers(6);
    let (mut unparsed, mut tried) = (0, 0);
    while unparsed < wanted {
        let text = numbers.text();
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
