//! Damaged objects become whole again: by the same bytes, whoever brings them, and by `fsck --repair`.

use super::spoil::{copy_pack, object_of, on_disk, records, root_of, spoil};
use crate::AVFS;
use avfs_testkit::{Home, noise, with_vault};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const FILES: [&str; 3] = ["small", "large", "sparse"];

/// A directory of the host with files of every kind of content, imported as `/p`.
fn with_import(check: impl Fn(&Home, PathBuf)) {
    with_vault(AVFS, |home| {
        let source = home.user_home().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("small"), noise(1, 3000)).unwrap();
        fs::write(source.join("large"), noise(2, 2_500_000)).unwrap();
        let sparse = fs::File::create(source.join("sparse")).unwrap();
        sparse.set_len(9 << 20).unwrap();
        sparse.write_all_at(&noise(3, 300_000), 4 << 20).unwrap();
        home.ok(&["import", source.to_str().unwrap(), "/p"]);
        check(home, source);
    });
}

/// Damages all content of the files, and the lists that tell what the large ones are made of.
fn spoil_all(home: &Home) {
    let lists = ["/p/large", "/p/sparse"].map(|path| object_of(home, path));
    for record in records(home) {
        if record.stored >= 3000 || lists.iter().any(|id| record.id.starts_with(id)) {
            record.spoil();
        }
    }
}

fn all_are_whole(home: &Home, source: &std::path::Path) {
    for file in FILES {
        let output = home.avfs(&["cat", &format!("/p/{file}")]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{file}: {told}");
        assert_eq!(
            output.stdout,
            fs::read(source.join(file)).unwrap(),
            "{file}"
        );
    }
    assert_eq!(home.json(&["fsck"])["clean"], true);
}

#[test]
fn an_import_of_the_same_files_repairs_them() {
    with_import(|home, source| {
        spoil_all(home);
        for file in FILES {
            let answer = home.json(&["cat", &format!("/p/{file}")]);
            assert_eq!(answer["error"], "Corrupt", "{file}: {answer}");
        }
        // What is remembered of the files would spare reading them.
        home.ok(&["import", source.to_str().unwrap(), "/p"]);
        all_are_whole(home, &source);
    });
}

#[test]
fn a_write_of_the_same_bytes_repairs_them() {
    with_import(|home, source| {
        spoil_all(home);
        // Found by a check, and known to the next daemon.
        assert_eq!(home.json(&["fsck"])["clean"], false);
        home.ok(&["write", "/elsewhere", "makes it last"]);
        home.ok(&["daemon", "stop"]);
        for file in FILES {
            let from = source.join(file);
            let from = from.to_str().unwrap();
            home.ok(&["write", &format!("/p/{file}"), "--from-file", from]);
        }
        all_are_whole(home, &source);
    });
}

fn from_of(findings: &Value) -> Vec<&str> {
    let repaired = findings["repaired"].as_array();
    let repaired = repaired.unwrap_or_else(|| panic!("nothing repaired: {findings}"));
    repaired
        .iter()
        .map(|it| it["from"].as_str().unwrap())
        .collect()
}

#[test]
fn a_repair_takes_the_files_that_were_imported() {
    with_import(|home, source| {
        spoil_all(home);
        fs::rename(source.join("small"), source.join("aside")).unwrap();
        fs::write(source.join("small"), noise(9, 3000)).unwrap();
        let output = home.avfs(&["--json", "fsck", "--repair"]);
        assert_eq!(output.status.code(), Some(1), "one has changed on the host");
        let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
        let froms = from_of(&findings);
        for file in ["large", "sparse"] {
            let from = source.join(file).display().to_string();
            assert!(froms.contains(&&*from), "{froms:?}");
        }
        let left = findings["damaged"].as_array().unwrap();
        assert_eq!(left.len(), 1, "{findings}");
        assert_eq!(left[0]["seen"][0]["path"], "/p/small", "{findings}");
        fs::rename(source.join("aside"), source.join("small")).unwrap();
        let text = home.ok(&["fsck", "--repair"]);
        assert!(
            text.contains("repaired: object ") && text.contains("/p/small"),
            "{text}"
        );
        all_are_whole(home, &source);
        let journal = home.json(&["audit", "--operation", "repair"]);
        assert_eq!(
            journal["entries"].as_array().map(Vec::len),
            Some(2),
            "{journal}"
        );
    });
}

#[test]
fn a_repair_takes_other_records_and_looks_behind_what_it_mends() {
    with_vault(AVFS, |home| {
        home.ok(&["mkdir", "/d"]);
        home.ok(&["write", "/d/f", "precious"]);
        let objects = [
            root_of(home),
            object_of(home, "/d"),
            object_of(home, "/d/f"),
        ];
        home.ok(&["daemon", "stop"]);
        let packs = home.avfs_home().join("packs");
        let copy = packs.join("00000077.pack");
        copy_pack(home, &packs.join("00000001.pack"), &copy);
        for record in records(home) {
            let is_meant = objects.iter().any(|id| record.id.starts_with(id));
            if is_meant && record.pack != copy {
                record.spoil();
            }
        }
        let gc = home.json(&["gc"]);
        assert_eq!(gc["held_back"].as_array().map(Vec::len), Some(1), "{gc}");
        let as_agent = home
            .command(&["--json", "fsck", "--repair"])
            .env("AVFS_CLASS", "agent")
            .output()
            .unwrap();
        let refused: Value = serde_json::from_slice(&as_agent.stdout).unwrap();
        assert_eq!(refused["error"], "Denied", "{refused}");
        let findings = home.json(&["fsck", "--repair"]);
        assert_eq!(findings["clean"], true, "{findings}");
        assert_eq!(from_of(&findings), ["another record"; 3]);
        assert_eq!(home.ok(&["cat", "/d/f"]), "precious");
        assert_eq!(home.json(&["gc"])["held_back"], serde_json::json!([]));
        let list = home.json(&["vault", "list"]);
        assert_eq!(list[0]["damaged"], false, "{list}");
    });
}

#[test]
fn a_repair_takes_what_a_layer_still_holds() {
    with_vault(AVFS, |home| {
        let made = home.shell("head -c 5000 /dev/urandom > /f; chmod 0 /f; md5sum < /dev/null");
        assert_eq!(made["success"], true, "{made}");
        let id = object_of(home, "/f");
        for record in on_disk(home).iter().filter(|it| it.id.starts_with(&id)) {
            record.spoil();
        }
        assert_eq!(home.json(&["fsck"])["clean"], false);
        let findings = home.json(&["fsck", "--repair"]);
        assert_eq!(from_of(&findings), ["a layer"], "{findings}");
        assert_eq!(findings["clean"], true, "{findings}");
        home.ok(&["daemon", "stop"]);
        assert_eq!(home.avfs(&["cat", "/f"]).stdout.len(), 5000);
    });
}

#[test]
fn what_is_nowhere_stays_damaged_and_is_named() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "nowhere else"]);
        spoil(home, &object_of(home, "/f"));
        let output = home.avfs(&["fsck", "--repair"]);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.starts_with("damaged: ") && text.contains("vault v, /f"),
            "{text}"
        );
        let answer = home.json(&["cat", "/f"]);
        assert!(
            answer["hint"].to_string().contains("fsck --repair"),
            "{answer}"
        );
        // A command that writes it anew makes it whole.
        assert_eq!(home.shell("cat /f")["success"], false);
        let wrote = home.shell("printf 'nowhere else' > /new && mv /new /f");
        assert_eq!(wrote["success"], true, "{wrote}");
        assert_eq!(home.ok(&["cat", "/f"]), "nowhere else");
        assert_eq!(home.json(&["fsck"])["clean"], true);
    });
}
