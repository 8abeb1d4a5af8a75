//! Bringing changes back to the directory they came from.

use super::{at, project, write};
use crate::AVFS;
use avfs_testkit::{scan, with_vault};
use std::fs;

#[test]
fn what_commands_changed_goes_back() {
    with_vault(AVFS, |home| {
        let dir = project(home);
        home.ok(&["import", "project"]);
        home.ok(&["vault", "fork", "v", "try", "--use"]);
        let script = "echo more >> README && mkdir new && echo n > new/n && rm -r src/deep run.sh \
                      && chmod 755 src/main.py && ln -sfn new link";
        assert_eq!(home.shell(script)["result"]["exit_code"], 0);
        write(&dir, "untracked", "stays");

        let before = scan(&dir);
        let plan = home.json(&["export", "--changed-only", "project", "--dry-run"]);
        assert_eq!(scan(&dir), before, "a dry run changes nothing");
        let done = home.json(&["export", "--changed-only", "project"]);
        assert_eq!(
            done["changes"], plan["changes"],
            "and says what will be done"
        );
        assert_eq!(done["vfs_path"], "/workspace");
        fs::remove_file(dir.join("untracked")).unwrap();
        home.ok(&["export", "/workspace", "whole"]);
        assert_eq!(scan(&dir), scan(&at(home, "whole")), "{}", home.user());

        let again = home.json(&["export", "--changed-only", "project"]);
        assert_eq!(again["changes"], serde_json::json!([]), "{again}");
        let audit = home.ok(&["--json", "audit", "-n", "5"]);
        assert!(audit.contains("export_changes"), "{audit}");
    });
}

#[test]
fn files_that_changed_on_the_host_are_named_and_nothing_is_written() {
    with_vault(AVFS, |home| {
        let dir = project(home);
        home.ok(&["import", "project"]);
        home.ok(&["write", "/workspace/README", "from the vault"]);
        home.ok(&["write", "/workspace/src/main.py", "from the vault"]);
        home.ok(&["rm", "/workspace/run.sh"]);
        fs::write(dir.join("run.sh"), "by hand").unwrap();
        fs::write(dir.join("src/main.py"), "by hand").unwrap();
        let before = scan(&dir);
        let (kind, answer) = home.refused(&["export", "--changed-only", "project"]);
        assert_eq!(kind, "Conflict");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("run.sh (it changed there)"), "{message}");
        assert!(
            message.contains("src/main.py (it changed there)"),
            "{message}"
        );
        assert!(!message.contains("README"), "{message}");
        assert!(answer["hint"].is_string());
        assert_eq!(scan(&dir), before);
        // Taking in what the host has settles it.
        home.ok(&["import", "project"]);
        let done = home.json(&["export", "--changed-only", "project"]);
        assert_eq!(done["changes"], serde_json::json!([]), "{done}");
    });
}

#[test]
fn only_what_was_imported_can_go_back() {
    with_vault(AVFS, |home| {
        let dir = project(home);
        let never = home.refused(&["export", "--changed-only", "project"]);
        assert_eq!(never.0, "NotFound");
        assert_eq!(
            home.refused(&["export", "--changed-only", "nope"]).0,
            "NotFound"
        );
        home.ok(&["checkpoint", "save", "empty"]);
        home.ok(&["import", "project", "/a"]);
        home.ok(&["import", "project", "/b"]);
        home.ok(&["write", "/a/README", "a"]);
        let b = home.json(&["export", "--changed-only", "project"]);
        assert_eq!(
            (b["vfs_path"].as_str(), &b["changes"]),
            (Some("/b"), &serde_json::json!([]))
        );
        let other = home.refused(&["export", "/c", "--changed-only", "project"]);
        assert_eq!(other.0, "NotFound");
        home.ok(&["export", "/a", "--changed-only", "project"]);
        assert_eq!(fs::read_to_string(dir.join("README")).unwrap(), "a");
        // A place that is gone deletes nothing.
        home.ok(&["checkpoint", "restore", "empty"]);
        let gone = home.refused(&["export", "/a", "--changed-only", "project"]);
        assert_eq!(gone.0, "NotFound");
        assert!(dir.join("README").exists());
    });
}
