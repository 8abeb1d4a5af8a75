//! One script through a vault's whole life, as root and as a user: what comes out at the end is
//! what went in, byte for byte.

use avfs_testkit::{Home, Scan, scan};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::AVFS;
/// How deep the chain of forks is.
const DEEP: usize = 200;

/// A directory with something of everything in it, readable by the home's user.
fn source(home: &Home) -> PathBuf {
    let dir = home.path().join("source");
    let at = |name: &str| dir.join(name);
    fs::create_dir_all(at("src/deep/er")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    for (name, bytes, mode) in [
        ("README", &b"hello\n"[..], 0o644),
        ("src/run", b"#!/bin/sh\nexit 0\n", 0o755),
        ("src/secret", b"\0\xff\xfe binary", 0o600),
        ("src/deep/er/none", b"", 0o444),
        ("odd name \n and sp\u{e4}ce", b"odd", 0o640),
    ] {
        fs::write(at(name), bytes).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    // Above the size at which files are cut into chunks.
    let large: Vec<u8> = (0..900_000_u32)
        .flat_map(|n| n.wrapping_mul(n).to_le_bytes())
        .collect();
    fs::write(at("large.bin"), large).unwrap();
    for n in 0..400 {
        fs::create_dir_all(at("many")).unwrap();
        fs::write(at(&format!("many/{n:03}")), format!("{n}\n")).unwrap();
    }
    fs::hard_link(at("README"), at("src/README-twin")).unwrap();
    symlink("../README", at("src/link")).unwrap();
    symlink("/nowhere/at all", at("dangling")).unwrap();
    let set = |name: &str, value: &str, path: &Path| {
        let mut command = Command::new("python3");
        let text = "import os, sys; os.setxattr(sys.argv[1], sys.argv[2], sys.argv[3].encode())";
        command.args(["-c", text]).arg(path).args([name, value]);
        assert!(command.status().unwrap().success(), "{path:?}");
    };
    set("user.colour", "blue", &at("README"));
    set("user.kind", "directory", &at("src/deep"));
    fs::set_permissions(at("src/deep"), fs::Permissions::from_mode(0o751)).unwrap();
    home.give(&dir);
    dir
}

/// What the vault holds at `/workspace`, by way of an export.
fn exported(home: &Home, vault: &str, to: &str) -> Scan {
    let to = home.path().join("out").join(to);
    home.ok(&[
        "--vault",
        vault,
        "export",
        "/workspace",
        to.to_str().unwrap(),
    ]);
    scan(&to)
}

fn kinds(diff: &Value) -> Vec<String> {
    let changes = diff["changes"]
        .as_array()
        .unwrap_or_else(|| panic!("{diff}"));
    changes
        .iter()
        .map(|it| {
            format!(
                "{} {}",
                it["kind"].as_str().unwrap(),
                it["path"].as_str().unwrap()
            )
        })
        .collect()
}

/// Each step is a command that a user could type.
fn live_through(home: &Home) {
    let source = source(home);
    fs::create_dir(home.path().join("out")).unwrap();
    let owner = source.metadata().unwrap();
    let (uid, gid) = {
        use std::os::unix::fs::MetadataExt;
        (owner.uid(), owner.gid())
    };
    std::os::unix::fs::chown(home.path().join("out"), Some(uid), Some(gid)).unwrap();
    let original = scan(&source);
    assert!(original.nodes.values().any(|node| !node.xattrs.is_empty()));

    home.ok(&["vault", "create", "v0"]);
    let imported = home.json(&["import", source.to_str().unwrap()]);
    assert_eq!(
        imported["skipped"].as_array().unwrap().len(),
        0,
        "{imported}"
    );
    assert_eq!(
        exported(home, "v0", "imported"),
        original,
        "as {}",
        home.user()
    );

    // A chain of forks, each with a mark of its own.
    for n in 0..DEEP {
        let (from, to) = (format!("v{n}"), format!("v{}", n + 1));
        home.ok(&["vault", "fork", &from, &to]);
        home.ok(&["--vault", &to, "write", "/workspace/mark", &to]);
    }
    let last = format!("v{DEEP}");
    assert_eq!(home.ok(&["--vault", &last, "cat", "/workspace/mark"]), last);
    assert_eq!(home.ok(&["--vault", "v7", "cat", "/workspace/mark"]), "v7");
    let lineage = home.json(&["vault", "info", &last]);
    assert_eq!(
        lineage["lineage"].as_array().unwrap().len(),
        DEEP,
        "{lineage}"
    );

    // The last one diverges from the first, by a command and by verbs.
    home.ok(&["--vault", &last, "checkpoint", "save", "before"]);
    let text = "rm -r many; mv src/run src/ran; echo more >> README; chmod 700 src/secret";
    let envelope = home.json(&[
        "--vault",
        &last,
        "exec",
        "--cwd",
        "/workspace",
        "--shell",
        text,
    ]);
    assert_eq!(envelope["success"], true, "{envelope}");
    home.ok(&["--vault", &last, "write", "/workspace/new", "new"]);
    let diff = home.json(&["--vault", &last, "diff", "before", "HEAD"]);
    let found = kinds(&diff);
    for change in [
        "modified /workspace/README",
        "renamed /workspace/src/ran",
        "mode /workspace/src/secret",
        "created /workspace/new",
        "deleted /workspace/many/399",
    ] {
        let is_in = found.contains(&change.to_owned());
        assert!(is_in, "{change} is not among {} changes", found.len());
    }
    let diverged = exported(home, &last, "diverged");

    // Back, and back again.
    home.ok(&["--vault", &last, "checkpoint", "restore", "before"]);
    home.ok(&["--vault", &last, "rm", "/workspace/mark"]);
    assert_eq!(exported(home, &last, "restored"), original);
    home.ok(&["--vault", &last, "checkpoint", "restore", "--undo"]);
    assert_eq!(exported(home, &last, "undone"), diverged);

    // All but the two ends go, and gc takes what they alone had.
    for n in 1..DEEP {
        home.ok(&["vault", "delete", &format!("v{n}")]);
    }
    let before = home.json(&["stats"]);
    let gone = home.json(&["gc", "--grace", "0"]);
    assert_eq!(gone["vaults_forgotten"].as_array().unwrap().len(), DEEP - 1);
    assert!(gone["orphans_deleted"].as_u64().unwrap() > 0, "{gone}");
    let after = home.json(&["stats"]);
    assert!(after["content_blobs"].as_u64() < before["content_blobs"].as_u64());
    assert_eq!(exported(home, "v0", "first"), original);
    assert_eq!(exported(home, &last, "last"), diverged);
    home.ok(&["--vault", &last, "checkpoint", "restore", "before"]);
    home.ok(&["--vault", &last, "rm", "/workspace/mark"]);
    assert_eq!(exported(home, &last, "again"), original);
    let findings = home.json(&["fsck"]);
    assert_eq!(findings["clean"], true, "{findings}");
    assert_eq!(home.json(&["audit", "verify"])["valid"], true);
}

#[test]
fn a_vault_s_whole_life() {
    for home in Home::of_every_user(AVFS) {
        live_through(&home);
    }
}
