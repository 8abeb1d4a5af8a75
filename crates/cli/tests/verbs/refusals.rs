//! Bad input: every verb that takes a path refuses what is none, says why, and changes nothing.

use super::home;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Every verb with one path in it.
const VERBS: &[&[&str]] = &[
    &["ls", "PATH"],
    &["cat", "PATH"],
    &["write", "PATH", "x"],
    &["mkdir", "PATH"],
    &["rm", "PATH"],
    &["cp", "PATH", "/copy"],
    &["cp", "/file", "PATH"],
    &["mv", "PATH", "/moved"],
    &["mv", "/file", "PATH"],
    &["ln", "PATH", "/link"],
    &["ln", "/file", "PATH"],
    &["ln", "-s", "x", "PATH"],
    &["chmod", "700", "PATH"],
    &["touch", "PATH"],
    &["edit", "PATH", "--old", "a", "--new", "b"],
    &["stat", "PATH"],
    &["tree", "PATH"],
    &["log", "PATH"],
    &["checkout", "PATH", "--version", "2"],
    &["revert", "PATH"],
    &["grep", "x", "PATH"],
    &["find", "PATH"],
    &["tag", "PATH", "t"],
    &["untag", "PATH", "t"],
    &["meta", "PATH", "k", "v"],
];

fn with(verb: &[&str], path: &OsStr) -> Vec<OsString> {
    let word = |word: &&str| match *word {
        "PATH" => path.to_owned(),
        word => word.into(),
    };
    verb.iter().map(word).collect()
}

#[test]
fn paths_that_lead_nowhere_are_refused_by_every_verb() {
    let home = home();
    home.ok(&["write", "/file", "x"]);
    home.ok(&["ln", "-s", "loop", "/loop"]);
    let before = home.json(&["vault", "info"])["root"].clone();
    let long = format!("/{}", "x".repeat(256));
    let longer = "/x".repeat(2049);
    let paths = [
        "/../etc/passwd",
        "/a/../../b",
        "..",
        "",
        &long,
        &longer,
        "/file/below",
        "/loop/below",
        "/usr/bin/env",
        "/etc/passwd",
        "/proc/self/environ",
    ];
    for path in paths {
        for verb in VERBS {
            let answer = home.json(&with(verb, OsStr::new(path)));
            let kind = answer["error"].as_str().unwrap_or_default();
            let expected = ["Invalid", "NotFound", "Denied"];
            assert!(expected.contains(&kind), "{verb:?} {path}: {answer}");
        }
    }
    assert_eq!(home.json(&["vault", "info"])["root"], before);
}

#[test]
fn names_may_be_any_bytes() {
    let home = home();
    let odd = [
        b"/\xff\xfe".as_slice(),
        b"/--version",
        b"/a b\tc",
        b"/new\nline",
        "/\u{1f980}".as_bytes(),
    ];
    for name in odd {
        let path = OsStr::from_bytes(name);
        home.ok(&[OsStr::new("write"), path, OsStr::new("x")]);
        let copy = OsString::from_vec([name, b".copy"].concat());
        home.ok(&[OsStr::new("cp"), path, &copy]);
        home.ok(&[OsStr::new("chmod"), OsStr::new("600"), &copy]);
        let edit = ["edit", "PATH", "--old", "x", "--new", "y"];
        home.ok(&with(&edit, &copy));
        assert_eq!(home.avfs(&[OsStr::new("cat"), &copy]).stdout, b"y");
        let stat = home.json(&[OsStr::new("stat"), &copy]);
        assert_eq!(stat["mode"], "0600", "{stat}");
        assert_eq!(
            stat["path_b64"].is_string(),
            std::str::from_utf8(name).is_err()
        );
    }
    assert_eq!(
        home.json(&["tree"])["children"].as_array().unwrap().len(),
        10
    );
}

#[test]
fn a_directory_is_no_file() {
    let home = home();
    home.ok(&["mkdir", "/d"]);
    for words in [
        &["cat", "/d"][..],
        &["write", "/d", "x"],
        &["edit", "/d", "--old", "a", "--new", "b"],
        &["rm", "/d"],
    ] {
        let (kind, answer) = home.refused(words);
        assert_eq!(kind, "Invalid", "{words:?}");
        assert!(
            answer["message"].as_str().unwrap().contains("directory"),
            "{answer}"
        );
    }
    assert_eq!(home.refused(&["rm", "-r", "/"]).0, "Invalid");
}
