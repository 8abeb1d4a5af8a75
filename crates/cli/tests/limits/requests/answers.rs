//! Answers: every list ends somewhere, and says so.

use super::{as_agent, ask};
use crate::AVFS;
use avfs_api::bounds::{LISTED_BYTES_MAX, LISTED_MAX};
use avfs_testkit::Home;
use serde_json::{Value, json};

const FILES: usize = LISTED_MAX + 500;

fn body(answer: &str) -> Value {
    let text = answer.split("\r\n\r\n").nth(1).expect("a body");
    // A long one comes in chunks.
    let begin = text.find('{').expect("an object");
    let end = text.rfind('}').expect("an object");
    let text: String = text[begin..=end].to_owned();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

fn with_many_files(home: &Home) {
    let make = format!(
        "mkdir /many /tmp/many; cd /many; touch $(seq -w {FILES}); cd /tmp/many; touch $(seq -w {FILES})"
    );
    let made = home.shell(&make);
    assert_eq!(made["result"]["exit_code"], 0, "{made}");
}

#[test]
fn lists_end_and_say_so() {
    for home in Home::of_every_user_with_vault(AVFS) {
        with_many_files(&home);
        for dir in ["/many", "/tmp/many"] {
            let all = home.json(&["ls", dir]);
            let names: Vec<&str> = all
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["name"].as_str().unwrap())
                .collect();
            assert_eq!(names.len(), FILES, "{dir}: part by part it is all of them");
            assert!(names.is_sorted());
            let request = json!({ "path": dir, "after": "00003", "limit": 2 }).to_string();
            let part = body(&ask(
                &home.socket(),
                "POST",
                "/v1/vaults/v/files/ls",
                request.as_bytes(),
            ));
            let names: Vec<&str> = part["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["name"].as_str().unwrap())
                .collect();
            assert_eq!(
                (names, &part["more"]),
                (vec!["00004", "00005"], &json!(true))
            );
            let tree = home.avfs(&["tree", dir]);
            assert!(String::from_utf8_lossy(&tree.stderr).contains("only the first 10000"));
        }
        let found = home.json(&["find", "/many", "--limit", "1000000"]);
        assert_eq!(
            (found["count"].clone(), found["truncated"].clone()),
            (json!(LISTED_MAX), json!(true))
        );
        let diff = home.avfs(&["--json", "diff"]);
        let report: Value = serde_json::from_slice(&diff.stdout).unwrap();
        let listed = report["changes"].as_array().unwrap().len();
        // Changes of times alone are not told.
        assert!((LISTED_MAX - 10..=LISTED_MAX).contains(&listed), "{listed}");
        assert_eq!(report["truncated"], json!(true));
        assert!(String::from_utf8_lossy(&diff.stderr).contains("only the first"));
    }
}

#[test]
fn patches_and_searches_end_and_say_so() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let make = "mkdir /w; cd /w; for i in 1 2 3 4; do seq 150000 > $i; done; \
                    head -c 20000000 /dev/zero | tr '\\0' a > line";
        assert_eq!(home.shell(make)["result"]["exit_code"], 0);
        let diff = home.json(&["diff", "--patch"]);
        assert_eq!(diff["patch_truncated"], json!(true));
        assert!(diff["patch"].as_str().unwrap().len() <= 2 << 20);
        let grep = home.json(&["grep", "1", "/w", "--limit", "100000000"]);
        assert_eq!(grep["truncated"], json!(true));
        let count = grep["matches"].as_array().unwrap().len();
        assert!(count <= LISTED_MAX && count > 1000, "{count}");
        let line = home.json(&["grep", "aaa", "/w"]);
        assert_eq!(line["count"], json!(0), "what has no lines is no text");
    }
}

#[test]
fn an_edit_does_not_multiply() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let make = "head -c 8000000 /dev/zero | tr '\\0' a > /a";
        assert_eq!(home.shell(make)["result"]["exit_code"], 0);
        let new = "b".repeat(1000);
        let words = ["edit", "/a", "--old", "a", "--new", &new, "--all"];
        let refused = as_agent(&home, &words);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && said.contains("this works up to"),
            "{said}"
        );
    }
}

/// A report lists so many paths and counts the rest; nothing is missing from the version.
#[test]
fn a_report_of_very_many_changes_is_short_and_true() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let text = "mkdir -p /d/a ~/h && cd /d/a && seq 12000 | xargs touch && cd ~/h && seq 11000 | xargs touch";
        let made = home.json(&["exec", "--changes-limit", "10000", "--shell", text]);
        let result = &made["result"];
        assert_eq!(result["exit_code"], 0, "{:.2000}", made.to_string());
        let listed = |key: &str| result[key].as_array().unwrap().len();
        assert_eq!(
            (listed("changes"), listed("changed_files")),
            (10_000, 10_000)
        );
        assert_eq!(result["changes_total"], 12_002, "as {}", home.user());
        assert_eq!(result["changes_truncated"], true);
        assert!(result["home_changes"].as_u64().unwrap() >= 11_001);
        let found = home.shell("find /d -type f | wc -l")["result"]["stdout"].clone();
        assert_eq!(found, "12000\n");
        // And with few, all are there and nothing is said.
        let few = home.shell("mv /d/a /d/b; rm /d/b/1");
        assert!(few["result"]["changes_total"].as_u64().unwrap() > 20_000);
        let one = home.shell("echo x > /one");
        assert_eq!(one["result"]["changes_total"], 1);
        assert_eq!(one["result"]["changes_truncated"], serde_json::Value::Null);
        let text = home.avfs(&["exec", "--shell", "cd /d && seq 13000 | xargs touch"]);
        let said = String::from_utf8_lossy(&text.stderr).into_owned();
        assert!(
            said.contains("13000 paths changed") && said.contains("more"),
            "{said}"
        );
    }
}

/// Few paths can be long ones.
#[test]
fn long_paths_fill_an_answer_sooner() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let text = "d=$(printf 'n%.0s' $(seq 200)); for i in $(seq 19); do mkdir $d && cd $d; done; seq 1500 | xargs touch";
        let made = home.json(&["exec", "--changes-limit", "10000", "--shell", text]);
        let result = &made["result"];
        assert_eq!(result["changes_total"], 1_519, "as {}", home.user());
        assert_eq!(result["changes_truncated"], true);
        let changes = result["changes"].as_array().unwrap();
        let bytes = |of: &[Value]| -> usize {
            let paths = of.iter().map(|it| it["path"].as_str().unwrap().len());
            paths.sum()
        };
        assert!(bytes(changes) <= LISTED_BYTES_MAX, "{}", bytes(changes));
        assert!(bytes(changes) > LISTED_BYTES_MAX - 5_000, "and no sooner");
        for words in [&["find", "/"][..], &["diff"]] {
            let listed = home.json(words);
            assert_eq!(listed["truncated"], true, "{words:?}");
        }
        let found = home.shell("find / -xdev -path '/nnn*' -type f | wc -l");
        assert_eq!(found["result"]["stdout"], "1500\n");
    }
}
