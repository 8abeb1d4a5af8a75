//! Commit on demand, and ending what is in the way.

use crate::{Worker, causes, homes};

#[test]
fn a_commit_says_what_it_took_in() {
    for home in homes() {
        assert_eq!(home.ok(&["commit"]).trim(), "nothing has changed");
        let worker = Worker::start(&home, "echo new > /new", ":");
        // Asking for /tmp/up makes no version; the commit does.
        let committed = home.json(&["commit"]);
        assert_eq!(committed["changed_files"][0]["path"], "/new", "{committed}");
        assert_eq!(committed["changed_files"][0]["kind"], "created");
        assert!(committed["version"].is_u64(), "{committed}");
        assert_eq!(home.json(&["commit"])["version"], serde_json::Value::Null);
        assert!(causes(&home).iter().any(|it| it == "commit"));
        let journal = home.json(&["audit", "--operation", "commit"]);
        assert!(journal.to_string().contains("\"commit\""), "{journal}");
        worker.stop();
    }
}

#[test]
fn a_restore_ends_commands_only_when_told_to() {
    for home in homes() {
        home.ok(&["write", "/f", "before"]);
        home.ok(&["checkpoint", "save", "c"]);
        let mut worker = Worker::start(&home, "echo during > /f; echo more > /g", ":");
        let refused = home.json(&["checkpoint", "restore", "c"]);
        assert_eq!(refused["error"], "Conflict", "{refused}");
        assert!(refused.to_string().contains("--force"), "{refused}");
        home.ok(&["checkpoint", "restore", "c", "--force"]);
        let ended = worker.finish().expect("it was running");
        assert!(!ended.status.success());
        assert_eq!(home.ok(&["cat", "/f"]), "before");
        home.ok(&["checkpoint", "restore", "--undo"]);
        assert_eq!(home.ok(&["cat", "/g"]), "more\n", "as {}", home.user());
        let mut worker = Worker::start(&home, ":", ":");
        assert!(!home.avfs(&["vault", "delete", "v"]).status.success());
        home.ok(&["vault", "delete", "v", "--force"]);
        worker.finish();
    }
}
