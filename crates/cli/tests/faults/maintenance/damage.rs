//! fsck over a home that something happened to.

use crate::AVFS;
use avfs_testkit::with_vault;
use std::fs;
use std::os::unix::fs::FileExt;

#[test]
fn a_whole_home_is_clean() {
    with_vault(AVFS, |home| {
        home.shell("mkdir /d; echo x > /d/f; ln /d/f /g; ln -s /d /s; mkfifo /p");
        let findings = home.json(&["fsck"]);
        assert_eq!(
            (&findings["clean"], &findings["damaged"]),
            (&true.into(), &serde_json::json!([]))
        );
        assert!(findings["objects"].as_u64().unwrap() > 3, "{findings}");
        assert_eq!(home.avfs(&["fsck"]).status.code(), Some(0));
        assert!(home.ok(&["fsck"]).starts_with("clean"));
    });
}

#[test]
fn damage_is_named_with_vault_state_and_path() {
    with_vault(AVFS, |home| {
        home.shell("mkdir /d; head -c 9000 /dev/urandom > /d/f");
        home.ok(&["checkpoint", "save", "point"]);
        home.ok(&["vault", "fork", "v", "fork"]);
        home.ok(&["write", "/other", "fine"]);
        home.ok(&["daemon", "stop"]);
        let pack = home.avfs_home().join("packs/00000001.pack");
        let bytes = fs::read(&pack).unwrap();
        // The one record of 9,000 bytes: its header holds the length, sixteen bytes in.
        let length = 9000_u64.to_le_bytes();
        let at = bytes
            .windows(8)
            .position(|window| window == length)
            .unwrap()
            + 500;
        let file = fs::File::options().write(true).open(&pack).unwrap();
        file.write_all_at(&[bytes[at] ^ 1], at as u64).unwrap();

        let output = home.avfs(&["fsck"]);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("vault v, /d/f (head, "), "{text}");
        let findings = home.json(&["fsck"]);
        let damage = &findings["damaged"][0];
        assert_eq!(
            (
                &findings["clean"],
                findings["damaged"].as_array().unwrap().len()
            ),
            (&false.into(), 1)
        );
        assert_eq!(damage["problem"], "its bytes do not have its hash");
        let fork = damage["seen"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["vault"] == "fork");
        assert_eq!(fork.unwrap()["path"], "/d/f");
        let states = damage["seen"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["vault"] == "v");
        assert!(
            states.unwrap()["states"]
                .to_string()
                .contains("checkpoint point"),
            "{damage}"
        );

        // Reading it is an error of its own kind, and the rest is as it was.
        assert_eq!(home.json(&["cat", "/d/f"])["error"], "Corrupt");
        assert_eq!(home.ok(&["cat", "/other"]), "fine");
    });
}
