//! Taking things out.

use super::{at, host, project};
use crate::AVFS;
use avfs_testkit::{scan, with_vault};
use std::fs;

#[test]
fn an_archive_is_what_tar_understands() {
    with_vault(AVFS, |home| {
        let dir = project(home);
        let long = "n/".repeat(80) + "long-name";
        super::write(&dir, &long, "long");
        home.give(&dir);
        home.ok(&["import", "project"]);
        home.ok(&["export", "/workspace", "direct"]);
        let wanted = scan(&at(home, "direct"));
        for name in ["plain.tar", "a.tar.gz", "a.tzst"] {
            let exported = home.json(&["export", "/workspace", "--tar", name]);
            assert_eq!(exported["files_exported"], 10, "{exported}");
            let out = at(home, &format!("from-{name}"));
            fs::create_dir(&out).unwrap();
            let archive = at(home, name);
            host(&out, &["tar", "xpf", archive.to_str().unwrap()]);
            assert_eq!(scan(&out), wanted, "{name}");
        }
        let piped = home.avfs(&["export", "/workspace", "--tar", "-"]);
        assert!(piped.status.success());
        assert_eq!(piped.stdout, fs::read(at(home, "plain.tar")).unwrap());
    });
}

#[test]
fn nothing_is_overwritten_and_nothing_is_half_done() {
    with_vault(AVFS, |home| {
        let dir = project(home);
        home.ok(&["import", "project"]);
        home.ok(&["write", "/file", "x"]);
        fs::write(at(home, "there.tar"), "mine").unwrap();
        fs::write(at(home, "file"), "mine").unwrap();
        let before = scan(home.path()).nodes.len();
        for (words, kind) in [
            (&["export", "/workspace", "project"][..], "AlreadyExists"),
            (&["export", "/workspace", "file"], "Invalid"),
            (
                &["export", "/workspace", "--tar", "there.tar"],
                "AlreadyExists",
            ),
            (&["export", "/workspace", "no/such/dir"], "NotFound"),
            (
                &["export", "/workspace", "--tar", "no/such/file.tar"],
                "NotFound",
            ),
            (&["export", "/nope", "new"], "NotFound"),
            (&["export", "/nope", "--tar", "new.tar"], "NotFound"),
            (&["export", "/etc", "new"], "Denied"),
            (&["export", "/../x", "new"], "Invalid"),
            (&["export", "/workspace", "--tar", "-"], "Invalid"),
        ] {
            assert_eq!(home.refused(words).0, kind, "{words:?}");
        }
        let broken = home.avfs(&["export", "/nope", "--tar", "-"]);
        assert_eq!((broken.status.code(), broken.stdout.len()), (Some(1), 0));
        assert_eq!(
            scan(home.path()).nodes.len(),
            before,
            "nothing is left behind"
        );
        assert_eq!(fs::read(at(home, "there.tar")).unwrap(), b"mine");
        assert_eq!(fs::read_to_string(dir.join("README")).unwrap(), "read me\n");
        for words in [
            &["export"][..],
            &["export", "/workspace"],
            &["export", "/workspace", "out", "--tar", "x"],
            &["export", "/workspace", "out", "--changed-only", "project"],
            &["export", "/workspace", "out", "--dry-run"],
        ] {
            assert_eq!(home.avfs(words).status.code(), Some(2), "{words:?}");
        }
    });
}

#[test]
fn overwrite_replaces_files_and_leaves_the_rest() {
    with_vault(AVFS, |home| {
        project(home);
        home.ok(&["import", "project"]);
        home.ok(&["export", "/workspace", "out", "--overwrite"]);
        let out = at(home, "out");
        fs::write(out.join("README"), "older").unwrap();
        fs::write(out.join("src/mine"), "mine").unwrap();
        fs::remove_file(out.join("run.sh")).unwrap();
        home.give(&out);
        let exported = home.json(&["export", "/workspace", "out", "--overwrite"]);
        assert_eq!(exported["files_exported"], 9, "{exported}");
        assert_eq!(fs::read(out.join("README")).unwrap(), b"read me\n");
        assert_eq!(fs::read(out.join("src/mine")).unwrap(), b"mine");
        assert!(out.join("run.sh").exists());

        // A file against a directory, deep down: nothing moves at all.
        fs::remove_file(out.join("src/main.py")).unwrap();
        fs::create_dir(out.join("src/main.py")).unwrap();
        fs::write(out.join("README"), "older").unwrap();
        home.give(&out);
        let clash = home.refused(&["export", "/workspace", "out", "--overwrite"]);
        assert_eq!(clash.0, "AlreadyExists", "{clash:?}");
        assert_eq!(fs::read(out.join("README")).unwrap(), b"older");
        let names = fs::read_dir(home.path()).unwrap();
        let mut names = names.map(|entry| entry.unwrap().file_name());
        assert!(!names.any(|name| name.to_string_lossy().contains("avfs-export")));
    });
}

#[test]
fn a_symlink_in_the_way_of_overwrite_leads_nowhere() {
    with_vault(AVFS, |home| {
        project(home);
        home.ok(&["import", "project"]);
        let (out, elsewhere) = (at(home, "out"), at(home, "elsewhere"));
        fs::create_dir(&out).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, out.join("src")).unwrap();
        home.give(&out);
        home.give(&elsewhere);
        let clash = home.refused(&["export", "/workspace", "out", "--overwrite"]);
        assert_eq!(clash.0, "AlreadyExists", "{clash:?}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    });
}
