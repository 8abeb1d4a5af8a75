//! Our reading of shell text against bash itself: what is simply allowed runs nothing unknown and writes nothing.

use std::path::Path;
use std::process::{Command, Stdio};

use avfs_policy::{Action, Network};
use proptest::prelude::*;

use crate::support::{properties, shell};

/// Ways to nest text, for bash a function call or data, with every kind of quoting in between.
const NESTS: &[&str] = &[
    "%",
    "%",
    "%\n%",
    "% ; %",
    "% && %",
    "% | %",
    "(%)",
    "( % )",
    "( ( % ) )",
    "((%))",
    "{ %; }",
    "! %",
    "if %; then %; fi",
    "for i in a; do %; done",
    "case x in x) %;; esac",
    "case x in (x) % ;; esac",
    "f() { %; }; f",
    "echo $(%)",
    "echo $( (%) )",
    "echo \"$(%)\"",
    "echo `%`",
    "echo ${x:-$(%)}",
    "echo ${x:-%}",
    "echo \"${x:-%}\"",
    "echo $((%))",
    "echo $((1 + $(%)))",
    "echo $[%]",
    "echo '%'",
    "echo \"%\"",
    "echo $'%'",
    "echo $\"%\"",
    "echo \\$'%'",
    "echo $$'%'",
    "echo \\'%",
    "echo a\\ #%",
    "echo a #%",
    "echo a#%",
    "# %\n%",
    "echo \\\n%",
    "true <<E\n%\nE\n%",
    "true <<E\n$(%)\nE\n",
    "true <<'E'\n%\nE\n%",
    "true <<-E\n\t%\n\tE\n%",
    "true <<E; %\nx\nE\n%",
    "true <<E\n\\\nE\n%\nE\n",
    "true <<<'%'",
    "true <<< $(%)",
    "true $(true <<E\n%\nE\n)",
    "true $(true <<E\n)\n%\nE\n)",
    "[[ % ]]",
    "[[ x =~ (%) ]]",
    "[[ -n $(%) ]]",
    "x=(% $(%))",
    "x=%",
    "x='%'; eval \"$x\"",
    "eval '%'",
    "true < <(%)",
    "echo <(%)",
    "x=<(%)",
    "case <(%) in x) ;; esac",
    "for i in <(%); do true; done",
    "[[ -e <(%) ]]",
    "echo \"<(%)\"",
    "echo ${x:->(%)}",
    "true > >(%)",
    "true 2> >(%)",
    "a[%]=1",
    "{a,%}",
    "% #",
    "((1<<2)); %",
    "echo $((1<<E)); %\nE",
    "let x=1; %",
    "time %",
    "coproc %",
    "~%",
    "%)",
    "(%",
    "%'",
    "%\"",
    "%`",
    "%\\",
    "%}",
    "% <<E",
    "%\nE\n",
    "esac %",
    "fi; %",
];

/// Commands and data at the bottom. `trip` is unknown to us, and in bash it leaves a file behind.
const LEAVES: &[&str] = &[
    "trip", "trip", "trip", "echo x", "true", "x", "", "trip x", "1", "a b", "E", "'", "\"", "#",
    "\n",
];

fn texts() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(LEAVES).prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        (prop::sample::select(NESTS), prop::collection::vec(inner, 2)).prop_map(|(nest, fill)| {
            let mut fill = fill.iter().cycle();
            nest.split('%')
                .map(str::to_owned)
                .reduce(|text, part| text + fill.next().map_or("", String::as_str) + &part)
                .unwrap_or_default()
        })
    })
}

/// Runs the text in bash with no programs to be found; the names of the files it left behind.
fn files_after(text: &str, directory: &Path) -> Vec<String> {
    let status = Command::new("timeout")
        .args(["-s", "KILL", "5", "bash", "--norc", "-c"])
        .arg("trip() { builtin printf x >| tripped; }; PATH=/nowhere; eval \"$1\"")
        .args(["bash", text])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(
        status.is_ok(),
        "this test needs bash and timeout: {status:?}"
    );
    let names = std::fs::read_dir(directory).expect("the directory was just made");
    names
        .map(|entry| {
            entry
                .expect("a readable entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

proptest! {
    #![proptest_config(properties(10_000))]

    #[test]
    fn what_is_allowed_does_no_more_in_bash_than_we_saw(text in texts()) {
        if text.contains("trip") && shell(&text, Network::None).action == Action::Allow {
            let directory = tempfile::tempdir().unwrap();
            let left = files_after(&text, directory.path());
            prop_assert!(left.is_empty(), "{text:?} left {left:?}");
        }
    }
}

#[test]
fn the_tripwire_works() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(files_after("echo $(trip)", directory.path()), ["tripped"]);
}
