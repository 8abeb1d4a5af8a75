//! Jobs and the vaults they run in: who is in whose way, and what the journal says.

use super::{listed, start, wait, written};
use crate::AVFS;
use avfs_testkit::with_vault;
use serde_json::json;

#[test]
fn a_vault_is_not_deleted_under_its_jobs() {
    with_vault(AVFS, |home| {
        let job = start(home, &["--shell", "echo up; sleep 1000"]);
        let reading = start(home, &["--readonly", "--", "sleep", "1000"]);
        let refused = home.json(&["vault", "delete", "v", "-y"]);
        assert_eq!(refused["error"], "Conflict");
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("jobs {job}, {reading}")),
            "{message}"
        );
        assert!(refused["hint"].as_str().unwrap().contains("avfs job kill"));
        home.ok(&["job", "kill", &reading]);
        let refused = home.json(&["vault", "delete", "v", "-y"]);
        assert!(
            refused["message"]
                .as_str()
                .unwrap()
                .contains(&format!("(job {job})"))
        );
        home.ok(&["vault", "delete", "v", "-y", "--force"]);
        let item = listed(home, &job);
        assert_eq!(
            (&item["running"], &item["reason"]),
            (&json!(false), &json!("its vault was deleted"))
        );
        assert_eq!(
            home.ok(&["job", "logs", &job]),
            "up\n",
            "what it wrote can still be read"
        );
    });
}

#[test]
fn restoring_by_force_ends_them() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "old"]);
        home.ok(&["checkpoint", "save", "c"]);
        let job = start(home, &["--shell", "echo new > /f; echo up; sleep 1000"]);
        written(home, &job, "up");
        let refused = home.json(&["checkpoint", "restore", "c"]);
        assert!(
            refused["message"]
                .as_str()
                .unwrap()
                .contains(&format!("(job {job})")),
            "{refused}"
        );
        home.ok(&["checkpoint", "restore", "c", "--force"]);
        let waited = wait(home, &job);
        assert_eq!(waited["status"], "cancelled");
        assert!(
            waited["reason"].as_str().unwrap().contains("--force"),
            "{waited:#}"
        );
        assert_eq!(home.ok(&["cat", "/f"]), "old");
        home.ok(&["checkpoint", "restore", "--undo"]);
        assert_eq!(home.ok(&["cat", "/f"]), "new\n", "its work is in the undo");
    });
}

#[test]
fn the_journal_tells_of_every_job() {
    with_vault(AVFS, |home| {
        let job = start(home, &["--", "sleep", "1000"]);
        let exec = listed(home, &job)["exec"].as_str().unwrap().to_owned();
        home.ok(&["job", "kill", &job]);
        let journal = home.json(&["audit", "--operation", "job"]);
        let entries = journal["entries"].as_array().unwrap();
        let operations: Vec<_> = entries
            .iter()
            .map(|entry| entry["operation"].as_str().unwrap())
            .collect();
        // The request to end it and its end are recorded by different hands.
        assert_eq!(operations.len(), 3, "{operations:?}");
        assert_eq!(operations[2], "job.start");
        assert!(operations.contains(&"job.kill") && operations.contains(&"job.end"));
        for entry in entries {
            assert_eq!(entry["exec"], exec);
            assert_eq!(entry["details"]["job"].to_string(), job);
        }
        assert_eq!(entries[2]["details"]["decision"], "allow");
        let of_exec = home.json(&["audit", "--exec", &exec]);
        assert!(
            of_exec["entries"].as_array().unwrap().len() >= 5,
            "with the exec's own"
        );
        assert_eq!(home.json(&["audit", "verify"])["valid"], true);
    });
}
