//! A home without its database: refused, and brought back as far as its packs tell.

use super::spoil::copy_pack;
use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use serde_json::Value;
use std::fs;

/// Stops the daemon and takes the database away.
fn lose_database(home: &Home) {
    home.ok(&["daemon", "stop"]);
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(home.avfs_home().join(name));
    }
}

fn packs(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.avfs_home().join("packs")).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

fn is_refused(home: &Home) {
    for words in [
        &["vault", "list"][..],
        &["gc"],
        &["vault", "create", "new"],
        &["fsck"],
    ] {
        let answer = home.json(words);
        let hint = answer["hint"].to_string();
        assert!(hint.contains("avfs fsck --rebuild"), "{words:?}: {answer}");
        assert_eq!(home.avfs(words).status.code(), Some(1), "{words:?}");
    }
}

#[test]
fn a_lost_database_is_refused_and_rebuilt_from_packs() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "first"]);
        home.ok(&["mkdir", "/d"]);
        home.shell("echo deep > /d/f; head -c 3000000 /dev/urandom > /large");
        let large = home.avfs(&["cat", "/large"]).stdout;
        lose_database(home);
        let before = packs(home);
        is_refused(home);
        // Who gives up the owner's class gives this up, too.
        let as_agent = home
            .command(&["--json", "fsck", "--rebuild"])
            .env("AVFS_CLASS", "agent")
            .output();
        let answer: Value = serde_json::from_slice(&as_agent.unwrap().stdout).unwrap();
        assert!(answer["error"].is_string(), "{answer}");
        assert!(!home.avfs_home().join("store.db").exists());

        let found = home.json(&["fsck", "--rebuild"]);
        assert_eq!(found["clean"], true, "{found}");
        let rebuilt = &found["rebuilt"];
        assert_eq!(rebuilt["database_lost"], true, "{found}");
        assert_eq!(rebuilt["recovered"]["vault"], "recovered", "{found}");
        assert!(
            rebuilt["recovered"]["versions"].as_u64().unwrap() >= 3,
            "{found}"
        );
        assert_eq!(packs(home), before, "no pack is touched");
        let list = home.json(&["vault", "list"]);
        assert_eq!(list[0]["name"], "recovered", "{list}");
        let log = home.json(&["--vault", "recovered", "log", "/large"]);
        let number = log[0]["version"].as_u64().unwrap().to_string();
        let back = home.avfs(&["--vault", "recovered", "cat", "/large", "-v", &number]);
        assert_eq!(back.stdout, large);
        let journal = home.json(&["audit", "--operation", "rebuild"]);
        assert_eq!(journal["entries"][0]["by"], "owner", "{journal}");

        home.ok(&["gc", "--grace", "0"]);
        let back = home.avfs(&["--vault", "recovered", "cat", "/large", "-v", &number]);
        assert_eq!(back.stdout, large, "it is somebody's now");
        let text = home.ok(&["fsck", "--rebuild"]);
        assert!(text.starts_with("there are no packs unknown"), "{text}");
    });
}

#[test]
fn a_database_that_is_none_is_put_aside() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "kept"]);
        home.ok(&["daemon", "stop"]);
        let database = home.avfs_home().join("store.db");
        let length = fs::metadata(&database).unwrap().len() as usize;
        fs::write(&database, vec![0x5a; length]).unwrap();
        is_refused(home);
        let text = home.ok(&["fsck", "--rebuild"]);
        assert!(text.starts_with("the database was lost"), "{text}");
        assert!(
            text.contains("came back whole, as versions of vault recovered"),
            "{text}"
        );
        assert_eq!(home.ok(&["--vault", "recovered", "cat", "/f"]), "kept");
        let aside = home.avfs_home().join("store.db.lost");
        assert_eq!(fs::read(aside).unwrap(), vec![0x5a; length]);
    });
}

/// Work that was not committed is of a vault that nobody knows any more; it is not removed.
#[test]
fn layers_of_lost_vaults_are_kept() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "x"]);
        home.ok(&["daemon", "stop"]);
        let layers = home.avfs_home().join("layers");
        let upper = layers.join("0123456789abcdef0123456789abcdef/layer/upper");
        fs::create_dir_all(&upper).unwrap();
        fs::write(upper.join("work"), "unsaved").unwrap();
        lose_database(home);
        let found = home.json(&["fsck", "--rebuild"]);
        let aside = home.avfs_home().join("layers.lost");
        assert_eq!(
            found["rebuilt"]["put_aside"][0],
            aside.to_str().unwrap(),
            "{found}"
        );
        let work = "0123456789abcdef0123456789abcdef/layer/upper/work";
        assert_eq!(fs::read_to_string(aside.join(work)).unwrap(), "unsaved");
        assert_eq!(home.shell("cat /f")["result"]["exit_code"], 0);
    });
}

#[test]
fn packs_of_another_home_are_taken_in_when_asked_for() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/mine", "mine"]);
        let other = Home::new(crate::AVFS);
        other.ok(&["vault", "create", "w"]);
        other.ok(&["write", "/theirs", "theirs"]);
        other.ok(&["daemon", "stop"]);
        home.ok(&["daemon", "stop"]);
        let pack = home.avfs_home().join("packs/00000050.pack");
        copy_pack(home, &other.avfs_home().join("packs/00000001.pack"), &pack);
        home.ok(&["gc", "--grace", "0"]);
        assert!(
            pack.exists(),
            "gc removes no pack that this home did not write"
        );
        let found = home.json(&["fsck", "--rebuild"]);
        assert_eq!(found["rebuilt"]["database_lost"], false, "{found}");
        assert!(found["rebuilt"]["objects"].as_u64().unwrap() > 1, "{found}");
        assert_eq!(
            home.ok(&["--vault", "recovered", "cat", "/theirs"]),
            "theirs"
        );
        assert_eq!(home.ok(&["cat", "/mine"]), "mine");
        home.ok(&["gc", "--grace", "0"]);
        assert_eq!(
            home.ok(&["--vault", "recovered", "cat", "/theirs"]),
            "theirs"
        );
    });
}

/// Whatever else of a home is lost, what is left works, and what is not says so.
#[test]
fn other_parts_of_a_home_that_are_lost() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "some words"]);
        home.shell("head -c 6000000 /dev/zero | tr '\\0' x > /large");
        home.ok(&["search", "words"]);
        home.json(&["job", "start", "--", "true"]);
        home.ok(&["daemon", "stop"]);
        for part in [
            "layers", "jobs", "search", "objects", "exports", "spill", "mounts",
        ] {
            let _ = fs::remove_dir_all(home.avfs_home().join(part));
        }
        assert_eq!(home.ok(&["cat", "/f"]), "some words");
        assert!(home.ok(&["search", "words"]).contains("/f"));
        assert_eq!(home.json(&["job", "list"])["jobs"], serde_json::json!([]));
        assert_eq!(home.shell("cat /f; echo y > /g")["success"], true);
        home.ok(&["daemon", "stop"]);
        fs::remove_dir_all(home.avfs_home().join("packs")).unwrap();
        assert_eq!(home.json(&["vault", "list"])[0]["damaged"], true);
        let answer = home.json(&["cat", "/f"]);
        assert_eq!(answer["error"], "Corrupt", "{answer}");
        let found = home.json(&["fsck"]);
        assert_eq!(found["clean"], false, "{found}");
        let other = home.ok(&["vault", "create", "after"]);
        assert!(other.contains("after"));
        home.ok(&["--vault", "after", "write", "/f", "goes on"]);
        assert_eq!(home.ok(&["--vault", "after", "cat", "/f"]), "goes on");
    });
}

/// Whatever is in a home has a line in the description of its format.
#[test]
fn every_name_in_a_home_is_described() {
    let described = include_str!("../../../../../docs/format.md");
    with_vault(AVFS, |home| {
        let source = home.user_home().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("f"), "words").unwrap();
        home.ok(&["import", source.to_str().unwrap(), "/p"]);
        home.ok(&["search", "words"]);
        home.shell("head -c 6000000 /dev/urandom > /large; head -c 200000 /dev/zero");
        let started = home.json(&["job", "start", "--", "true"]);
        home.avfs(&["job", "wait", &started["id"].to_string()]);
        home.ok(&[
            "export",
            "/p",
            home.user_home().join("out").to_str().unwrap(),
        ]);
        home.avfs(&["mount"]);
        home.ok(&["gc"]);
        let names: Vec<String> = fs::read_dir(home.avfs_home())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            let is_described = described.lines().any(|line| {
                let words = line.split([' ', ',']).filter(|word| !word.is_empty());
                let mut words = words.map(|word| word.split('/').next().unwrap_or(word));
                words.any(|word| word == name)
            });
            assert!(is_described, "{name} is not in docs/format.md");
        }
        home.avfs(&["unmount", "--all"]);
    });
}
