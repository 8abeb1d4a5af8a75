//! Folded text and text that is parsed whole give equal findings.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::request::{CommandForm, Network, Request};
use super::state::{Judge, Parsing};
use crate::shell::{fold, mask, run_of};

/// All findings on the text, printed.
fn found(text: &str, parsing: Parsing) -> String {
    let request = Request {
        command: CommandForm::Shell(text),
        cwd: b"/workspace",
        network: Network::Host,
        env: &[],
    };
    let mut judge = Judge::new(&request, true);
    judge.parsing = parsing;
    format!("{:#?}", judge.findings(&request))
}

/// Statements: plain ones, ones that only look plain, and ones with others in them (`%`).
const STATEMENTS: &[&str] = &[
    "ls -la src",
    "git push origin main",
    "rm -rf 'a b' \"$x\" c",
    "x=1 y=\"$z\" env",
    "x=rm",
    "$x -rf y",
    "cat < a > b 2>&1",
    "echo a >> /etc/shadow",
    "make 2> err &> all >&2 >| x",
    "echo 'curl x' | sh",
    "printf %s 'git push' | tee f | bash -s",
    "cat <<E | sh\ncurl x\nE",
    "sh <<< 'git push'",
    "cd /root && ls; cd ..",
    "a | b |& c",
    "a |\n b",
    "a &&\n b ||\n c &",
    "echo {a,b} *.rs [ab] ~/x ~root",
    "echo $(git push) `curl x` ${y:-$(id)} $((1+2)) $[3]",
    "a[1]=x b",
    "a+=x",
    "a=(1 2)",
    "a=(\n b c\n d\n)",
    "echo if for case done } ]] ! time",
    "time ls",
    "! ls",
    "f() { curl x; }",
    "f() (\n curl x\n)",
    "f ()\n{\n ls; }",
    "function g { ls\n}",
    "[[ -f a &&\n -f b ]]",
    "[[ a == b* ]] && ls",
    "((x = 1;\n 2))",
    "for ((i=0; i<3; i++)); do ls\ndone",
    "for i in a b; do %; done",
    "for i\ndo %\ndone",
    "for i in $(ls); do\n%\ndone | sort > o",
    "while %; do %; done < in",
    "until %\ndo\n%\ndone",
    "if %; then\n%\nfi",
    "if ! %; then %\nelif %; then\n%\nelse\n%\nfi",
    "case $x in\na | b) % ;;\n*)\n%\n;;\nesac",
    "case x in\n(a)\n%\nesac",
    "{ %; }",
    "{\n%\n} > o",
    "(%)",
    "( %\n% )",
    "%; %",
    "% && %",
    "% | %",
    "%\n\n# comment\n%",
    "% &",
    "coproc %",
    "coproc\nls -l",
    "echo $(%)",
    "diff <(%) <(ls)",
    "cat > >(%)",
    "echo \\; \\\" \\$x a\\ b",
    "echo 12>x 1 2 3> y 1234567890 > z {fd}> w",
    "echo $'a\\'b' c",
    "echo $\"a\" b",
    "echo \"a \\\" ; b\" 'c\nd' \"e\nf\"",
    "echo a#b # c",
    "\u{a0}ls é \u{100001} x\ry",
    "trap 'git push' EXIT",
    "export A=b PATH=.",
    "alias ll='curl x'",
    "exec 3<>/dev/tcp/h/1",
    "true; ; true",
    "a ;; b",
    "echo )",
    "\"${x:-'}\"",
    "echo ${x!} ${@} \"${open",
    ") ls",
    "then ls",
    "}",
    "fi",
    "",
];

fn scripts() -> impl Strategy<Value = String> {
    let statement = || prop::sample::select(STATEMENTS).prop_map(str::to_owned);
    let nested = statement().prop_recursive(3, 20, 3, move |inner| {
        (statement(), prop::collection::vec(inner, 5)).prop_map(|(frame, fill)| {
            let mut fill = fill.iter();
            frame
                .split('%')
                .map(str::to_owned)
                .reduce(|text, part| text + fill.next().map_or("ls", String::as_str) + &part)
                .unwrap_or_default()
        })
    });
    let joint = prop::sample::select(&["\n", "\n", "\n\n", "; ", " && ", " | ", "&", " ", ""][..]);
    prop::collection::vec((nested, joint), 1..6).prop_map(|statements| {
        let text = |(statement, joint): &(String, &str)| format!("{statement}{joint}");
        statements
            .iter()
            .map(text)
            .collect::<String>()
            .replace('%', "ls")
    })
}

fn cases(usual: u32) -> u32 {
    let asked = std::env::var("AVFS_TEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(6_000), failure_persistence: None, rng_seed: RngSeed::Fixed(6), ..ProptestConfig::default() })]

    #[test]
    fn folding_changes_nothing_that_is_found(text in scripts()) {
        prop_assert_eq!(found(&text, Parsing::Folded), found(&text, Parsing::Whole), "{}", text);
    }
}

/// The property above would also hold if nothing were ever folded.
#[test]
fn what_is_plain_is_folded() {
    let left = |text: &str| {
        let masked = mask(text).unwrap().text;
        let folded = fold(&masked).unwrap();
        let tokens = folded
            .tokens
            .iter()
            .map(|token| match run_of(token.to_str()) {
                Some(_) => "M",
                None => token.to_str(),
            });
        tokens
            .collect::<Vec<_>>()
            .join(" ")
            .replace(" \n", "\n")
            .replace("\n ", "\n")
    };
    assert_eq!(
        left("a b | c && d; e &\nx=1 f > o 2>&1\n\ng 'h i'\n"),
        "M\n"
    );
    assert_eq!(
        left("if a b; then\n c\n d\nelse e; fi"),
        "if M ; then\nM\nelse M ; fi"
    );
    assert_eq!(left("f() {\n a\n b\n}\nf x"), "f ( ) {\nM\n}\nM");
    assert_eq!(left("a\nb | (c)\nd"), "M\nb | ( c )\nM");
    assert!(fold("(a)").is_none() && fold("a $'b'").is_none() && fold("a 'b").is_none());
}
