//! Properties of decisions on any text: no panic, no stack overflow, no `allow` for text that cannot be parsed.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use avfs_policy::{Action, CommandForm, Decision, Network, Request, Rules, decide};
use proptest::prelude::*;

use crate::fragments::FRAGMENTS;
use crate::support::{self, permissive, properties, shell_under};

static PERMISSIVE: LazyLock<Rules> = LazyLock::new(permissive);

fn shell(text: &str) -> Decision {
    support::shell(text, Network::None)
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(FRAGMENTS);
    let spaced =
        (piece, any::<bool>()).prop_map(
            |(p, space)| {
                if space { format!("{p} ") } else { p.to_owned() }
            },
        );
    prop::collection::vec(spaced, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(properties(12_000))]

    #[test]
    fn any_bytes_are_decided(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        shell(&text);
        let argv: Vec<Vec<u8>> = bytes.split(|b| *b == b' ').map(<[u8]>::to_vec).collect();
        let request = Request {
            command: CommandForm::Argv(&argv),
            cwd: &bytes,
            network: Network::Host,
            env: &[(bytes.clone(), bytes.clone())],
        };
        decide(&Rules::defaults(), &request);
    }

    /// Appending to a text never makes the verdict weaker.
    #[test]
    fn a_compound_is_as_strict_as_its_parts(left in texts(), right in texts()) {
        let both = shell(&format!("{left}\n{right}"));
        let (left, right) = (shell(&left), shell(&right));
        // Two texts that are no programs may well be one together, a quote opened here and closed there.
        if left.rule != "default:unparseable" && right.rule != "default:unparseable" {
            prop_assert!(both.action >= left.action, "{both:#?}");
            let understood = both.rule != "default:unparseable" && !left.parts.is_empty();
            prop_assert!(!understood || left.categories.is_subset(both.categories), "{both:#?}");
        }
    }

    /// No rule that allows a category allows text that cannot be parsed.
    #[test]
    fn what_cannot_be_parsed_is_never_allowed(text in texts()) {
        let unparsed = shell(&text).parts.iter().any(|part| part.rule == "default:unparseable");
        let decision = shell_under(&PERMISSIVE, &text, Network::None);
        prop_assert!(!unparsed || decision.action >= Action::RequireApproval, "{decision:#?}");
    }

    #[test]
    fn a_decision_is_a_function_of_its_request(text in texts()) {
        prop_assert_eq!(shell(&text), shell(&text));
    }
}

/// Constructs around commands, which must not hide them.
const AROUND_COMMANDS: &[(&str, &str)] = &[
    ("( ", " )"),
    ("$(", ")"),
    ("echo $(", ")"),
    ("echo \"$(", ")\""),
    ("cat <(", ")"),
    ("{ ", "; }"),
    ("if true; then ", "; fi"),
    ("if ", "; then ls; fi"),
    ("while true; do ", "; done"),
    ("for x in a; do ", "; done"),
    ("for ((;;)); do ", "; done"),
    ("case x in x) ", ";; esac"),
    ("case x in x) ", " esac"),
    ("f() { ", "; }"),
    ("! ", ""),
    ("coproc ", ""),
    ("time ", ""),
    ("env ", ""),
    ("sudo ", ""),
    ("eval ", ""),
    ("ls | ", ""),
    ("ls && ", ""),
    ("ls; ", ""),
    ("ls\n", ""),
];

/// Constructs around data.
const AROUND_DATA: &[(&str, &str)] = &[
    ("(", ")"),
    ("((", "))"),
    ("echo $((", "))"),
    ("echo $[", "]"),
    ("echo ${x:-", "}"),
    ("echo \"${x:-", "}\""),
    ("[[ ( ", " ) ]]"),
    ("[[ ! ", " ]]"),
    ("x=(", ")"),
    ("a[", "]=1"),
    ("`", "`"),
    ("echo {a,", "}"),
    ("\\", ""),
    ("'", "'"),
    ("\"", "\""),
    ("<<E\n", "E\n"),
    ("$'", "'"),
];

#[test]
fn deep_nesting_neither_overflows_nor_hangs() {
    let commands = AROUND_COMMANDS.iter().map(|nest| (nest, true));
    let data = AROUND_DATA.iter().map(|nest| (nest, false));
    for ((open, close), hides) in commands.chain(data) {
        for depth in [4, 9, 17, 40, 1_000, 50_000] {
            for closed in [true, false] {
                let tail = if closed {
                    close.repeat(depth)
                } else {
                    String::new()
                };
                let text = format!("{}rm -rf x{tail}", open.repeat(depth));
                let start = Instant::now();
                let decision = shell(&text);
                let took = start.elapsed();
                let what = format!("{open:?} x {depth}, closed: {closed}");
                assert!(took < Duration::from_secs(10), "{what}: {took:?}");
                assert!(
                    !hides || decision.action > Action::Allow,
                    "{what}: {decision:#?}"
                );
            }
        }
    }
}

#[test]
fn a_wrapper_in_a_wrapper_is_followed_until_it_is_too_deep() {
    assert_eq!(
        shell(&format!("{}git push", "env ".repeat(10))).rule,
        "default:publishing"
    );
    assert_eq!(
        shell(&format!("{}ls", "env ".repeat(100))).rule,
        "default:unparseable"
    );
}

#[test]
fn long_scripts_are_decided_in_reasonable_time() {
    let line = "if [ -f \"$x\" ]; then cargo test --package \"$(basename \"$x\")\" | tail; fi\n";
    let start = Instant::now();
    let decision = shell(&line.repeat(200));
    assert_eq!(
        decision.action,
        Action::AllowWithCheckpoint,
        "{:?}",
        decision.reason
    );
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(shell(&"ls\n".repeat(200_000)).rule, "default:unparseable");
}
