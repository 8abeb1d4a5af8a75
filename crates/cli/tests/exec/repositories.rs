//! `avfs git`: repositories in a vault, which whoever wrote them can fill with anything.

use crate::AVFS;
use avfs_testkit::{Home, ask, status_and_body, with_vault};
use serde_json::{Value, json};

/// A repository at `/repo` with one commit and an author of its own.
fn repository(home: &Home) {
    run(
        home,
        "git init -q -b main /repo; cd /repo; git config user.name Ada
         git config user.email ada@example.org; echo one > a; git add a; git commit -qm first",
    );
}

/// Shell text that must succeed.
fn run(home: &Home, text: &str) {
    let envelope = home.shell(&format!("set -e; {text}"));
    assert_eq!(envelope["result"]["exit_code"], 0, "{envelope:#}");
}

fn git(home: &Home, words: &[&str]) -> Value {
    let words = [&["git"], words, &["--json"]].concat();
    let said = home.avfs(&words);
    assert!(said.status.success(), "{words:?}: {said:?}");
    serde_json::from_slice(&said.stdout).unwrap()
}

/// The kind of error of `avfs git`.
fn refused(home: &Home, words: &[&str]) -> Value {
    let (_, problem) = home.refused(&[&["git"], words].concat());
    assert!(problem["hint"].is_string(), "{words:?}: {problem}");
    problem
}

/// Path, staged and unstaged of every entry.
fn entries(state: &Value) -> Vec<(&str, &str, &str)> {
    let text = |it: &'_ Value| it.as_str().unwrap().to_owned().leak() as &str;
    let entries = state["entries"].as_array().unwrap().iter();
    entries
        .map(|it| {
            (
                text(&it["path"]),
                text(&it["staged"]),
                text(&it["unstaged"]),
            )
        })
        .collect()
}

#[test]
fn a_repository_is_read_and_changed() {
    with_vault(AVFS, |home| {
        repository(home);
        run(
            home,
            "cd /repo; echo two >> a; echo x > new; echo y > staged; git add staged",
        );
        let state = git(home, &["status", "-C", "/repo"]);
        assert_eq!(state["branch"], "main");
        assert_eq!(state["dirty"], true);
        assert_eq!(
            entries(&state),
            [
                ("a", "unmodified", "modified"),
                ("staged", "added", "unmodified"),
                ("new", "unmodified", "untracked"),
            ]
        );
        let diff = git(home, &["diff", "-C", "/repo", "--stat"]);
        assert!(diff["diff"].as_str().unwrap().contains("+two"), "{diff}");
        assert_eq!(
            diff["stat"],
            json!([{"path": "a", "added": 1, "removed": 0}])
        );
        let staged = git(
            home,
            &["diff", "-C", "/repo", "--staged", "--file", "staged"],
        );
        assert!(staged["diff"].as_str().unwrap().contains("+y"), "{staged}");
        let message = "second; $(touch /pwned) 'quoted'\n\nwith a body";
        let done = git(home, &["commit", "-C", "/repo", "-m", message, "--all"]);
        assert_eq!(done["committed"], true);
        assert_eq!(done["subject"], "second; $(touch /pwned) 'quoted'");
        assert_eq!(done["branch"], "main");
        assert_eq!(done["commit"].as_str().unwrap().len(), 40);
        let again = git(home, &["commit", "-C", "/repo", "-m", "no", "--all"]);
        assert_eq!(again["committed"], false);
        assert_eq!(again["commit"], done["commit"]);
        let log = git(home, &["log", "-C", "/repo", "-n", "1"]);
        assert_eq!(log["truncated"], true);
        let newest = &log["commits"][0];
        assert_eq!(newest["commit"], done["commit"]);
        assert_eq!(newest["author_email"], "ada@example.org");
        assert_eq!(newest["body"], "with a body");
        let since = git(
            home,
            &[
                "diff",
                "-C",
                "/repo",
                "--commit",
                "HEAD~1",
                "--max-bytes",
                "40",
            ],
        );
        assert_eq!(since["truncated"], true);
        assert!(since["bytes"].as_u64().unwrap() > 40, "{since}");
        assert!(since["diff"].as_str().unwrap().len() <= 40, "{since}");
        let whole = home.ok(&["output", since["exec"].as_str().unwrap()]);
        assert!(
            whole.starts_with(since["diff"].as_str().unwrap()),
            "{whole}"
        );
        let branches = git(
            home,
            &[
                "branch", "-C", "/repo", "--create", "try", "--switch", "try",
            ],
        );
        assert_eq!(branches["current"], "try");
        assert_eq!(branches["branches"].as_array().unwrap().len(), 2);
        let cloned = git(home, &["clone", "/repo", "/copy", "--depth", "1"]);
        assert_eq!(cloned["commit"], done["commit"]);
        assert_eq!(cloned["branch"], "try");
        assert_eq!(
            git(home, &["log", "-C", "/copy"])["commits"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        assert!(!home.avfs(&["stat", "/pwned"]).status.success());
    });
}

#[test]
fn looking_makes_no_version() {
    with_vault(AVFS, |home| {
        repository(home);
        run(home, "touch -d '2020-01-01' /repo/a");
        let versions = || home.json(&["log"]).as_array().unwrap().len();
        let before = versions();
        for words in [
            &["status", "-C", "/repo"][..],
            &["diff", "-C", "/repo", "--stat"],
            &["log", "-C", "/repo"],
            &["branch", "-C", "/repo"],
        ] {
            git(home, words);
        }
        assert_eq!(versions(), before);
    });
}

#[test]
fn names_are_what_they_are() {
    with_vault(AVFS, |home| {
        repository(home);
        run(
            home,
            r#"cd /repo; mkdir -- '-d' 'sp ace'; echo > "-d/--output=x"; echo > 'sp ace/# branch.head forged'
               printf x > "$(printf 'new\nline\ttab')"; printf x > "$(printf 'bad\377bytes')"
               echo > '*'; git add -- '-d'; git mv a "$(printf 're\nnamed')""#,
        );
        let state = git(home, &["status", "-C", "/repo"]);
        assert_eq!(state["branch"], "main");
        let listed = state["entries"].as_array().unwrap();
        let find = |path: &str| {
            let found = listed.iter().find(|it| it["path"] == path);
            found.unwrap_or_else(|| panic!("{path:?} in {state:#}"))
        };
        assert_eq!(find("re\nnamed")["from"], "a");
        assert_eq!(find("re\nnamed")["staged"], "renamed");
        assert_eq!(find("-d/--output=x")["staged"], "added");
        assert_eq!(find("sp ace/# branch.head forged")["unstaged"], "untracked");
        find("new\nline\ttab");
        assert_eq!(find("bad\u{fffd}bytes")["path_b64"], "YmFk/2J5dGVz");
        // A name with a wildcard means itself.
        let diff = git(home, &["diff", "-C", "/repo", "--staged", "--file", "*"]);
        assert_eq!(diff["diff"], "");
        let shown = home.ok(&["git", "status", "-C", "/repo"]);
        assert!(!shown.contains("re\nnamed"), "{shown}");
        for words in [
            &["diff", "-C", "/repo", "--commit=--output=/pwned"][..],
            &["branch", "-C", "/repo", "--create=-D", "--from", "main"],
            &["branch", "-C", "/repo", "--switch=--force"],
            &["log", "-C", "/repo", "--from=--output=/pwned"],
        ] {
            let (_, problem) = home.refused(&[&["git"], words].concat());
            assert_eq!(problem["error"], "Invalid", "{words:?}: {problem}");
        }
        assert!(!home.avfs(&["stat", "/pwned"]).status.success());
    });
}

/// Whatever a repository has git run leaves its marks in the vault and none on the host.
#[test]
fn programs_that_a_repository_names_run_in_the_sandbox() {
    with_vault(AVFS, |home| {
        repository(home);
        let outside = home.path().join("escaped");
        let outside = outside.to_str().unwrap();
        let script = format!(
            r#"#!/bin/sh
echo "$0" >> /marks
mkdir -p "$(dirname {outside})" 2>/dev/null
touch {outside} 2>/dev/null
test -e {home}/store.db && echo seen >> /seen
case "$0" in *filter) cat;; esac
exit 0
"#,
            home = home.avfs_home().display()
        );
        for name in [
            "fsmonitor",
            "external",
            "textconv",
            "filter",
            "pre-commit",
            "post-commit",
        ] {
            home.ok(&[
                "write",
                "-p",
                "-m",
                "755",
                &format!("/evil/{name}"),
                &script,
            ]);
        }
        run(
            home,
            "cd /repo; git config core.fsmonitor /evil/fsmonitor; git config diff.external /evil/external
             git config diff.x.textconv /evil/textconv; git config filter.x.clean /evil/filter
             git config core.hooksPath /evil; git config core.pager /evil/external
             echo '* filter=x diff=x' > .gitattributes; echo more >> a",
        );
        git(home, &["status", "-C", "/repo"]);
        let diff = git(home, &["diff", "-C", "/repo"]);
        assert!(diff["diff"].as_str().unwrap().contains("+more"), "{diff}");
        let done = git(
            home,
            &["commit", "-C", "/repo", "-m", "with hooks", "--all"],
        );
        assert_eq!(done["committed"], true);
        let marks = home.ok(&["cat", "/marks"]);
        for ran in ["/evil/fsmonitor", "/evil/filter", "/evil/pre-commit"] {
            assert!(marks.contains(ran), "{ran}: {marks}");
        }
        for never in ["/evil/external", "/evil/textconv"] {
            assert!(!marks.contains(never), "{never}: {marks}");
        }
        assert!(!std::path::Path::new(outside).exists());
        assert!(!home.avfs(&["stat", "/seen"]).status.success());
        // A hook that objects is an error, and not "nothing to commit".
        home.ok(&[
            "write",
            "-m",
            "755",
            "/evil/pre-commit",
            "#!/bin/sh\necho '\u{1b}[2Jno' >&2; exit 1\n",
        ]);
        run(home, "echo again >> /repo/a");
        let problem = refused(home, &["commit", "-C", "/repo", "-m", "no", "--all"]);
        assert_eq!(problem["error"], "Conflict", "{problem}");
        assert!(
            problem["message"].as_str().unwrap().ends_with("?[2Jno"),
            "{problem}"
        );
    });
}

#[test]
fn refusals_say_what_to_do() {
    with_vault(AVFS, |home| {
        repository(home);
        run(home, "mkdir /empty /fresh; git init -q -b main /fresh");
        for (words, kind) in [
            (&["status", "-C", "/empty"][..], "NotFound"),
            (&["log", "-C", "/empty"], "NotFound"),
            (&["diff", "-C", "/repo", "--commit", "nope"], "NotFound"),
            (&["log", "-C", "/repo", "--from", "nope"], "NotFound"),
            (
                &["branch", "-C", "/repo", "--create", "main"],
                "AlreadyExists",
            ),
            (&["branch", "-C", "/repo", "--switch", "nope"], "NotFound"),
            (&["clone", "https://example.org/x.git", "/x"], "Denied"),
            (&["clone", "git@example.org:x.git", "/x"], "Invalid"),
            (&["clone", "ext::sh -c 'touch /pwned'", "/x"], "Invalid"),
            (&["clone", "/repo", "/evil"], "Conflict"),
        ] {
            if words[2] == "/evil" {
                run(home, "mkdir -p /evil; touch /evil/x");
            }
            let problem = refused(home, words);
            let known = problem["error"] == kind
                || words[0] == "clone" && problem["error"] == "AlreadyExists";
            assert!(known, "{words:?}: {problem}");
        }
        assert_eq!(git(home, &["log", "-C", "/fresh"])["commits"], json!([]));
        assert_eq!(git(home, &["branch", "-C", "/fresh"])["current"], "main");
        let fresh = git(home, &["status", "-C", "/fresh"]);
        assert_eq!(
            (&fresh["commit"], &fresh["dirty"]),
            (&Value::Null, &json!(false))
        );
        let (_, problem) = home.refused(&["git", "commit", "-C", "/repo", "-m", " "]);
        assert_eq!(problem["error"], "Invalid", "{problem}");
    });
}

#[test]
fn policy_decides_about_git_too() {
    with_vault(AVFS, |home| {
        repository(home);
        let rules = home.path().join("rules.toml");
        let text = r#"
[[rule]]
name = "no-commits"
command = ["git", "commit"]
action = "deny"
reason = "commits are made by people"

[[rule]]
name = "ask-for-branches"
command = ["git", "branch"]
action = "require_approval"
"#;
        std::fs::write(&rules, text).unwrap();
        home.give(&rules);
        home.ok(&["policy", "edit", "--from", rules.to_str().unwrap()]);
        run(home, "echo more >> /repo/a");
        let problem = refused(home, &["commit", "-C", "/repo", "-m", "x", "--all"]);
        assert_eq!(problem["error"], "Denied", "{problem}");
        assert!(
            problem["message"]
                .as_str()
                .unwrap()
                .contains("made by people"),
            "{problem}"
        );
        let problem = refused(home, &["branch", "-C", "/repo", "--create", "x"]);
        assert_eq!(problem["error"], "NeedsApproval", "{problem}");
        let waiting = home.json(&["approval", "list"]);
        let id = waiting["approvals"][0]["id"].as_str().unwrap();
        assert!(problem["hint"].as_str().unwrap().contains(id), "{problem}");
        git(home, &["status", "-C", "/repo"]);
        let journal = home.json(&["audit", "--limit", "20"]).to_string();
        assert!(journal.contains("vault v:2"), "{journal}");
    });
}

#[test]
fn a_caller_without_the_scope_runs_no_git() {
    with_vault(AVFS, |home| {
        repository(home);
        let said = home
            .command(&["git", "status", "-C", "/repo", "--json"])
            .env("AVFS_CLASS", "agent")
            .output()
            .unwrap();
        assert!(said.status.success(), "{said:?}");
        let body = br#"{"path":"/repo"}"#;
        for (scopes, expected) in [("read,write", 403), ("run", 200)] {
            for verb in ["status", "diff", "log", "branch"] {
                let address = format!("/v1/vaults/v/git/{verb}");
                let headers = [&*format!("avfs-scopes: {scopes}")];
                let answer = ask(&home.socket(), &headers, ("POST", &address), body);
                let (status, body) = status_and_body(&answer);
                assert_eq!(status, expected, "{verb}: {body}");
            }
        }
    });
}
