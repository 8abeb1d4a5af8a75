//! Commit on demand, and ending what is in the way.

use super::{Worker, causes};
use crate::AVFS;
use avfs_testkit::Home;

#[test]
fn a_commit_says_what_it_took_in() {
    for home in Home::of_every_user_with_vault(AVFS) {
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
