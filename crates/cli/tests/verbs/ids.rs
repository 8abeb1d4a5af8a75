//! A vault's id is accepted wherever its name is, and no other vault can be called like one.

use crate::AVFS;
use avfs_testkit::{Home, with_vault};

fn id_of(home: &Home, vault: &str) -> String {
    let info = home.json(&["vault", "info", vault]);
    info["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_id_is_as_good_as_a_name() {
    with_vault(AVFS, |home| {
        let id = id_of(home, "v");
        home.ok(&["--vault", &id, "write", "/f", "text"]);
        assert_eq!(home.ok(&["--vault", &id, "cat", "/f"]), "text");
        assert_eq!(home.json(&["vault", "info", &id])["name"], "v");
        let ran = home.json(&["--vault", &id, "exec", "--", "cat", "/f"]);
        assert_eq!(ran["result"]["stdout"], "text", "{ran:#}");
        assert_eq!(ran["result"]["vault"], "v", "{ran:#}");
        home.ok(&["vault", "fork", &id, "w"]);
        home.ok(&["vault", "use", &id_of(home, "w")]);
        assert_eq!(home.json(&["vault", "info"])["name"], "w");
        home.ok(&["write", "/f", "other"]);
        let diff = home.ok(&["diff", &format!("vault:{id}"), "HEAD"]);
        assert!(diff.contains("/f"), "{diff}");
        let jobs = home.json(&["--vault", &id, "job", "list"]);
        assert!(jobs["jobs"].as_array().is_some(), "{jobs}");
        let audit = home.json(&["--vault", &id, "audit"]);
        let names = audit["entries"].as_array().unwrap().iter();
        assert!(
            names.map(|entry| &entry["vault"]).all(|name| name == "v"),
            "{audit}"
        );
        // It stays when the name changes.
        home.ok(&["vault", "rename", &id, "renamed"]);
        assert_eq!(home.json(&["vault", "info", &id])["name"], "renamed");
        home.ok(&["vault", "delete", &id]);
        let (kind, _) = home.refused(&["--vault", &id, "ls"]);
        assert_eq!(kind, "NotFound");
    });
}

/// Whoever may make vaults could otherwise have one taken for another.
#[test]
fn no_vault_can_take_an_id_for_its_name() {
    with_vault(AVFS, |home| {
        let id = id_of(home, "v");
        for words in [
            &["vault", "create", &id][..],
            &["vault", "fork", "v", &id],
            &["vault", "rename", "v", &id],
            &["vault", "create", "00000000-0000-0000-0000-000000000000"],
        ] {
            let (kind, answer) = home.refused(words);
            assert_eq!(kind, "Invalid", "{answer}");
            assert!(
                answer["message"]
                    .as_str()
                    .unwrap()
                    .contains("id of a vault"),
                "{answer}"
            );
        }
        // What is not written as an id is printed is a name.
        let shout = id.to_uppercase();
        home.ok(&["vault", "create", &shout]);
        assert_eq!(home.json(&["vault", "info", &shout])["name"], shout);
    });
}

#[test]
fn there_is_one_storage_engine() {
    with_vault(AVFS, |home| {
        let created = home.json(&["vault", "create", "w", "--backend", "sqlite"]);
        assert_eq!(created["backend"], "sqlite", "{created}");
        let (kind, answer) = home.refused(&["vault", "create", "x", "--backend", "zfs"]);
        assert_eq!(kind, "Invalid");
        let message = answer["message"].as_str().unwrap();
        assert!(
            message.contains("zfs") && message.contains("sqlite"),
            "{message}"
        );
        assert_eq!(home.refused(&["vault", "info", "x"]).0, "NotFound");
    });
}
