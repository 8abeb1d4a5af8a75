//! One file in, one file out.

use super::at;
use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// A host file of the home's user.
fn file(home: &Home, name: &str, content: &[u8], mode: u32) -> String {
    let path = at(home, name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    home.give(&path);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_file_goes_in_where_it_is_meant() {
    with_vault(AVFS, |home| {
        let notes = file(home, "notes.txt", b"notes", 0o640);
        let imported = home.json(&["import", &notes]);
        assert_eq!(imported["vfs_path"], "/workspace/notes.txt", "{imported}");
        assert_eq!(
            (&imported["files_imported"], &imported["total_bytes"]),
            (&1.into(), &5.into())
        );
        assert_eq!(home.ok(&["cat", "/workspace/notes.txt"]), "notes");
        assert_eq!(home.json(&["stat", "/workspace/notes.txt"])["mode"], "0640");
        home.ok(&["import", &notes, "/elsewhere/renamed"]);
        assert_eq!(home.ok(&["cat", "/elsewhere/renamed"]), "notes");
        home.ok(&["import", &notes, "/elsewhere"]);
        assert_eq!(home.ok(&["cat", "/elsewhere/notes.txt"]), "notes");
        home.ok(&["import", &notes, "/new/"]);
        assert_eq!(home.ok(&["cat", "/new/notes.txt"]), "notes");
        let big: Vec<u8> = (0..=255_u8).cycle().take(3_000_000).collect();
        let big_file = file(home, "big.bin", &big, 0o600);
        home.ok(&["import", &big_file, "/"]);
        assert_eq!(home.avfs(&["cat", "/big.bin"]).stdout, big);
        let (kind, answer) = home.refused(&["import", &notes, "--gitignore"]);
        assert_eq!(kind, "Invalid", "{answer}");
    });
}

#[test]
fn an_archive_is_still_an_archive() {
    with_vault(AVFS, |home| {
        let notes = file(home, "notes.txt", b"notes", 0o644);
        let tar = |name: &str, flags: &str| {
            let path = at(home, name);
            super::host(
                home.path(),
                &["tar", flags, path.to_str().unwrap(), "notes.txt"],
            );
            home.give(&path);
            path.to_str().unwrap().to_owned()
        };
        for (name, flags) in [
            ("a.tar", "-cf"),
            ("b.tgz", "-czf"),
            ("c", "-cf"),
            ("d", "-czf"),
        ] {
            let archive = tar(name, flags);
            home.ok(&["import", &archive, &format!("/{name}")]);
            assert_eq!(home.ok(&["cat", &format!("/{name}/notes.txt")]), "notes");
        }
        // What is compressed and no archive is taken as it is.
        super::host(home.path(), &["gzip", "-k", "notes.txt"]);
        let zipped = at(home, "notes.txt.gz");
        home.give(&zipped);
        home.ok(&["import", zipped.to_str().unwrap(), "/"]);
        assert_eq!(
            home.avfs(&["cat", "/notes.txt.gz"]).stdout,
            fs::read(&zipped).unwrap()
        );
        drop(notes);
    });
}

#[test]
fn a_file_comes_out_whole_or_not_at_all() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/d/run.sh", "#!/bin/sh\n", "-p", "-m", "755"]);
        let out = at(home, "out");
        fs::create_dir(&out).unwrap();
        home.give(&out);
        let to = out.to_str().unwrap();
        let exported = home.json(&["export", "/d/run.sh", to]);
        assert_eq!(exported["files_exported"], 1, "{exported}");
        let there = out.join("run.sh");
        assert_eq!(fs::read(&there).unwrap(), b"#!/bin/sh\n");
        assert_eq!(
            fs::metadata(&there).unwrap().permissions().mode() & 0o7777,
            0o755
        );
        // What is there stays, unless it is to be replaced.
        home.ok(&["write", "/d/run.sh", "other"]);
        let (_, answer) = home.refused(&["export", "/d/run.sh", to]);
        assert!(
            answer["hint"].as_str().unwrap().contains("--overwrite"),
            "{answer}"
        );
        assert_eq!(fs::read(&there).unwrap(), b"#!/bin/sh\n");
        home.ok(&["export", "/d/run.sh", to, "--overwrite"]);
        assert_eq!(fs::read(&there).unwrap(), b"other");
        let named = out.join("named");
        home.ok(&["export", "/d/run.sh", named.to_str().unwrap()]);
        assert_eq!(fs::read(&named).unwrap(), b"other");
        let names: Vec<_> = fs::read_dir(&out)
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "nothing is left beside them: {names:?}");
    });
}

/// A file of the vault is an agent's: it reaches no other file of the host, and gets no rights there.
#[test]
fn a_file_reaches_nothing_beside_its_target() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/d/f", "agent's", "-p"]);
        home.ok(&["chmod", "4777", "/d/f"]);
        let precious = file(home, "precious", b"precious", 0o600);
        let out = at(home, "out");
        fs::create_dir_all(out.join(".git/hooks")).unwrap();
        symlink(&precious, out.join("f")).unwrap();
        home.give(&out);
        let to = out.to_str().unwrap();
        home.refused(&["export", "/d/f", to]);
        home.ok(&["export", "/d/f", to, "--overwrite"]);
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
        let written = fs::symlink_metadata(out.join("f")).unwrap();
        assert!(written.is_file(), "the link was replaced, not followed");
        assert_eq!(
            written.permissions().mode() & 0o7000,
            0,
            "no set-user-id bit"
        );
        let hook = out.join(".git/hooks/pre-commit");
        let hook = hook.to_str().unwrap();
        let (_, answer) = home.refused(&["export", "/d/f", hook]);
        assert!(
            answer["hint"].as_str().unwrap().contains("--allow-hooks"),
            "{answer}"
        );
        home.ok(&["export", "/d/f", hook, "--allow-hooks"]);
    });
}
