//! File verbs, import and export: what went in comes out.

use crate::AVFS;
use avfs_testkit::{scan, with_vault};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Makes a directory with some of everything a vault can hold.
fn make_tree(dir: &Path) -> std::io::Result<()> {
    fs::create_dir_all(dir.join("sub/empty"))?;
    fs::write(dir.join("plain"), "text")?;
    fs::write(dir.join("sub/big"), vec![7u8; 3_000_000])?;
    fs::write(dir.join("empty"), "")?;
    fs::write(dir.join("tool"), "#!/bin/sh\n")?;
    fs::set_permissions(dir.join("tool"), fs::Permissions::from_mode(0o750))?;
    fs::hard_link(dir.join("plain"), dir.join("sub/twin"))?;
    symlink("../plain", dir.join("sub/link"))?;
    symlink("/nowhere", dir.join("dangling"))?;
    assert!(
        Command::new("mkfifo")
            .arg(dir.join("fifo"))
            .status()?
            .success()
    );
    Ok(())
}

#[test]
fn what_is_imported_comes_out_the_same() {
    with_vault(AVFS, |home| {
        let source = home.path().join("source");
        fs::create_dir(&source).unwrap();
        make_tree(&source).unwrap();
        home.give(&source);
        let imported = home.json(&["import", source.to_str().unwrap()]);
        assert_eq!(imported["vfs_path"], "/workspace");
        assert_eq!(imported["files_imported"], 8, "{imported}");
        assert_eq!(imported["total_bytes"].as_u64().unwrap() / 1000, 3000);
        let target = home.path().join("target");
        let exported = home.json(&["export", "/workspace", target.to_str().unwrap()]);
        assert_eq!(exported["files_exported"], 8, "{exported}");
        assert_eq!(exported["real_path"], target.to_str().unwrap());
        assert_eq!(scan(&source), scan(&target), "as {}", home.user());
        let envelope = home.shell("ls -A; readlink sub/link; stat -c %a tool");
        assert_eq!(
            envelope["result"]["stdout"],
            "dangling\nempty\nfifo\nplain\nsub\ntool\n../plain\n750\n"
        );
    });
}

#[test]
fn relative_host_paths_are_the_callers() {
    with_vault(AVFS, |home| {
        let source = home.path().join("here");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("f"), "x").unwrap();
        home.give(&source);
        home.ok(&["import", "here", "data"]);
        assert_eq!(home.ok(&["cat", "/data/f"]), "x");
        let missing = home.json(&["import", "not-here"]);
        assert!(missing["error"].is_string(), "{missing}");
    });
}

#[test]
fn directories_are_made_listed_moved_and_removed() {
    with_vault(AVFS, |home| {
        assert!(
            !home.avfs(&["mkdir", "/a/b"]).status.success(),
            "the parent is missing"
        );
        home.ok(&["mkdir", "-p", "/a/b"]);
        home.ok(&["mkdir", "-p", "/a/b"]);
        home.ok(&["write", "/a/.hidden", "x"]);
        home.ok(&["write", "/a/shown", "x"]);
        assert_eq!(home.ok(&["ls", "/a"]), "b/\nshown\n");
        assert_eq!(home.ok(&["ls", "-a", "a"]), ".hidden\nb/\nshown\n");
        assert!(home.ok(&["ls", "-l", "/a"]).contains("-rw-r--r--"));
        home.ok(&["mv", "/a/shown", "/a/b"]);
        assert_eq!(home.ok(&["cat", "/a/b/shown"]), "x");
        assert!(
            !home.avfs(&["rm", "/a"]).status.success(),
            "a directory needs -r"
        );
        home.ok(&["rm", "-r", "/a"]);
        assert!(!home.avfs(&["ls", "/a"]).status.success());
    });
}

#[test]
fn verbs_and_commands_see_the_same_files() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "by verb"]);
        assert_eq!(
            home.shell("cat /f; echo by command > /f")["result"]["stdout"],
            "by verb"
        );
        assert_eq!(home.ok(&["cat", "/f"]), "by command\n");
        home.ok(&["write", "/f", "again"]);
        assert_eq!(home.shell("cat /f")["result"]["stdout"], "again");
        home.ok(&["rm", "/f"]);
        assert_ne!(home.shell("cat /f")["result"]["exit_code"], 0);
    });
}
