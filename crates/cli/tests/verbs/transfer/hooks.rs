//! What tools of the host run by themselves does not get there without a word, and what git runs not without leave.

use super::{at, project, write};
use crate::AVFS;
use avfs_testkit::{Home, scan, with_vault};
use serde_json::Value;
use std::fs;
use std::path::Path;

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";

/// A project that is a git repository.
fn repository(home: &Home) -> std::path::PathBuf {
    let dir = project(home);
    write(&dir, ".git/HEAD", "ref: refs/heads/main\n");
    write(&dir, ".git/config", CONFIG);
    write(&dir, ".git/hooks/pre-push.sample", "exit 0\n");
    write(&dir, ".git/refs/heads/main", "");
    home.give(&dir);
    home.ok(&["import", "project"]);
    dir
}

/// What a report says runs by itself, and whether it needs leave.
fn named(report: &Value) -> Vec<(String, bool)> {
    let items = report["runs_by_itself"].as_array().expect("a list");
    let name = |item: &Value| {
        let path = item["path"].as_str().expect("a path").to_owned();
        assert!(item["why"].is_string());
        (path, item["guarded"] == true)
    };
    items.iter().map(name).collect()
}

#[test]
fn hooks_and_settings_that_name_programs_go_back_only_with_leave() {
    with_vault(AVFS, |home| {
        let dir = repository(home);
        let script = "cd /workspace; printf 'touch x' > .git/hooks/post-checkout; \
            chmod +x .git/hooks/post-checkout; mkdir -p sub .git/modules/a/hooks bare.git/{objects,refs,hooks}; \
            echo 'gitdir: ../elsewhere' > sub/.git; ln -s /x .git/modules/a/hooks/pre-commit; \
            echo x > .git/hooks/y.sample; touch bare.git/HEAD; echo x > bare.git/hooks/update; \
            printf '[core]\\n\\tfsmonitor = ./x\\n' > bare.git/config; \
            mkdir -p .git/refs/heads/hooks; echo x > .git/refs/heads/hooks/config; \
            printf '[core] hooksPath = x\\n' >> .git/config; \
            mkdir -p config hooks; echo x > config/config; echo x > hooks/mine";
        assert_eq!(home.shell(script)["result"]["exit_code"], 0);
        let guarded = [
            ".git/config",
            ".git/hooks/post-checkout",
            ".git/modules/a/hooks/pre-commit",
            "bare.git/config",
            "bare.git/hooks/update",
            "sub/.git",
        ];
        let expected: Vec<(String, bool)> =
            guarded.iter().map(|it| (it.to_string(), true)).collect();

        let before = scan(&dir);
        let plan = home.json(&["export", "--changed-only", "project", "--dry-run"]);
        assert_eq!(named(&plan), expected);
        let text = home.ok(&["export", "--changed-only", "project", "--dry-run"]);
        assert!(
            text.contains("executed by tools: .git/hooks/post-checkout"),
            "{text}"
        );
        assert!(text.contains("only with --allow-hooks"), "{text}");
        for words in [
            &["export", "--changed-only", "project"][..],
            &["export", "/workspace", "new"],
            &["export", "/workspace", "project", "--overwrite"],
        ] {
            let (kind, answer) = home.refused(words);
            assert_eq!(kind, "Denied", "{answer:#}");
            let message = answer["message"].as_str().expect("a message");
            assert!(
                guarded.iter().all(|path| message.contains(path)),
                "{message}"
            );
            assert!(
                answer["hint"]
                    .as_str()
                    .expect("a hint")
                    .contains("--allow-hooks")
            );
        }
        assert_eq!(scan(&dir), before, "nothing was written");
        assert!(!at(home, "new").exists());

        let whole = home.json(&["export", "/workspace", "new", "--allow-hooks"]);
        assert_eq!(named(&whole), expected);
        let tar = home.json(&["export", "/workspace", "--tar", "new.tar"]);
        assert_eq!(named(&tar), expected, "an archive only names them");
        let done = home.json(&["export", "--changed-only", "project", "--allow-hooks"]);
        assert_eq!(named(&done), expected);
        assert_eq!(
            fs::read_to_string(dir.join(".git/hooks/post-checkout")).unwrap(),
            "touch x"
        );
        let audit = home.ok(&["--json", "audit", "--operation", "export_changes"]);
        assert!(audit.contains(".git/hooks/post-checkout"), "{audit}");
    });
}

#[test]
fn what_git_writes_itself_needs_no_leave() {
    with_vault(AVFS, |home| {
        let dir = repository(home);
        let hooks = "[core]\n\thooksPath = mine\n";
        // What the host had before is the host's.
        fs::write(dir.join(".git/config"), format!("{CONFIG}{hooks}")).unwrap();
        write(&dir, ".git/hooks/pre-push", "exit 0\n");
        home.give(&dir);
        home.ok(&["import", "project"]);
        let more = "[remote \"origin\"]\n\turl = https://host/x.git\n";
        home.ok(&[
            "write",
            "/workspace/.git/config",
            &format!("{CONFIG}{hooks}{more}"),
        ]);
        let done = home.json(&["export", "--changed-only", "project"]);
        assert_eq!(named(&done), []);
        assert!(
            fs::read_to_string(dir.join(".git/config"))
                .unwrap()
                .ends_with(more)
        );
        // But a new value is not.
        let other = format!("{CONFIG}{}{more}", hooks.replace("mine", "other"));
        home.ok(&["write", "/workspace/.git/config", &other]);
        assert_eq!(
            home.refused(&["export", "--changed-only", "project"]).0,
            "Denied"
        );
        // Nor is a mode that makes a hook of what was none.
        home.ok(&[
            "write",
            "/workspace/.git/config",
            &format!("{CONFIG}{hooks}{more}"),
        ]);
        home.ok(&["chmod", "755", "/workspace/.git/hooks/pre-push"]);
        assert_eq!(
            home.refused(&["export", "--changed-only", "project"]).0,
            "Denied"
        );
    });
}

#[test]
fn what_other_tools_run_is_named() {
    with_vault(AVFS, |home| {
        project(home);
        home.ok(&["import", "project"]);
        let files = [
            ".bashrc",
            ".claude/settings.json",
            ".envrc",
            ".githooks/pre-commit",
            ".husky/_/husky.sh",
            ".vscode/tasks.json",
            "sub/.envrc",
        ];
        for file in files {
            home.ok(&["write", "--parents", &format!("/workspace/{file}"), "x"]);
        }
        home.ok(&["write", "/workspace/envrc", "x"]);
        let expected: Vec<(String, bool)> =
            files.iter().map(|it| (it.to_string(), false)).collect();
        assert_eq!(
            named(&home.json(&["export", "/workspace", "new"])),
            expected
        );
        let text = home.ok(&["export", "--changed-only", "project"]);
        for file in files {
            assert!(
                text.contains(&format!("executed by tools: {file} (")),
                "{file}: {text}"
            );
        }
        assert!(Path::new(&at(home, "project/.envrc")).exists());
    });
}
