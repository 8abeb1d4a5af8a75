//! The deepest texts are decided on the stack of an ordinary thread, and in reasonable time.

use std::time::{Duration, Instant};

use avfs_policy::{Action, Level, Network, Rules};

use crate::support::{Random, cases, file, shell};

/// The stack of a thread that asks for nothing else. Frames are largest in a debug build.
const STACK: usize = 2 << 20;
/// As deep as commands may be in each other.
const TEXTS: usize = 16;

fn on_an_ordinary_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK);
    let thread = thread.spawn(test).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Nothing allows `rm` without a word.
fn is_not_just_allowed(text: &str) {
    let start = Instant::now();
    let decision = shell(text, Network::None);
    assert!(decision.action > Action::Allow, "{decision:#?}\n{text}");
    assert!(start.elapsed() < Duration::from_secs(20), "{text}");
}

/// Compound commands around a text. Each one is a level of the grammar.
const COMPOUNDS: &[&str] = &[
    "{ BODY\n}",
    "if :; then BODY\nfi",
    "if BODY\nthen :; fi",
    "if :; then :; elif :; then :; else BODY\nfi",
    "for i in 1 2; do BODY\ndone",
    "for ((i = 0; i < 2; i++)); do BODY\ndone",
    "while :; do BODY\ndone",
    "until BODY\ndo :; done",
    "f() { BODY\n}",
    "function g { BODY\n}",
    "coproc { BODY\n}",
    "! { BODY\n}",
    "time { BODY\n}",
    ": | { BODY\n} > /dev/null",
    "[[ ! ( -n x && 1 -eq 1 ) ]] && { BODY\n}",
];
const PARENTHESES: &[&str] = &[
    "( BODY\n)",
    "f() ( BODY\n)",
    "cat <( BODY\n)",
    "cat > >( BODY\n)",
    "true && ( BODY\n)",
];
const CASES: &[&str] = &[
    "case x in x) BODY\n;; esac",
    "case x in (y) ;; *) BODY\nesac",
];
/// Texts in texts. `END` is replaced by a word that is in no other text.
const IN_TEXTS: &[&str] = &[
    "echo \"$(BODY\n)\"",
    "x=$(BODY\n)",
    "echo ${x:-${y:-${z:+$(BODY\n)}}}",
    "echo $(( 1 + (2 * $(BODY\n) ) ))",
    "a[$(BODY\n)]=1",
    "for i in $(BODY\n); do :; done",
    "case $(BODY\n) in *) ;; esac",
    "[[ -n $(BODY\n) ]]",
    "bash <<'END'\nBODY\nEND\n",
    "cat <<END\n$(BODY\n)\nEND\n",
    "sudo env A=b bash <<'END'\nBODY\nEND\n",
];
/// Texts in words. They are short, because every level of quotes makes them longer.
const IN_WORDS: &[&str] = &[
    "bash -c WORD",
    "eval WORD",
    "env nice bash -c WORD",
    "trap WORD EXIT",
];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// This many commands in each other, with compounds around each. `levels` says how many.
fn text(random: &mut Random, texts: usize, levels: impl Fn(&mut Random, usize) -> usize) -> String {
    let mut text = String::from("rm -rf x");
    for at in (0..texts).rev() {
        for _ in 0..levels(random, 9) {
            text = random.pick(COMPOUNDS).replace("BODY", &text);
        }
        for _ in 0..levels(random, 5) {
            text = random.pick(CASES).replace("BODY", &text);
        }
        for _ in 0..levels(random, 6) {
            text = random.pick(PARENTHESES).replace("BODY", &text);
        }
        for _ in 0..levels(random, 9) {
            text = random.pick(COMPOUNDS).replace("BODY", &text);
        }
        if at == 0 {
            return text;
        }
        text = match at + 3 > texts {
            true => random.pick(IN_WORDS).replace("WORD", &quoted(&text)),
            false => {
                let nest = random.pick(IN_TEXTS).replace("END", &format!("E{at}"));
                nest.replace("BODY", &text)
            }
        };
    }
    text
}

#[test]
fn the_deepest_texts_are_decided_on_an_ordinary_stack() {
    on_an_ordinary_stack(|| {
        for seed in 0..u64::from(cases(60)) {
            let mut random = Random(seed);
            let texts = 1 + random.below(TEXTS + 4);
            let most = random.below(10);
            let few = |random: &mut Random, limit: usize| random.below(most.min(limit) + 1);
            is_not_just_allowed(&text(&mut random, texts, few));
            let some = |random: &mut Random, _| usize::from(random.below(texts) < 4);
            is_not_just_allowed(&text(&mut random, texts, some));
            // As many as are parsed, in every text.
            is_not_just_allowed(&text(&mut random, texts, |_, limit| limit));
        }
    });
}

/// Openings that nest, each with a word that looks like its end and is none.
const DISGUISED: &[(&str, &str)] = &[
    ("{ echo }; ", "; }"),
    ("{ x=(a\n}\n); ", "; }"),
    ("{ declare x=(a) }; ", "; }"),
    ("{ cat <(a) }; ", "; }"),
    ("{ [[ a == ]] && b ]]; ", "; }"),
    ("{ [[ a == ]]\n}\n", "; }"),
    ("{ case x in\n}) ", ";; esac; }"),
    ("{ case x in a) ;;\n}) ", ";; esac; }"),
    ("{ for ((;\n}\n;)); do ", "; done; }"),
    ("{ > } a; ", "; }"),
    ("f() { echo }; ", "; }"),
    ("function } { echo }; ", "; }"),
    ("coproc { echo }; ", "; }"),
    ("coproc\n}\n{ ", "; }"),
    ("coproc } { ", "; }"),
    ("coproc ", ""),
    ("coproc a ", ""),
    ("coproc f()\n{ ", "; }"),
    ("coproc coproc { ", "; }"),
    ("if true; then echo fi; ", "; fi"),
    ("for x in done; do echo done; ", "; done"),
    ("while echo done; do ", "; done"),
    ("case x in a) echo esac; ", ";; esac"),
    ("case x in a) ;; esac) ", ";; esac"),
    ("( case x in a) echo esac; ", ";; esac )"),
    ("( case x in esac) ", " )"),
    ("( case x in esac | a) ", ";; esac )"),
    ("( case x in (a) ", ";; esac )"),
    ("( x=(case) ", " )"),
    ("[[ a == ]] && ", " ]]"),
    ("[[ a =~ (;) && ", " ]]"),
    ("[[ a == [[ && ", " ]]"),
    ("[[ ! ( ", " ) ]]"),
];

#[test]
fn words_that_look_like_the_end_of_a_compound_do_not_hide_its_depth() {
    on_an_ordinary_stack(|| {
        for (open, close) in DISGUISED {
            for depth in [3, 7, 15, 21, 30, 300, 3_000] {
                let end = close.repeat(depth);
                is_not_just_allowed(&format!("{}rm -rf x{end}\nrm -rf x", open.repeat(depth)));
            }
        }
    });
}

#[test]
fn sequences_of_any_length_are_not_deep() {
    on_an_ordinary_stack(|| {
        for (piece, end) in [
            ("{ ls; }\n", ""),
            ("( ls )\n", ""),
            ("if true; then ls; fi\n", ""),
            ("for x in a; do ls; done; ", ""),
            ("case x in a) ls;; esac\n", ""),
            ("function f { ls; }\n", ""),
            ("f() {\n  ls\n}\n", ""),
            ("[[ -n a ]] && ls\n", ""),
            ("coproc { ls; }\n", ""),
            ("echo wait for it if case while\n", ""),
            ("ls | ", "ls"),
        ] {
            let text = format!("{}{end}", piece.repeat(100));
            let rule = shell(&text, Network::None).rule;
            assert_ne!(rule, "default:unparseable", "{piece}");
        }
    });
}

#[test]
fn deep_rules_are_refused() {
    on_an_ordinary_stack(|| {
        let many = |text: &str| text.repeat(50_000);
        for text in [
            format!("x = {}{}", many("["), many("]")),
            format!("x = {}1{}", many("{a = "), many("}")),
            format!("{}a = 1", many("a.")),
            format!("[{}a]", many("a.")),
            format!("[[{}a]]", many("a.")),
            format!("[[rule]]\n{}a = 1", many("a.")),
            format!("[[rule]]\ncommand = {}{}", many("["), many("]")),
        ] {
            let loaded = Rules::load(&[file(Level::User, &text)]);
            assert!(loaded.is_err(), "{}", &text[..20]);
        }
    });
}
