//! Long lists: cut where the caller says, and had whole by `avfs changes`.

use super::{AVFS, paths};
use crate::{exec, texts};
use avfs_testkit::with_vault;

#[test]
fn a_list_is_cut_at_the_limit_and_had_whole() {
    with_vault(AVFS, |home| {
        let make = "mkdir /d; for i in $(seq 1500); do echo $i > /d/$i; done";
        let result = exec(home, &["--shell", make]);
        assert_eq!(result["changes_total"], 1501);
        assert_eq!(result["changes_truncated"], true);
        let listed = texts(&result["changed_files"]).len();
        assert!((1..1000).contains(&listed), "{listed}");
        assert!(
            result.to_string().len() < 80 << 10,
            "{}",
            result.to_string().len()
        );
        let id = result["exec"].as_str().expect("an id");
        let all = home.json(&["changes", id]);
        assert_eq!(paths(&all["changes"]).len(), 1501);
        assert!(all.get("next_cursor").is_none(), "{}", all["next_cursor"]);
        let lines = home.ok(&["changes", id]);
        assert_eq!(lines.lines().count(), 1501);
        assert!(lines.starts_with("A /d\nA /d/1\n"), "{}", &lines[..40]);
        let few = exec(home, &["--changes-limit", "3", "--shell", "rm -r /d"]);
        assert_eq!(
            (texts(&few["changed_files"]).len(), &few["changes_total"]),
            (3, &1501.into())
        );
        let many = exec(home, &["--changes-limit", "10000", "--shell", make]);
        assert_eq!(texts(&many["changed_files"]).len(), 1501);
        assert!(many.get("changes_truncated").is_none());
        assert_eq!(
            crate::refused(home, &["--changes-limit", "10001", "--", "true"]),
            "Invalid"
        );
    });
}

#[test]
fn the_text_of_a_report_has_ten_lines_of_changes() {
    with_vault(AVFS, |home| {
        home.ok(&["mkdir", "/w"]);
        home.ok(&["write", "/w/.gitignore", "out/\n"]);
        home.ok(&["write", "/w/main.c", "int x;\n"]);
        let make = "cd /w; echo >> main.c; mkdir -p new out; for i in $(seq 40); do echo $i > new/$i; echo > out/$i; done";
        let told = home.avfs(&["exec", "--shell", make]);
        let told = String::from_utf8(told.stderr).expect("a text");
        let lines: Vec<&str> = told.lines().map(str::trim).collect();
        assert!(lines.contains(&"M /w/main.c"), "{told}");
        assert!(lines.contains(&"+ /w/new/ 40 files"), "{told}");
        assert!(
            lines
                .iter()
                .any(|it| it.starts_with("all of them: avfs changes ")),
            "{told}"
        );
        assert!(
            lines
                .iter()
                .any(|it| it.starts_with("ignored: /w/out/ 41 new (")),
            "{told}"
        );
        assert!(lines.len() < 10, "{told}");
        let only = home.avfs(&["exec", "--shell", "echo > /w/out/another"]);
        let only = String::from_utf8(only.stderr).expect("a text");
        assert!(only.contains("only ignored paths changed"), "{only}");
    });
}

#[test]
fn changes_are_told_as_a_patch() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "one\n"]);
        let result = exec(
            home,
            &[
                "--shell",
                "echo two >> /f; mkdir ~/.cache; echo > ~/.cache/x",
            ],
        );
        let id = result["exec"].as_str().expect("an id");
        home.ok(&["write", "/f", "three\n"]);
        let patch = home.ok(&["changes", id, "--patch"]);
        assert!(
            patch.contains("+two") && !patch.contains("three"),
            "{patch}"
        );
        let all = home.ok(&["changes", id, "--all", "--patch"]);
        assert!(all.contains("/home/agent/.cache/x"), "{all}");
        assert_eq!(home.refused(&["changes", "nonsense"]).0, "Invalid");
        let unknown = "01a1de36-3b62-77b2-8258-ad8380643645";
        let (kind, answer) = home.refused(&["changes", unknown]);
        assert_eq!(kind, "NotFound");
        assert!(
            answer["message"]
                .as_str()
                .expect("a text")
                .contains("no command"),
            "{answer}"
        );
        home.ok(&["prune", "--keep", "1"]);
        let (kind, answer) = home.refused(&["changes", id]);
        assert_eq!(kind, "NotFound");
        assert!(
            answer["message"]
                .as_str()
                .expect("a text")
                .contains("pruned"),
            "{answer}"
        );
    });
}

#[test]
fn the_hint_about_the_network_is_for_what_was_refused() {
    with_vault(AVFS, |home| {
        if exec(home, &["--", "curl", "--version"])["exit_code"] != 0 {
            return avfs_testkit::skip("no curl in the sandbox of this machine");
        }
        let hint = "the network is off";
        let told = |words: &[&str]| {
            let told = home.avfs(&[&["exec", "--"], words].concat());
            String::from_utf8(told.stderr).expect("a text")
        };
        assert!(!told(&["curl", "--version"]).contains(hint));
        let refused = told(&["curl", "-sS", "http://example.test/"]);
        assert!(
            refused.contains(hint) && refused.contains("not reached: example.test"),
            "{refused}"
        );
    });
}
