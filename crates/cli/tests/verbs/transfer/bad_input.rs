//! Bad input: a typed error with what and why, nothing half-done, nothing lost.

use super::{at, project, state};
use crate::AVFS;
use avfs_testkit::{Home, ask, with_vault};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

#[test]
fn sources_and_places_that_make_no_sense() {
    with_vault(AVFS, |home| {
        project(home);
        fs::write(at(home, "text"), "no archive").unwrap();
        fs::write(at(home, "text.tar"), "no archive").unwrap();
        fs::write(at(home, "long.tar"), "no archive ".repeat(100)).unwrap();
        home.ok(&["write", "/file", "x"]);
        home.ok(&["ln", "-s", "loop", "/loop"]);
        let before = state(home);
        let (name, path) = (format!("/{}", "x".repeat(256)), "/abc".repeat(1024));
        for (words, kind) in [
            (&["import", "nope"][..], "NotFound"),
            (&["import", "text.tar"], "Invalid"),
            (&["import", "long.tar"], "Invalid"),
            (&["import", "/dev/null"], "Invalid"),
            (&["import", "text/below"], "Invalid"),
            (&["import", "project", "/file"], "Invalid"),
            (&["import", "project", "/file/below"], "Invalid"),
            (&["import", "project", "/loop/below"], "Invalid"),
            (&["import", "project", "/../x"], "Invalid"),
            (&["import", "project", "/a/.."], "Invalid"),
            (&["import", "project", &name], "Invalid"),
            (&["import", "project", &path], "Invalid"),
            (&["import", "project", "/etc"], "Denied"),
            (&["import", "project", "/proc/x"], "Denied"),
            (&["import", "project", "--exclude", "[z-a]"], "Invalid"),
            (&["import", "project", "--exclude", ""], "Invalid"),
            (&["import", "text", "--gitignore"], "Invalid"),
            (&["import", "text", "--git-rev", "HEAD"], "Invalid"),
            (&["--vault", "nope", "import", "project"], "NotFound"),
            (&["--vault", "no/pe", "import", "project"], "Invalid"),
            (&["--vault", "", "import", "project"], "Invalid"),
        ] {
            assert_eq!(home.refused(words).0, kind, "{words:?}");
        }
        assert_eq!(state(home), before);
    });
}

/// One tar entry with exactly this name, kind, target and body.
fn entry(name: &str, kind: u8, target: &str, body: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[108..116].copy_from_slice(b"0000000\0");
    header[116..124].copy_from_slice(b"0000000\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", body.len()).as_bytes());
    header[136..148].copy_from_slice(b"00000000000\0");
    header[148..156].fill(b' ');
    header[156] = kind;
    header[157..157 + target.len()].copy_from_slice(target.as_bytes());
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut whole = header.to_vec();
    whole.extend_from_slice(body);
    whole.resize(whole.len().next_multiple_of(512), 0);
    whole
}

#[test]
fn archives_that_mean_no_good() {
    with_vault(AVFS, |home| {
        let before = state(home);
        let file = |name| entry(name, b'0', "", b"evil");
        let end = vec![0; 1024];
        let through = [entry("d", b'2', "/tmp", b""), file("d/x")].concat();
        for (archive, why) in [
            (file("/etc/passwd"), "absolute"),
            (file("../../etc/passwd"), "not names"),
            (file("a/../b"), "not names"),
            (through, "goes through /d, which is a symlink"),
            (
                [file("f"), file("f/x")].concat(),
                "goes through /f, which is a file",
            ),
            (entry("l", b'1', "/etc/passwd", b""), "outside the archive"),
            (entry("l", b'1', "../x", b""), "outside the archive"),
            (entry("l", b'1', "missing", b""), "not in the archive"),
        ] {
            let honest_first = [file("honest"), archive, end.clone()].concat();
            for bytes in [
                &honest_first[..],
                &honest_first[..honest_first.len() - 1024],
            ] {
                let answer = pipe(home, bytes);
                assert_eq!(answer["error"], "Invalid", "{why}: {answer}");
            }
            let message = pipe(home, &honest_first)["message"].clone();
            assert!(message.as_str().unwrap().contains(why), "{message}");
        }
        assert_eq!(state(home), before, "not even the honest part came in");

        let devices = [
            entry("null", b'3', "", b""),
            entry("disk", b'4', "", b""),
            file("ok"),
        ];
        let answer = pipe(home, &[devices.concat(), end.clone()].concat());
        assert_eq!(answer["skipped"].as_array().unwrap().len(), 2, "{answer}");
        assert_eq!(answer["skipped"][0]["reason"], "it is a device");
        let last = [
            entry("ok", b'0', "", b"first"),
            entry("ok", b'0', "", b"last"),
        ]
        .concat();
        pipe(home, &[last, end].concat());
        assert_eq!(home.ok(&["cat", "/workspace/ok"]), "last");
    });
}

/// Imports an archive from standard input; gives the answer.
fn pipe(home: &Home, bytes: &[u8]) -> serde_json::Value {
    let mut command = home.command(&["--json", "import", "-"]);
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    // Whoever refuses early need not listen to the end.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn names_that_are_none() {
    with_vault(AVFS, |home| {
        home.ok(&["checkpoint", "save", "c"]);
        let before = state(home);
        let long = "x".repeat(129);
        for name in ["a/b", "a b", "..", ".", "", "a\nb", "é", &long] {
            assert_eq!(
                home.refused(&["checkpoint", "save", "--", name]).0,
                "Invalid",
                "{name:?}"
            );
            assert_eq!(
                home.refused(&["vault", "create", "--", name]).0,
                "Invalid",
                "{name:?}"
            );
            assert_eq!(
                home.refused(&["vault", "fork", "v", "--", name]).0,
                "Invalid"
            );
        }
        assert_eq!(home.refused(&["vault", "create", "v"]).0, "AlreadyExists");
        assert_eq!(
            home.refused(&["checkpoint", "save", "c"]).0,
            "AlreadyExists"
        );
        assert_eq!(home.refused(&["vault", "use", "nope"]).0, "NotFound");
        assert_eq!(
            home.refused(&["vault", "delete", "nope", "-y"]).0,
            "NotFound"
        );
        assert_eq!(state(home), before);
    });
}

#[test]
fn a_nul_in_a_name_is_refused() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    let before = state(&home);
    for (verb, body) in [
        ("cat", r#"{"path":"/a\u0000b"}"#),
        ("write", r#"{"path":"/a\u0000b","content":"x"}"#),
        ("mkdir", r#"{"path":"/a\u0000b"}"#),
        ("import", r#"{"host_dir":"/tmp","path":"/a\u0000b"}"#),
        ("import", r#"{"host_dir":"/t\u0000mp","path":"/a"}"#),
        ("import", r#"{"host_dir":"relative","path":"/a"}"#),
        ("export", r#"{"host_dir":"/tmp/\u0000","path":"/"}"#),
        ("export-changes", r#"{"host_dir":"relative"}"#),
    ] {
        let answer = ask(
            &home.socket(),
            &["content-type: application/json"],
            ("POST", &format!("/v1/vaults/v/files/{verb}")),
            body.as_bytes(),
        );
        assert!(
            answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 422 "),
            "{verb} {body}: {answer}"
        );
        assert!(
            answer.contains(r#""kind":"Invalid""#),
            "{verb} {body}: {answer}"
        );
    }
    assert_eq!(state(&home), before);
}

#[test]
fn names_of_any_bytes_survive_the_round_trip() {
    with_vault(AVFS, |home| {
        let dir = at(home, "odd");
        fs::create_dir(&dir).unwrap();
        let names: [&[u8]; 5] = [b"\xff\xfe", b"-rf", b"new\nline", b"a b", &[b'n'; 255]];
        for name in names {
            fs::write(dir.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
        }
        home.give(&dir);
        home.ok(&["import", "odd", "/odd"]);
        home.ok(&["export", "/odd", "out"]);
        home.ok(&["export", "/odd", "--tar", "odd.tar"]);
        home.ok(&["import", "odd.tar", "/again"]);
        home.ok(&["export", "/again", "out-again"]);
        let wanted = avfs_testkit::scan(&dir);
        assert_eq!(avfs_testkit::scan(&at(home, "out")), wanted);
        assert_eq!(avfs_testkit::scan(&at(home, "out-again")), wanted);
    });
}
