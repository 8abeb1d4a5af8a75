//! Bash runs generated texts in a directory where every program is a stub that records its arguments. No command that
//! bash ran may have been judged more mildly in the text than by itself.
//!
//! A longer run: `AVFS_TEST_CASES=20000 cargo test --release -p avfs-policy --test it bash_calls`.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::grammar::{self, COMMANDS};
use crate::strictness::complaints;
use crate::support::{Random, cases};

/// Programs that are stubs.
const STUBS: &[&str] = &["curl", "git", "mount", "rm", "touch"];
/// Programs that only run others, or copy their input.
const REAL: &[&str] = &["bash", "cat", "env", "nice", "timeout", "xargs"];

/// A directory of stubs, and one to run in.
struct Stubs {
    directory: tempfile::TempDir,
}

impl Stubs {
    fn new() -> Stubs {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let bin = directory.path().join("bin");
        std::fs::create_dir(&bin).expect("a new directory");
        std::fs::create_dir(directory.path().join("work")).expect("a new directory");
        let log = directory.path().join("log");
        for name in STUBS {
            let stub = bin.join(name);
            // One word after another, each with a NUL, and a byte that no word has.
            let text = format!(
                "#!/bin/sh\nprintf '%s\\0' {name} \"$@\" '\u{1}' >> '{}'\n",
                log.display()
            );
            std::fs::write(&stub, text).expect("a new file");
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&stub, executable).expect("our file");
        }
        for name in REAL {
            let places = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(name));
            let program = places.iter().find(|program| program.exists());
            let program = program.unwrap_or_else(|| panic!("this test needs {name}"));
            symlink(program, bin.join(name)).expect("a new link");
        }
        Stubs { directory }
    }

    /// The commands that bash calls when it runs the text.
    fn calls(&self, text: &str) -> Vec<Vec<String>> {
        let path = self.directory.path();
        let log = path.join("log");
        std::fs::write(&log, "").expect("our file");
        // The pipe on descriptor 9 ends when the last process does: what runs in the background is waited for.
        let run = "exec 9>&1 > /dev/null 2>&1; \
            exec timeout -s KILL 20 bash --norc --noprofile -c \"$1\"";
        let output = Command::new("/bin/sh")
            .args(["-c", run, "sh"])
            .arg(format!("ulimit -t 10 -f 2048; {text}"))
            .env_clear()
            .env("PATH", path.join("bin"))
            .current_dir(path.join("work"))
            .stdin(Stdio::null())
            .output();
        assert!(output.is_ok(), "this test needs sh: {output:?}");
        let log = String::from_utf8_lossy(&std::fs::read(&log).expect("our file")).into_owned();
        let calls = log.split("\u{1}\0").filter(|call| !call.is_empty());
        calls
            .map(|call| call.split_terminator('\0').map(str::to_owned).collect())
            .collect()
    }
}

/// Texts to try.
const TEXTS: u32 = 600;

#[test]
fn of_what_bash_runs_nothing_was_judged_more_mildly() {
    let stubs = Stubs::new();
    let mut random = Random(5);
    let cases = cases(TEXTS) as usize;
    let mut wrong = Vec::new();
    let mut ran = 0;
    let mut tried = 0;
    let first = grammar::texts(0, 0, COMMANDS[1]);
    let first: Vec<String> = first.into_iter().take(cases).collect();
    let more = cases.saturating_sub(first.len());
    let more = (0..more).map(|_| {
        let command = random.pick(COMMANDS);
        grammar::text(&mut random, command)
    });
    for text in first.into_iter().chain(more) {
        let calls = stubs.calls(&text);
        tried += 1;
        ran += usize::from(!calls.is_empty());
        for call in &calls {
            let argv: Vec<&str> = call.iter().map(String::as_str).collect();
            wrong.extend(complaints(&text, &argv));
        }
    }
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong.join("\n"));
    // The texts would prove nothing if bash did not run what they hide.
    assert!(ran * 10 > tried * 7, "only {ran} of {tried} ran anything");
}

#[test]
fn the_stubs_note_what_they_are_called_with() {
    let stubs = Stubs::new();
    let calls = stubs.calls("git 'a b' \"$(rm -rf x)\" ''; touch");
    assert_eq!(
        calls,
        [
            vec!["rm", "-rf", "x"],
            vec!["git", "a b", "", ""],
            vec!["touch"]
        ]
    );
    assert_eq!(stubs.calls("/bin/true; ls"), Vec::<Vec<String>>::new());
}
