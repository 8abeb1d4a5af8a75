//! Files: reading, writing, copying, linking, modes, edits.

use super::{home, texts};
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_part_of_a_file_can_be_read() {
    let home = home();
    home.ok(&["write", "/a", "0123456789"]);
    assert_eq!(home.ok(&["cat", "/a", "--offset", "3"]), "3456789");
    assert_eq!(home.ok(&["cat", "/a", "--limit", "2"]), "01");
    assert_eq!(
        home.ok(&["cat", "/a", "--offset", "8", "--limit", "9"]),
        "89"
    );
    assert_eq!(home.ok(&["cat", "/a", "--offset", "99"]), "");
    let part = home.json(&["cat", "/a", "--offset", "2", "--limit", "3"]);
    assert_eq!(
        (&part["content"], &part["size"], &part["more"]),
        (&"234".into(), &10.into(), &true.into())
    );
}

#[test]
fn an_old_version_can_be_read() {
    let home = home();
    let first = home.json(&["write", "/a", "one"])["version"].to_string();
    home.ok(&["write", "/a", "two"]);
    assert_eq!(home.ok(&["cat", "/a", "--version", &first]), "one");
    assert_eq!(
        home.ok(&["cat", "/a", "--version", &format!("v{first}")]),
        "one"
    );
    assert_eq!(home.refused(&["cat", "/a", "--version", "1"]).0, "NotFound");
    let (kind, answer) = home.refused(&["cat", "/a", "--version", "99"]);
    assert_eq!(kind, "NotFound");
    assert!(answer["hint"].as_str().unwrap().contains("avfs log"));
}

#[test]
fn bytes_of_every_kind_and_size_come_back() {
    let home = home();
    // Above what travels in a request, and above what one answer holds.
    let bytes: Vec<u8> = (0..9_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let host_file = home.path().join("host");
    std::fs::write(&host_file, &bytes).unwrap();
    let host_file = host_file.to_str().unwrap();
    home.ok(&["write", "/file", "--from-file", host_file]);
    let mut child = home
        .command(&["write", "/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert!(child.wait().unwrap().success());
    for path in ["/file", "/stdin"] {
        assert!(home.avfs(&["cat", path]).stdout == bytes, "{path}");
    }
    let id = |path: &str| home.json(&["stat", path])["content_id"].clone();
    assert_eq!(id("/file"), id("/stdin"));
    home.ok(&["write", "/file", "--from-file", host_file, "--append"]);
    assert_eq!(
        home.json(&["stat", "/file"])["size"],
        2 * bytes.len() as u64
    );
    let (kind, _) = home.refused(&["write", "/x", "--from-file", "/no/such"]);
    assert_eq!(kind, "NotFound");
    let (kind, _) = home.refused(&["write", "/x", "--from-file", "/"]);
    assert_ne!(kind, "Bug");
}

#[test]
fn a_write_makes_parents_and_sets_the_mode_when_told() {
    let home = home();
    assert_eq!(home.refused(&["write", "/a/b/c", "x"]).0, "NotFound");
    home.ok(&["write", "/a/b/c", "x", "--parents", "--mode", "750"]);
    assert_eq!(home.json(&["stat", "/a/b/c"])["mode"], "0750");
    home.ok(&["write", "/a/b/c", "y", "--mode", "u-x"]);
    assert_eq!(home.json(&["stat", "/a/b/c"])["mode"], "0650");
    home.ok(&["write", "/a/b/c", "z"]);
    assert_eq!(home.json(&["stat", "/a/b/c"])["mode"], "0650");
    assert_eq!(
        home.refused(&["write", "/q", "x", "-m", "999"]).0,
        "Invalid"
    );
}

#[test]
fn copies_are_independent() {
    let home = home();
    home.ok(&["mkdir", "-p", "/d/sub"]);
    home.ok(&["write", "/d/a", "one"]);
    home.ok(&["ln", "/d/a", "/d/sub/b"]);
    assert_eq!(home.refused(&["cp", "/d", "/e"]).0, "Invalid");
    let copied = home.json(&["cp", "-r", "/d", "/e"]);
    assert_eq!(
        (&copied["source"], &copied["destination"], &copied["copied"]),
        (&"/d".into(), &"/e".into(), &true.into())
    );
    home.ok(&["write", "/e/a", "two"]);
    assert_eq!(home.ok(&["cat", "/d/a"]), "one");
    assert_eq!(home.ok(&["cat", "/e/sub/b"]), "two");
    // Into a directory that is there, and over a file that is there.
    let copied = home.json(&["cp", "-r", "/d", "/e"]);
    assert_eq!(copied["destination"], "/e/d");
    home.ok(&["cp", "/d/a", "/e/a"]);
    assert_eq!(home.ok(&["cat", "/e/sub/b"]), "one");
    assert_eq!(home.refused(&["cp", "-r", "/d", "/d/sub"]).0, "Invalid");
    assert_eq!(home.refused(&["cp", "/none", "/x"]).0, "NotFound");
    home.ok(&["write", "/file", "x"]);
    assert_eq!(home.refused(&["cp", "-r", "/d", "/file"]).0, "Invalid");
}

#[test]
fn a_copy_over_a_directory_fills_it() {
    let home = home();
    home.ok(&["mkdir", "-p", "/from/d"]);
    home.ok(&["mkdir", "-p", "/to/d"]);
    home.ok(&["write", "/from/d/new", "new"]);
    home.ok(&["write", "/from/d/both", "theirs"]);
    home.ok(&["write", "/to/d/both", "ours"]);
    home.ok(&["write", "/to/d/old", "old"]);
    home.ok(&["cp", "-r", "/from/d", "/to"]);
    let names = home.json(&["ls", "/to/d"]);
    assert_eq!(texts(&names, "name"), ["both", "new", "old"]);
    assert_eq!(home.ok(&["cat", "/to/d/both"]), "theirs");
}

#[test]
fn links_are_made_and_followed() {
    let home = home();
    home.ok(&["mkdir", "/d"]);
    home.ok(&["write", "/d/a", "one"]);
    home.ok(&["ln", "/d/a", "/hard"]);
    home.ok(&["ln", "-s", "d/a", "/soft"]);
    home.ok(&["ln", "-s", "d", "/dir"]);
    home.ok(&["write", "/soft", "two"]);
    assert_eq!(home.ok(&["cat", "/hard"]), "two");
    let stat = home.json(&["stat", "/hard"]);
    assert_eq!((&stat["type"], &stat["nlink"]), (&"file".into(), &2.into()));
    assert_eq!(stat["names"], serde_json::json!(["/d/a", "/hard"]));
    let stat = home.json(&["stat", "/soft"]);
    assert_eq!(
        (&stat["type"], &stat["target"]),
        (&"symlink".into(), &"d/a".into())
    );
    // Through a link to a directory, as a command would go.
    home.ok(&["write", "/dir/b", "x"]);
    home.ok(&["mv", "/dir/b", "/dir/c"]);
    assert_eq!(home.ok(&["cat", "/d/c"]), "x");
    home.ok(&["rm", "/dir/c"]);
    assert_eq!(home.refused(&["cat", "/d/c"]).0, "NotFound");
    assert_eq!(home.refused(&["ln", "/d/a", "/hard"]).0, "AlreadyExists");
    assert_eq!(home.refused(&["ln", "/d", "/e"]).0, "Invalid");
    assert_eq!(home.refused(&["ln", "-s", "", "/e"]).0, "Invalid");
    let seen = home.shell("stat -c %h /hard; readlink /soft; cat /soft");
    assert_eq!(seen["result"]["stdout"], "2\nd/a\ntwo");
}

#[test]
fn modes_and_times_change() {
    let home = home();
    home.ok(&["write", "/d/run", "#!/bin/sh\necho ran\n", "-p"]);
    home.ok(&["chmod", "+x", "/d/run"]);
    assert_eq!(home.exec(&["/d/run"])["result"]["stdout"], "ran\n");
    home.ok(&["write", "/d/plain", "x"]);
    let changed = home.json(&["chmod", "-R", "u=rwX,go=", "/d"]);
    assert_eq!(
        (&changed["mode"], &changed["changed"]),
        (&"0700".into(), &3.into())
    );
    assert_eq!(home.json(&["stat", "/d/run"])["mode"], "0700");
    assert_eq!(home.json(&["stat", "/d/plain"])["mode"], "0600");
    home.ok(&["chmod", "-x", "/d/run"]);
    assert_eq!(home.json(&["stat", "/d/run"])["mode"], "0600");
    let before = home.json(&["stat", "/d/plain"])["modified"].clone();
    assert_eq!(home.json(&["touch", "/d/plain"])["created"], false);
    assert_ne!(home.json(&["stat", "/d/plain"])["modified"], before);
    assert_eq!(home.json(&["touch", "/new"])["created"], true);
    assert_eq!(home.json(&["touch", "-c", "/never"])["created"], false);
    assert_eq!(home.refused(&["stat", "/never"]).0, "NotFound");
    for mode in ["rwx", "8", "u+q", ""] {
        assert_eq!(home.refused(&["chmod", mode, "/d"]).0, "Invalid");
    }
}

#[test]
fn an_edit_is_exact_or_refused() {
    let home = home();
    home.ok(&["write", "/a", "x = 1\ny = 1\nz = 2\n"]);
    let (kind, answer) = home.refused(&["edit", "/a", "--old", "1", "--new", "3"]);
    assert_eq!(kind, "Invalid");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("2 times"), "{message}");
    assert!(answer["hint"].as_str().unwrap().contains("--all"));
    let edited = home.json(&["edit", "/a", "--old", "x = 1", "--new", "x = 5"]);
    assert_eq!(edited["replacements"], 1);
    assert_eq!(home.ok(&["cat", "/a"]), "x = 5\ny = 1\nz = 2\n");
    let edited = home.json(&["edit", "/a", "--old", " = ", "--new", "=", "--all"]);
    assert_eq!(edited["replacements"], 3);
    assert_eq!(home.ok(&["cat", "/a"]), "x=5\ny=1\nz=2\n");
    for (old, new) in [("nothing", "x"), ("", "x"), ("x", "x")] {
        let words = ["edit", "/a", "--old", old, "--new", new];
        assert_eq!(home.refused(&words).0, "Invalid", "{old:?}");
    }
    home.ok(&["edit", "/a", "--old", "y=", "--new", "--all"]);
    assert_eq!(home.ok(&["cat", "/a"]), "x=5\n--all1\nz=2\n");
}

#[test]
fn a_tree_shows_what_is_there() {
    let home = home();
    home.ok(&["write", "/d/e/f", "xyz", "-p"]);
    home.ok(&["write", "/d/g", ""]);
    home.ok(&["ln", "-s", "g", "/d/h"]);
    let text = home.ok(&["tree", "/d"]);
    let expected = "d\n├── e\n│   └── f\n├── g\n└── h -> g\n\n1 directory, 3 files\n";
    assert_eq!(text, expected);
    let tree = home.json(&["tree", "/"]);
    assert_eq!(
        (&tree["name"], &tree["type"]),
        (&"/".into(), &"directory".into())
    );
    let d = &tree["children"][0];
    assert_eq!(texts(&d["children"], "name"), ["e", "g", "h"]);
    assert_eq!(d["children"][0]["children"][0]["size"], 3);
    assert_eq!(d["children"][1].get("children"), None);
    assert_eq!(
        home.ok(&["tree", "-L", "1"]),
        "/\n└── d\n\n1 directory, 0 files\n"
    );
    assert_eq!(
        home.ok(&["tree", "/d/g"]),
        "g\n\n0 directories, 1 file\n",
        "a file is one file"
    );
    // Deeper than any parser of nested text would follow.
    let deep = format!("/deep{}", "/x".repeat(200));
    home.ok(&["mkdir", "-p", &deep]);
    assert_eq!(home.ok(&["tree", "/deep"]).lines().count(), 203);
}

#[test]
fn scratch_space_is_a_place_like_others() {
    let home = home();
    home.ok(&["write", "/tmp/a/b", "hello", "-p", "-m", "700"]);
    assert_eq!(home.json(&["stat", "/tmp/a/b"])["mode"], "0700");
    home.ok(&["edit", "/tmp/a/b", "--old", "hello", "--new", "bye"]);
    assert_eq!(home.ok(&["cat", "/tmp/a/b", "--offset", "1"]), "ye");
    home.ok(&["cp", "/tmp/a/b", "/kept"]);
    assert_eq!(home.json(&["stat", "/kept"])["mode"], "0700");
    home.ok(&["cp", "/kept", "/tmp/a"]);
    assert_eq!(home.shell("cat /tmp/a/kept")["result"]["stdout"], "bye");
    assert!(home.ok(&["tree", "/tmp"]).contains("kept"));
    for words in [
        &["cp", "-r", "/tmp/a", "/x"][..],
        &["ln", "/tmp/a/b", "/x"],
        &["cat", "/tmp/a/b", "--version", "1"],
    ] {
        assert_eq!(home.refused(words).0, "Invalid", "{words:?}");
    }
}
