//! Bash runs texts that are allowed without a checkpoint: they may not run an unknown command, and write nothing.

use std::path::Path;
use std::process::{Command, Stdio};

use avfs_policy::{Action, Network};
use proptest::prelude::*;

use crate::support::{properties, shell};

/// Ways to nest text, with every kind of quoting. For bash the inner text is a command or data.
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

/// Innermost commands and data. `trip` is an unknown program for the policy. In bash it creates a file.
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

/// Runs the text in bash with an empty `PATH`. Returns the names of the files that it created.
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
