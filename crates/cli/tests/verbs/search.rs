//! Finding things: by lines, by what they are, by words.

use super::{home, texts};
use avfs_testkit::Home;
use serde_json::json;

fn library() -> Home {
    let home = home();
    let files = [
        ("/w/a.rs", "fn main() {\n    run();\n}\n\nfn run() {}\n"),
        ("/w/b.py", "def Main():\n    pass\n"),
        ("/w/deep/c.rs", "// nothing here\n"),
        ("/w/empty", ""),
    ];
    for (path, text) in files {
        home.ok(&["write", path, text, "-p"]);
    }
    home.shell("printf 'main\\0main\\n' > /w/binary; printf 'm\\351main\\n' > /w/latin");
    home
}

#[test]
fn lines_are_found() {
    let home = library();
    let found = home.json(&["grep", "main"]);
    assert_eq!(
        (&found["pattern"], &found["count"]),
        (&"main".into(), &2.into())
    );
    assert_eq!(texts(&found["matches"], "path"), ["/w/a.rs", "/w/latin"]);
    let first = &found["matches"][0];
    assert_eq!(
        (&first["line_number"], &first["line"]),
        (&1.into(), &"fn main() {".into())
    );
    assert!(found["matches"][1]["line_b64"].is_string(), "not UTF-8");
    assert_eq!(found["truncated"], false);
    assert_eq!(home.json(&["grep", "-i", "main"])["count"], 3);
    assert_eq!(home.json(&["grep", "^fn \\w+", "/w/a.rs"])["count"], 2);
    assert_eq!(home.json(&["grep", "run()", "/w"])["count"], 2);
    assert_eq!(home.json(&["grep", "-F", "run()", "/w"])["count"], 2);
    assert_eq!(home.json(&["grep", "-F", "run(", "/w"])["count"], 2);
    assert_eq!(home.json(&["grep", "-v", ".", "/w/a.rs"])["count"], 1);
    let none = home.avfs(&["grep", "no such text"]);
    assert!(none.status.success() && none.stdout.is_empty());
    let counts = home.json(&["grep", "-c", "fn|nothing"]);
    assert_eq!(texts(&counts["files"], "path"), ["/w/a.rs", "/w/deep/c.rs"]);
    assert_eq!(
        (&counts["files"][0]["count"], &counts["count"]),
        (&2.into(), &3.into())
    );
}

#[test]
fn lines_are_shown_as_grep_shows_them() {
    let home = library();
    assert_eq!(
        home.ok(&["grep", "fn", "/w/a.rs"]),
        "/w/a.rs:fn main() {\n/w/a.rs:fn run() {}\n"
    );
    assert_eq!(
        home.ok(&["grep", "-n", "-C", "1", "fn", "/w/a.rs"]),
        "/w/a.rs:1:fn main() {\n/w/a.rs-2-    run();\n--\n/w/a.rs-4-\n/w/a.rs:5:fn run() {}\n"
    );
    assert_eq!(
        home.ok(&["grep", "-n", "-A", "2", "-B", "9", "fn", "/w/a.rs"])
            .lines()
            .count(),
        5,
        "without a gap"
    );
    assert_eq!(home.ok(&["grep", "-l", "fn|def"]), "/w/a.rs\n/w/b.py\n");
    assert_eq!(home.ok(&["grep", "-c", "fn|def"]), "/w/a.rs:2\n/w/b.py:1\n");
    let context = home.json(&["grep", "-B", "1", "run()", "/w/a.rs"]);
    let before = &context["matches"][0]["before"];
    assert_eq!(
        before,
        &json!([{ "line_number": 1, "line": "fn main() {" }])
    );
}

#[test]
fn globs_and_limits_narrow_a_search() {
    let home = library();
    let paths = |words: &[&str]| {
        let found = home.json(words);
        let paths = found["files"].as_array().cloned().unwrap_or_default();
        paths
            .iter()
            .map(|it| it["path"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        paths(&["grep", "-l", ".", "--glob", "*.rs"]),
        ["/w/a.rs", "/w/deep/c.rs"]
    );
    assert_eq!(
        paths(&["grep", "-l", ".", "-g", "*.rs", "-g", "!deep/"]),
        ["/w/a.rs"]
    );
    assert_eq!(paths(&["grep", "-l", ".", "-g", "/w/*.py"]), ["/w/b.py"]);
    let many = "x\n".repeat(50);
    home.ok(&["write", "/many1", &many]);
    home.ok(&["write", "/many2", &many]);
    let cut = home.json(&["grep", "x", "--limit", "60"]);
    assert_eq!(
        (&cut["count"], &cut["truncated"]),
        (&60.into(), &true.into())
    );
    let whole = home.json(&["grep", "x", "--limit", "100"]);
    assert_eq!(
        (&whole["count"], &whole["truncated"]),
        (&100.into(), &false.into())
    );
    let output = home.avfs(&["grep", "x", "--limit", "3"]);
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("only the first 3"), "{note}");
}

#[test]
fn many_files_and_large_ones_are_searched() {
    let home = home();
    home.shell(
        "mkdir -p /w; for i in $(seq 1 300); do echo \"line $i\" > /w/$i; done
         { seq 1 400000; echo needle; seq 1 10; } > /w/large",
    );
    assert_eq!(home.json(&["grep", "^line \\d+$", "/w"])["count"], 300);
    let needle = home.json(&["grep", "-n", "needle"]);
    assert_eq!(needle["matches"][0]["line_number"], 400_001);
}

#[test]
fn what_is_no_pattern_is_an_error() {
    let home = library();
    for words in [
        &["grep", "("][..],
        &["grep", "a", "--glob", "["],
        &["find", "--name", "["],
        &["find", "--type", "x"],
        &["find", "--size", "big"],
        &["find", "--mtime", "soon"],
        &["find", "--tag", "a b"],
        &["find", "--meta", "=x"],
        &["search", "\"open"],
        &["search", "a AND"],
        &["search", "()"],
        &["search", ""],
        &["search", "--", "-- !"],
    ] {
        let (kind, answer) = home.refused(words);
        assert_eq!(kind, "Invalid", "{words:?}: {answer}");
    }
    for verb in [&["grep", "x"][..], &["find"]] {
        for (path, kind) in [
            ("/none", "NotFound"),
            ("/tmp/x", "Invalid"),
            ("/usr", "Denied"),
        ] {
            let words = [verb, &[path]].concat();
            assert_eq!(home.refused(&words).0, kind, "{words:?}");
        }
    }
}

#[test]
fn paths_are_found_by_what_they_are() {
    let home = library();
    home.ok(&["ln", "-s", "a.rs", "/w/link"]);
    home.shell("mkfifo /w/pipe; truncate -s 3000 /w/big; touch -d '3 days ago' /w/old");
    let find = |words: &[&str]| {
        let words = [&["find"], words].concat();
        let text = home.ok(&words);
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(find(&["/w", "--name", "*.rs"]), ["/w/a.rs", "/w/deep/c.rs"]);
    assert_eq!(find(&["/w", "--name", "A.*", "-i"]), ["/w/a.rs"]);
    assert_eq!(find(&["/w", "--type", "d"]), ["/w", "/w/deep"]);
    assert_eq!(find(&["/w", "--type", "l,p"]), ["/w/link", "/w/pipe"]);
    assert_eq!(find(&["/w", "--size", "+2k"]), ["/w/big"]);
    assert_eq!(find(&["/w", "--size", "-1"]), ["/w/empty", "/w/old"]);
    assert_eq!(
        find(&["/w", "--min-size", "3000", "--max-size", "3000"]),
        ["/w/big"]
    );
    assert_eq!(find(&["/w", "--mtime", "+2"]), ["/w/old"]);
    assert!(!find(&["/w", "--mtime", "-1h"]).contains(&"/w/old".to_owned()));
    assert_eq!(find(&["/w", "--depth", "0"]), ["/w"]);
    assert!(!find(&["/w", "--depth", "1"]).contains(&"/w/deep/c.rs".to_owned()));
    let found = home.json(&["find", "/w", "--name", "big"]);
    assert_eq!(found["count"], 1);
    let result = &found["results"][0];
    assert_eq!(
        (&result["path"], &result["file_type"], &result["size"]),
        (&"/w/big".into(), &"file".into(), &3000.into())
    );
    let cut = home.json(&["find", "/w", "--limit", "2"]);
    assert_eq!(
        (&cut["count"], &cut["truncated"]),
        (&2.into(), &true.into())
    );
}

#[test]
fn words_find_files_and_follow_what_changes() {
    let home = home();
    home.ok(&[
        "write",
        "/d/parser.md",
        "The parser parses expressions.\n",
        "-p",
    ]);
    home.ok(&["write", "/notes", "Running late; expression unknown.\n"]);
    home.ok(&["write", "/café", "Füße\n"]);
    let found = home.json(&["search", "expression"]);
    assert_eq!(
        (&found["query"], &found["count"]),
        (&"expression".into(), &2.into())
    );
    let snippet = found["results"][0]["snippet"].as_str().unwrap();
    assert!(snippet.contains(">>>>expression"), "{snippet}");
    assert!(found["results"][0]["rank"].as_f64().unwrap() < 0.0);
    let paths = |words: &[&str]| {
        let words = [&["search"], words].concat();
        let found = home.json(&words);
        let list = texts(&found["results"], "path");
        list.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(paths(&["parser", "expression"]), ["/d/parser.md"]);
    assert_eq!(paths(&["run"]), ["/notes"], "in any form");
    assert_eq!(paths(&["parser.md"]), ["/d/parser.md"], "by name");
    assert_eq!(paths(&["fusse OR füße"]), ["/café"]);
    assert_eq!(paths(&["\"late expression\""]), ["/notes"]);
    assert_eq!(paths(&["\"expression late\""]), [""; 0]);
    assert_eq!(paths(&["express*", "--limit", "1"]).len(), 1);
    // What changes, by verbs or by commands, is found as it is now.
    home.shell("mv /d /e; echo 'an elephant' > /notes; printf 'elephant\\0' > /binary");
    assert_eq!(paths(&["parser"]), ["/e/parser.md"]);
    assert_eq!(paths(&["elephant"]), ["/notes"]);
    assert_eq!(paths(&["late"]), [""; 0]);
    home.ok(&["rm", "-r", "/e"]);
    assert_eq!(paths(&["parser"]), [""; 0]);
    assert_eq!(paths(&["elephant", "--rebuild"]), ["/notes"]);
}

#[test]
fn an_index_is_forked_and_can_be_lost() {
    let home = home();
    home.ok(&["write", "/a", "original words"]);
    assert_eq!(home.json(&["search", "original"])["count"], 1);
    home.ok(&["vault", "fork", "v", "w"]);
    home.ok(&["--vault", "w", "write", "/b", "original too"]);
    assert_eq!(
        home.json(&["--vault", "w", "search", "original"])["count"],
        2
    );
    assert_eq!(home.json(&["search", "original"])["count"], 1);
    home.ok(&["checkpoint", "save", "cp"]);
    home.ok(&["write", "/a", "other"]);
    assert_eq!(home.json(&["search", "original"])["count"], 0);
    home.ok(&["checkpoint", "restore", "cp"]);
    assert_eq!(home.json(&["search", "original"])["count"], 1);
    let indexes = || std::fs::read_dir(home.avfs_home().join("search")).unwrap();
    let id = home.json(&["vault", "info"])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let file = home.avfs_home().join(format!("search/{id}.db"));
    std::fs::write(&file, "this is no database, and never was one").unwrap();
    assert_eq!(home.json(&["search", "original"])["count"], 1);
    std::fs::remove_dir_all(home.avfs_home().join("search")).unwrap();
    assert_eq!(home.json(&["search", "original"])["count"], 1);
    home.ok(&["vault", "delete", "v", "-y"]);
    let left = indexes().filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(&id)
    });
    assert_eq!(left.count(), 0, "it goes with its vault");
}
