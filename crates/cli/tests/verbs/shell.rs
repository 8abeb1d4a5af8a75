//! `avfs shell`: a prompt over the verbs of a vault, for people and for scripts.

use crate::AVFS;
use avfs_testkit::{Home, Person, with_vault};
use std::io::Write;
use std::process::Stdio;

/// Runs lines as a script; gives the exit code, and what was printed.
fn script(home: &Home, lines: &str) -> (Option<i32>, String, String) {
    let mut shell = home.command(&["shell"]);
    shell
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let said = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (said.status.code(), text(&said.stdout), text(&said.stderr))
}

#[test]
fn lines_are_verbs_with_a_directory() {
    with_vault(AVFS, |home| {
        home.ok(&["mkdir", "-p", "/src/deep"]);
        let (code, out, err) = script(
            home,
            "# a comment\n\ncd /src\nwrite 'a file' \"one two\"\nls\ncat 'a file'\ncd deep\npwd\n\
             write f x\ncd ..\ntree\nmv deep/f g\ncd ../src/./deep\nls ..\n!echo made > m; pwd\nls\n",
        );
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!(home.ok(&["cat", "/src/a file"]), "one two");
        assert_eq!(home.ok(&["cat", "/src/g"]), "x");
        assert_eq!(home.ok(&["cat", "/src/deep/m"]), "made\n");
        assert!(
            out.contains("one two") && out.contains("\n/src/deep\n"),
            "{out}"
        );
        assert!(!out.contains('>'), "a script has no prompt: {out}");
    });
}

#[test]
fn an_error_ends_nothing() {
    with_vault(AVFS, |home| {
        let (code, out, err) = script(
            home,
            "cat /nope\nfrobnicate\ncd /nowhere\nwrite 'open\nserve\n--json mcp\npwd --json\n!\nshell\nproxy exec -- true\nwrite /f reached\ncat /f\n",
        );
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("reached"), "{out}{err}");
        for said in [
            "/nope",
            "frobnicate",
            "/nowhere",
            "not closed",
            "serve is not for this prompt",
            "no command",
            "shell is not",
        ] {
            assert!(err.contains(said), "{said}: {err}");
        }
        // The code is that of the last line, as a shell's is.
        assert_eq!(script(home, "!exit 7\n").0, Some(7));
        assert_eq!(script(home, "cat /nope\n").0, Some(1));
        assert_eq!(script(home, "cat /nope\nexit\nwrite /late x\n").0, Some(1));
        assert!(!home.avfs(&["cat", "/late"]).status.success());
        assert_eq!(script(home, "").0, Some(0));
        // A verb that reads standard input reads the rest of the script.
        assert_eq!(script(home, "write /rest\none\ntwo\n").0, Some(0));
        assert_eq!(home.ok(&["cat", "/rest"]), "one\ntwo\n");
    });
}

#[test]
fn a_person_has_a_prompt_history_and_completion() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/workspace/unmistakable", "found it", "-p"]);
        let mut command = home.command(&["shell"]);
        command.env("TERM", "xterm");
        let mut person = Person::start(command);
        person.wait_for("v:/workspace>");
        person.type_keys("pwd\r");
        person.wait_for("/workspace");
        person.wait_for("v:/workspace>");
        person.type_keys("cat unmis\t\r");
        person.wait_for("found it");
        person.wait_for("v:/workspace>");
        person.type_keys("cd /\r");
        person.wait_for("v:/>");
        // Ctrl-C keeps the prompt; the second key up is the line before `cd /`.
        person.type_keys("rubbish\x03");
        person.wait_for("v:/>");
        person.type_keys("nonsense\r");
        person.wait_for("unrecognized subcommand");
        person.wait_for("v:/>");
        person.type_keys("exit\r");
        let (status, text) = person.end();
        assert!(status.code().is_some(), "{text}");
        let history = std::fs::read_to_string(home.avfs_home().join("shell_history")).unwrap();
        assert!(history.contains("cat unmistakable"), "{history}");
    });
}
