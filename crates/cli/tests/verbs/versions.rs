//! Versions: looking back, bringing back, comparing.

use super::{home, texts};
use avfs_testkit::Home;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

fn write(home: &Home, path: &str, text: &str) -> u64 {
    home.json(&["write", path, text, "-p"])["version"]
        .as_u64()
        .unwrap()
}

#[test]
fn three_writes_and_a_revert_give_the_second() {
    let home = home();
    let versions: Vec<u64> = ["one", "two", "three"]
        .iter()
        .map(|text| {
            let version = write(&home, "/a", text);
            write(&home, "/other", text);
            version
        })
        .collect();
    home.ok(&["touch", "/a"]);
    let reverted = home.json(&["revert", "/a"]);
    assert_eq!(home.ok(&["cat", "/a"]), "two");
    assert_eq!(reverted["reverted_from"], versions[2]);
    assert_eq!(reverted["reverted_to"], versions[1]);
    assert_eq!(
        reverted["new_version"],
        home.json(&["vault", "info"])["version"]
    );
    assert_eq!(home.ok(&["cat", "/other"]), "three");
    // One step back from here is what the revert replaced.
    home.ok(&["revert", "/a"]);
    assert_eq!(home.ok(&["cat", "/a"]), "three");
}

#[test]
fn a_revert_brings_back_what_was_removed_and_nothing_from_nowhere() {
    let home = home();
    write(&home, "/d/a", "one");
    assert_eq!(home.refused(&["revert", "/d/a"]).0, "NotFound");
    home.ok(&["rm", "-r", "/d"]);
    home.ok(&["revert", "/d/a"]);
    assert_eq!(home.ok(&["cat", "/d/a"]), "one");
    assert_eq!(home.refused(&["revert", "/none"]).0, "NotFound");
    home.ok(&["ln", "/d/a", "/b"]);
    write(&home, "/d/a", "two");
    home.ok(&["revert", "/b"]);
    assert_eq!(home.ok(&["cat", "/d/a"]), "one", "one file under two names");
    assert_eq!(home.json(&["stat", "/b"])["nlink"], 2);
}

#[test]
fn a_log_lists_what_changed_a_path() {
    let home = home();
    let first = write(&home, "/d/a", "one");
    write(&home, "/b", "x");
    let second = write(&home, "/d/a", "three");
    home.shell("echo made > /d/c");
    home.ok(&["rm", "/d/a"]);
    let log = home.json(&["log", "/d/a"]);
    let log = log.as_array().unwrap();
    assert_eq!(log.len(), 3);
    assert_eq!(
        (&log[0]["removed"], &log[0]["cause"]),
        (&true.into(), &"remove".into())
    );
    assert_eq!(
        (&log[1]["version"], &log[1]["size"]),
        (&second.into(), &5.into())
    );
    assert_eq!(
        (&log[2]["version"], &log[2]["size"]),
        (&first.into(), &3.into())
    );
    assert_eq!(log[2]["hash"].as_str().unwrap().len(), 16);
    assert!(log[2]["created_at"].is_string());
    let causes = home.json(&["log", "/d", "-n", "2"]);
    assert_eq!(texts(&causes, "cause"), ["remove", "exec"]);
    let all = home.json(&["log"]);
    assert_eq!(all.as_array().unwrap().len(), 6);
    assert_eq!(all[5]["version"], 1);
    assert!(all[0]["size"].is_u64() && all[0]["hash"].is_string());
    assert_eq!(home.refused(&["log", "/never"]).0, "NotFound");
    assert_eq!(home.refused(&["log", "/tmp/x"]).0, "Invalid");
    assert!(home.ok(&["log", "/d/a"]).contains("removed"));
}

#[test]
fn an_old_state_is_checked_out_as_a_new_version() {
    let home = home();
    let old = write(&home, "/d/a", "one");
    home.ok(&["chmod", "600", "/d/a"]);
    write(&home, "/d/b", "new");
    write(&home, "/d/a", "two");
    let done = home.json(&["checkout", "/d/a", "--version", &old.to_string()]);
    assert_eq!(
        (&done["path"], &done["restored_version"]),
        (&"/d/a".into(), &old.into())
    );
    assert!(done["new_version"].as_u64().unwrap() > old);
    assert_eq!(home.ok(&["cat", "/d/a"]), "one");
    assert_eq!(home.json(&["stat", "/d/a"])["mode"], "0644");
    home.ok(&["checkout", "/d", "-v", &old.to_string()]);
    assert_eq!(texts(&home.json(&["ls", "/d"]), "name"), ["a"]);
    let before = home.json(&["vault", "info"])["version"].clone();
    assert_eq!(home.refused(&["checkout", "/d", "-v", "1"]).0, "NotFound");
    assert_eq!(home.refused(&["checkout", "/d", "-v", "99"]).0, "NotFound");
    assert_eq!(home.json(&["vault", "info"])["version"], before);
    assert_eq!(home.avfs(&["checkout", "/d"]).status.code(), Some(2));
}

#[test]
fn one_file_is_compared_line_by_line() {
    let home = home();
    let lines: Vec<String> = (1..=20).map(|i| format!("line {i}\n")).collect();
    let old = write(&home, "/a", &lines.concat());
    let inserted = format!("{}new\n{}", lines[..10].concat(), lines[10..].concat());
    let new = write(&home, "/a", &inserted);
    let states = [format!("v{old}"), format!("v{new}")];
    let diff = home.json(&["diff", &states[0], &states[1], "/a"]);
    assert_eq!(
        (&diff["path1"], &diff["path2"], &diff["identical"]),
        (&"/a".into(), &"/a".into(), &false.into())
    );
    assert_eq!(
        (&diff["version1"], &diff["version2"]),
        (&old.into(), &new.into())
    );
    // One inserted line is one difference.
    let kinds = texts(&diff["diff"], "line_type");
    assert_eq!(kinds.iter().filter(|kind| **kind == "add").count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == "context").count(), 6);
    let added = diff["diff"].as_array().unwrap();
    let added = added.iter().find(|it| it["line_type"] == "add").unwrap();
    assert_eq!(
        (&added["line_num"], &added["content"]),
        (&11.into(), &"new".into())
    );
    let text = home.ok(&["diff", &states[0], &states[1], "/a"]);
    assert!(text.contains("@@ -8,6 +8,7 @@\n line 8\n"), "{text}");
    let same = home.json(&["diff", "HEAD", "HEAD", "/a"]);
    assert_eq!(
        (&same["identical"], &same["diff"]),
        (&true.into(), &serde_json::json!([]))
    );
    assert_eq!(
        home.json(&["diff", "--v1", "2", "--v2", "3", "/a"])["version1"],
        2
    );
    write(&home, "/b", "other\n");
    let pair = home.json(&["diff", "/a", "/b"]);
    assert_eq!(
        (&pair["path1"], &pair["path2"]),
        (&"/a".into(), &"/b".into())
    );
    assert_eq!(home.refused(&["diff", "/a", "/none"]).0, "NotFound");
    assert_eq!(
        home.refused(&["diff", "HEAD", "HEAD", "/none"]).0,
        "NotFound"
    );
    assert_eq!(home.refused(&["diff", "nothing"]).0, "NotFound");
    assert_eq!(home.refused(&["diff", "a", "b", "c"]).0, "Invalid");
}

#[test]
fn states_of_every_kind_are_compared() {
    let home = home();
    write(&home, "/a", "one\n");
    home.ok(&["checkpoint", "save", "cp"]);
    home.ok(&["vault", "fork", "v", "w"]);
    write(&home, "/a", "two\n");
    for (from, to) in [("cp", "HEAD"), ("vault:w", "HEAD"), ("v2", "vault:v")] {
        let diff = home.json(&["diff", from, to]);
        assert_eq!(texts(&diff["changes"], "path"), ["/a"], "{from} {to}");
    }
    let diff = home.json(&["diff", "cp", "vault:w"]);
    assert_eq!(diff["identical"], true);
    let diff = home.json(&["--vault", "w", "diff"]);
    assert_eq!(diff["identical"], true, "a fork as it began");
    let (kind, _) = home.refused(&["diff", "vault:none"]);
    assert_eq!(kind, "NotFound");
}

#[test]
fn renames_counts_and_binaries_are_noticed() {
    let home = home();
    write(&home, "/old/name.txt", "some content\nthat moves\n");
    write(&home, "/text", "1\n2\n3\n");
    home.shell("printf 'a\\0b' > /binary; chmod 600 /text");
    home.ok(&["checkpoint", "save", "cp"]);
    home.ok(&["mkdir", "/new"]);
    home.ok(&["mv", "/old/name.txt", "/new/name.txt"]);
    write(&home, "/text", "1\ntwo\n3\n4\n");
    home.shell("printf 'a\\0c' > /binary");
    let diff = home.json(&["diff", "cp", "--stat"]);
    let find = |path: &str| {
        let changes = diff["changes"].as_array().unwrap();
        changes
            .iter()
            .find(|it| it["path"] == path)
            .unwrap()
            .clone()
    };
    let moved = find("/new/name.txt");
    assert_eq!(
        (&moved["kind"], &moved["from"]),
        (&"renamed".into(), &"/old/name.txt".into())
    );
    let text = find("/text");
    assert_eq!(
        (&text["additions"], &text["deletions"]),
        (&2.into(), &1.into())
    );
    assert_eq!(find("/binary")["binary"], true);
    let names = home.ok(&["diff", "cp", "--name-status"]);
    assert_eq!(
        names,
        "M\t/binary\nA\t/new\nR\t/old/name.txt\t/new/name.txt\nM\t/text\n"
    );
    let stat = home.ok(&["diff", "cp", "--stat"]);
    assert!(
        stat.contains("/text                         |     3 ++-"),
        "{stat}"
    );
    assert!(stat.contains("3 files changed, 2(+), 1(-)"), "{stat}");
    let patch = home.ok(&["diff", "cp", "-p"]);
    assert!(
        patch.contains("Binary files a/binary and b/binary differ"),
        "{patch}"
    );
    assert!(
        patch.contains("rename from old/name.txt\nrename to new/name.txt"),
        "{patch}"
    );
}

/// What the vault holds before, which is also written by hand for git.
const BEFORE: [(&str, &str); 6] = [
    ("edited", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"),
    ("no newline", "a\nb"),
    ("gone", "bye\n"),
    ("moved", "moved\ncontent\n"),
    ("both", "one\ntwo\nthree\nfour\n"),
    ("quo\"ted\t", "x\n"),
];

/// Makes a state, changes it in every way, and gives the patch.
fn patch_of_everything(home: &Home) -> String {
    for (name, text) in BEFORE {
        write(home, &format!("/w/{name}"), text);
    }
    for link in ["/w/link", "/w/becomes"] {
        home.ok(&["ln", "-s", "edited", link]);
    }
    home.ok(&["checkpoint", "save", "cp"]);
    write(home, "/w/edited", "0\n2\n3\n4\n5\n6\n7\n8\n9\n10\n12\n13\n");
    write(home, "/w/no newline", "a\nc");
    home.ok(&["rm", "/w/gone"]);
    home.ok(&["mv", "/w/moved", "/w/there"]);
    home.ok(&["mv", "/w/both", "/w/changed"]);
    home.ok(&["edit", "/w/changed", "--old", "two", "--new", "2"]);
    write(home, "/w/quo\"ted\t", "y\n");
    write(home, "/w/new/file", "n");
    write(home, "/w/empty", "");
    home.ok(&["chmod", "755", "/w/edited"]);
    home.ok(&["rm", "/w/link"]);
    home.ok(&["ln", "-s", "there", "/w/link"]);
    home.ok(&["rm", "/w/becomes"]);
    write(home, "/w/becomes", "a file\n");
    let patch = home.json(&["diff", "cp", "-p", "/w"])["patch"].clone();
    patch.as_str().unwrap().to_owned()
}

/// The patch is right when another program makes the one state from the other with it.
#[test]
fn git_applies_the_patch() {
    let home = home();
    let patch = patch_of_everything(&home);
    let w = home.path().join("repo/w");
    std::fs::create_dir_all(&w).unwrap();
    for (name, text) in BEFORE {
        std::fs::write(w.join(name), text).unwrap();
    }
    for link in ["link", "becomes"] {
        std::os::unix::fs::symlink("edited", w.join(link)).unwrap();
    }
    let mut apply = Command::new("git")
        .args(["apply", "--no-index", "-"])
        .current_dir(home.path().join("repo"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = apply.stdin.take().unwrap();
    stdin.write_all(patch.as_bytes()).unwrap();
    drop(stdin);
    assert!(apply.wait().unwrap().success(), "{patch}");
    assert!(
        patch.contains("rename from w/both\nrename to w/changed\n---"),
        "{patch}"
    );
    let text = |name: &str| std::fs::read_to_string(w.join(name)).unwrap();
    let texts = [
        "edited",
        "no newline",
        "there",
        "changed",
        "quo\"ted\t",
        "new/file",
        "empty",
        "becomes",
    ];
    for name in texts {
        assert_eq!(
            text(name),
            home.ok(&["cat", &format!("/w/{name}")]),
            "{name}"
        );
    }
    assert!(!w.join("gone").exists() && !w.join("moved").exists());
    let target = std::fs::read_link(w.join("link")).unwrap();
    assert_eq!(target.to_str(), Some("there"));
    assert!(
        std::fs::symlink_metadata(w.join("becomes"))
            .unwrap()
            .is_file()
    );
    let mode = std::fs::metadata(w.join("edited")).unwrap().permissions();
    assert!(mode.mode() & 0o100 != 0);
}
