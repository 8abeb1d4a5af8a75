//! Names: what is made, removed, renamed and listed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

use avfs_vault::{Entry, Kind, Meta};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use rustix::io::Errno;

use super::support::{Scene, time};

fn scene() -> Scene {
    Scene::of(|base| {
        base.directory("/a")
            .file("/a/f", "one")
            .file("/a/g", "two")
            .directory("/a/sub")
            .file("/a/sub/h", "three")
            .directory("/b")
            .file("/b/x", "other");
    })
}

fn names(scene: &Scene, path: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(scene.path(path))
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn errno<T>(outcome: std::io::Result<T>) -> Option<i32> {
    outcome.err().and_then(|error| error.raw_os_error())
}

#[test]
fn what_is_stored_is_read_and_what_is_written_is_committed() {
    let mut scene = scene();
    assert_eq!(fs::read(scene.path("/a/f")).unwrap(), b"one");
    fs::write(scene.path("/a/f"), "changed").unwrap();
    fs::create_dir(scene.path("/new")).unwrap();
    fs::write(scene.path("/new/x"), "three").unwrap();
    fs::remove_file(scene.path("/a/g")).unwrap();
    fs::remove_dir_all(scene.path("/b")).unwrap();
    assert_eq!(fs::read(scene.path("/a/f")).unwrap(), b"changed");
    assert!(!scene.path("/a/g").exists());
    let root = scene.commit().root;
    let paths = ["/", "/a", "/a/f", "/a/sub", "/a/sub/h", "/new", "/new/x"];
    assert_eq!(scene.paths(root), paths);
}

#[test]
fn a_copy_keeps_all_metadata_and_leaves_its_directory_alone() {
    let mut meta = Meta::new(0o2640, time(1_500));
    meta.xattrs.insert(b"user.note", b"kept");
    let mut scene = Scene::of(|base| {
        base.directory("/d").file_with("/d/f", "text", meta.clone());
    });
    let directory = fs::metadata(scene.path("/d")).unwrap().modified().unwrap();
    let before = fs::metadata(scene.path("/d/f")).unwrap();
    let now = filetime(&before);
    fs::set_permissions(scene.path("/d/f"), fs::Permissions::from_mode(0o2600)).unwrap();
    let after = fs::metadata(scene.path("/d/f")).unwrap();
    assert_eq!(
        filetime(&after),
        now,
        "a change of mode moves no modification time"
    );
    assert_eq!(
        after.ino(),
        before.ino(),
        "the number stays over the copy-up"
    );
    assert_eq!(scene.mode("/d/f"), 0o2600);
    let again = fs::metadata(scene.path("/d")).unwrap().modified().unwrap();
    assert_eq!(again, directory, "nothing in the directory changed");
    let root = scene.commit().root;
    meta.mode = 0o2600;
    let entry = scene.entry(root, "/d/f");
    assert_eq!(
        (entry.meta.mode, &entry.meta.xattrs),
        (0o2600, &meta.xattrs)
    );
    assert_eq!(entry.meta.mtime, meta.mtime);
    let base = scene.entry(scene.base, "/d");
    assert_eq!(scene.entry(root, "/d").meta, base.meta);
}

fn filetime(metadata: &fs::Metadata) -> (i64, i64) {
    (metadata.mtime(), metadata.mtime_nsec())
}

#[test]
fn a_name_that_is_made_anew_shows_nothing_old() {
    let mut scene = scene();
    fs::remove_file(scene.path("/a/f")).unwrap();
    fs::create_dir(scene.path("/a/f")).unwrap();
    assert!(names(&scene, "/a/f").is_empty());
    fs::remove_dir_all(scene.path("/a/sub")).unwrap();
    fs::write(scene.path("/a/sub"), "a file now").unwrap();
    fs::remove_dir_all(scene.path("/b")).unwrap();
    fs::create_dir(scene.path("/b")).unwrap();
    assert!(names(&scene, "/b").is_empty());
    symlink("f", scene.path("/b/link")).unwrap();
    let root = scene.commit().root;
    let paths = ["/", "/a", "/a/f", "/a/g", "/a/sub", "/b", "/b/link"];
    assert_eq!(scene.paths(root), paths);
    assert!(scene.entry(root, "/a/f").is_dir());
    assert!(scene.entry(root, "/a/sub").is_file());
}

#[test]
fn stored_directories_are_renamed_with_all_that_is_in_them() {
    let mut scene = scene();
    fs::write(scene.path("/a/f"), "changed").unwrap();
    fs::remove_file(scene.path("/a/g")).unwrap();
    fs::rename(scene.path("/a"), scene.path("/b/moved")).unwrap();
    assert!(!scene.path("/a").exists());
    assert_eq!(names(&scene, "/b/moved"), ["f", "sub"]);
    fs::rename(scene.path("/b/moved/sub"), scene.path("/b/moved/deeper")).unwrap();
    assert_eq!(fs::read(scene.path("/b/moved/deeper/h")).unwrap(), b"three");
    fs::rename(scene.path("/b"), scene.path("/a")).unwrap();
    assert_eq!(fs::read(scene.path("/a/moved/f")).unwrap(), b"changed");
    let root = scene.commit().root;
    let expected = [
        "/",
        "/a",
        "/a/moved",
        "/a/moved/deeper",
        "/a/moved/deeper/h",
        "/a/moved/f",
        "/a/x",
    ];
    assert_eq!(scene.paths(root), expected);
    // The same layer, read by a new view.
    scene.remount(scene.base);
    assert_eq!(names(&scene, "/a/moved"), ["deeper", "f"]);
    assert_eq!(fs::read(scene.path("/a/moved/deeper/h")).unwrap(), b"three");
    assert_eq!(fs::read(scene.path("/a/x")).unwrap(), b"other");
    assert_eq!(scene.commit().root, root);
}

#[test]
fn a_rename_replaces_only_what_it_may() {
    let mut scene = scene();
    let rename = |from: &str, to: &str| fs::rename(scene.path(from), scene.path(to));
    assert_eq!(errno(rename("/b", "/a")), Some(libc::ENOTEMPTY));
    assert_eq!(errno(rename("/b", "/a/f")), Some(libc::ENOTDIR));
    assert_eq!(errno(rename("/a/f", "/b")), Some(libc::EISDIR));
    assert_eq!(errno(rename("/a", "/a/sub/inside")), Some(libc::EINVAL));
    // Emptied, a stored directory may be replaced by another.
    fs::remove_file(scene.path("/b/x")).unwrap();
    rename("/a/sub", "/b").unwrap();
    assert_eq!(names(&scene, "/b"), ["h"]);
    rename("/a/f", "/a/g").unwrap();
    assert_eq!(fs::read(scene.path("/a/g")).unwrap(), b"one");
    let root = scene.commit().root;
    assert_eq!(scene.paths(root), ["/", "/a", "/a/g", "/b", "/b/h"]);
}

#[test]
fn renames_with_flags_exchange_or_spare() {
    let mut scene = scene();
    let rename = |from: &str, to: &str, flags| {
        renameat_with(CWD, scene.path(from), CWD, scene.path(to), flags)
    };
    let spared = rename("/a/f", "/a/g", RenameFlags::NOREPLACE);
    assert_eq!(spared, Err(Errno::EXIST));
    rename("/a/f", "/a/new", RenameFlags::NOREPLACE).unwrap();
    let missing = rename("/a/g", "/a/none", RenameFlags::EXCHANGE);
    assert_eq!(missing, Err(Errno::NOENT));
    rename("/a/g", "/b", RenameFlags::EXCHANGE).unwrap();
    rename("/a/sub", "/a/new", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read(scene.path("/b")).unwrap(), b"two");
    assert_eq!(fs::read(scene.path("/a/g/x")).unwrap(), b"other");
    let root = scene.commit().root;
    let expected = [
        "/", "/a", "/a/g", "/a/g/x", "/a/new", "/a/new/h", "/a/sub", "/b",
    ];
    assert_eq!(scene.paths(root), expected);
    assert_eq!(scene.content(root, "/a/sub"), b"one");
}

#[test]
fn a_listing_is_complete_while_entries_come_and_go() {
    let scene = Scene::of(|base| {
        base.directory("/d");
        for number in 0..500 {
            base.file(&format!("/d/stored-{number}"), "");
        }
    });
    for number in 0..500 {
        fs::write(scene.path(&format!("/d/new-{number}")), "").unwrap();
    }
    let mut seen = BTreeSet::new();
    for (index, item) in fs::read_dir(scene.path("/d")).unwrap().enumerate() {
        let item = item.unwrap();
        assert!(seen.insert(item.file_name()), "{item:?} twice");
        // Removing listed names, and making others, must not move the positions of the rest.
        fs::remove_file(item.path()).unwrap();
        fs::write(scene.path(&format!("/d/late-{index}")), "").unwrap();
    }
    let old = seen
        .iter()
        .filter(|name| !name.to_string_lossy().starts_with("late"));
    assert_eq!(old.count(), 1_000);
}

#[test]
fn every_kind_of_file_is_kept() {
    let mut scene = Scene::of(|base| {
        base.symlink("/stored-link", "/else where");
        let kind = Kind::Fifo;
        let meta = Meta::new(0o620, time(9));
        base.entry("/stored-pipe", Entry { kind, meta });
    });
    let target = fs::read_link(scene.path("/stored-link")).unwrap();
    assert_eq!(target.to_str(), Some("/else where"));
    symlink("nowhere", scene.path("/link")).unwrap();
    let pipe = Mode::from_raw_mode(0o600);
    mknodat(CWD, scene.path("/pipe"), FileType::Fifo, pipe, 0).unwrap();
    assert!(
        fs::metadata(scene.path("/pipe"))
            .unwrap()
            .file_type()
            .is_fifo()
    );
    fs::rename(scene.path("/stored-link"), scene.path("/moved-link")).unwrap();
    fs::rename(scene.path("/stored-pipe"), scene.path("/moved-pipe")).unwrap();
    let whiteout = mknodat(CWD, scene.path("/c"), FileType::CharacterDevice, pipe, 0);
    assert_eq!(whiteout, Err(Errno::PERM));
    let socket = std::os::unix::net::UnixListener::bind(scene.path("/socket")).unwrap();
    let committed = scene.commit();
    drop(socket);
    assert_eq!(committed.skipped.len(), 1, "sockets are not stored");
    let root = committed.root;
    let expected = ["/", "/link", "/moved-link", "/moved-pipe", "/pipe"];
    assert_eq!(scene.paths(root), expected);
    assert_eq!(scene.entry(root, "/moved-pipe").meta.mode, 0o620);
    assert_eq!(scene.entry(root, "/moved-link").meta.mtime, time(3_000));
}

#[test]
fn names_of_work_under_way_are_nobodys() {
    let scene = scene();
    fs::write(scene.upper.join(".unfinished-x"), "left behind").unwrap();
    assert_eq!(names(&scene, "/"), ["a", "b"]);
    assert!(!scene.path("/.unfinished-x").exists());
    let refused = fs::write(scene.path("/.unfinished-mine"), "");
    assert_eq!(errno(refused), Some(libc::EPERM));
    let refused = fs::rename(scene.path("/a/f"), scene.path("/.unfinished-mine"));
    assert_eq!(errno(refused), Some(libc::EPERM));
}

#[test]
fn attributes_are_kept_and_marks_are_not_shown() {
    use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
    let mut scene = scene();
    let file = scene.path("/a/f");
    setxattr(&file, "user.one", b"1", XattrFlags::CREATE).unwrap();
    let twice = setxattr(&file, "user.one", b"2", XattrFlags::CREATE);
    assert_eq!(twice, Err(Errno::EXIST));
    setxattr(&file, "user.two", b"2", XattrFlags::empty()).unwrap();
    removexattr(&file, "user.two").unwrap();
    let refused = setxattr(&file, "user.overlay.opaque", b"y", XattrFlags::empty());
    assert_eq!(refused, Err(Errno::OPNOTSUPP));
    fs::create_dir(scene.path("/new")).unwrap();
    let mut bytes = [0; 100];
    assert_eq!(listxattr(scene.path("/new"), &mut bytes), Ok(0));
    assert_eq!(getxattr(&file, "user.one", &mut bytes), Ok(1));
    let absent = getxattr(&file, "user.two", &mut bytes);
    assert_eq!(absent, Err(Errno::NODATA));
    let root = scene.commit().root;
    let xattrs = scene.entry(root, "/a/f").meta.xattrs;
    assert_eq!(
        xattrs.iter().collect::<Vec<_>>(),
        [(&b"user.one"[..], &b"1"[..])]
    );
}

#[test]
fn directories_that_their_owner_may_not_read_can_be_kept_and_removed() {
    let mut scene = scene();
    fs::create_dir(scene.path("/closed")).unwrap();
    for path in ["/closed", "/a/sub", "/b"] {
        let closed = fs::Permissions::from_mode(0o0);
        fs::set_permissions(scene.path(path), closed).unwrap();
        assert_eq!(scene.mode(path), 0);
    }
    fs::rename(scene.path("/a/sub"), scene.path("/a/moved")).unwrap();
    scene.remount(scene.base);
    assert_eq!(scene.mode("/a/moved"), 0);
    fs::remove_dir(scene.path("/closed")).unwrap();
    let full = fs::remove_dir(scene.path("/b"));
    assert_eq!(errno(full), Some(libc::ENOTEMPTY));
    for path in ["/a/moved", "/b"] {
        let opened = fs::Permissions::from_mode(0o755);
        fs::set_permissions(scene.path(path), opened).unwrap();
    }
    assert_eq!(names(&scene, "/a/moved"), ["h"]);
    let root = scene.commit().root;
    let expected = [
        "/",
        "/a",
        "/a/f",
        "/a/g",
        "/a/moved",
        "/a/moved/h",
        "/b",
        "/b/x",
    ];
    assert_eq!(scene.paths(root), expected);
}

#[test]
fn files_in_closed_directories_change_though_their_names_cannot() {
    let mut scene = Scene::of(|base| {
        base.entry("/closed", Entry::directory(0o555, time(1)))
            .file("/closed/f", "stored")
            .entry("/closed/inner", Entry::directory(0o555, time(1)))
            .file("/closed/inner/g", "stored")
            .link("/closed/inner/g", "/other");
    });
    if !rustix::process::getuid().is_root() {
        let refused = fs::write(scene.path("/closed/new"), "");
        assert_eq!(errno(refused), Some(libc::EACCES));
        let refused = fs::remove_file(scene.path("/closed/f"));
        assert_eq!(errno(refused), Some(libc::EACCES));
    }
    fs::write(scene.path("/closed/f"), "changed").unwrap();
    fs::write(scene.path("/other"), "also").unwrap();
    assert_eq!(fs::read(scene.path("/closed/inner/g")).unwrap(), b"also");
    fs::rename(scene.path("/closed"), scene.path("/moved")).unwrap();
    assert_eq!(scene.mode("/moved"), 0o555);
    assert_eq!(scene.mode("/moved/inner"), 0o555);
    let root = scene.commit().root;
    let expected = [
        "/",
        "/moved",
        "/moved/f",
        "/moved/inner",
        "/moved/inner/g",
        "/other",
    ];
    assert_eq!(scene.paths(root), expected);
    assert_eq!(scene.content(root, "/moved/inner/g"), b"also");
    assert_eq!(scene.entry(root, "/moved/inner").meta.mtime, time(1));
    // So that an ordinary user can clean up.
    for path in ["moved/inner", "moved"] {
        let opened = fs::Permissions::from_mode(0o755);
        fs::set_permissions(scene.upper.join(path), opened).unwrap();
    }
}
