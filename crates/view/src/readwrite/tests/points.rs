//! Mount points of a sandbox: found by name, in no listing, and in no commit.

use std::fs;
use std::io::ErrorKind;

use avfs_vault::VaultPath;

use super::support::{Scene, Wishes};
use crate::readwrite::MountPoints;

fn scene() -> Scene {
    let paths = |paths: &[&str]| paths.iter().map(|path| path.parse().unwrap()).collect();
    let wishes = Wishes {
        mount_points: MountPoints {
            mounted: paths(&["/usr", "/var/tmp"]),
            others: paths(&["/home/agent"]),
        },
        ..Wishes::default()
    };
    Scene::with(wishes, |base| {
        base.directory("/var");
    })
}

fn names(scene: &Scene, path: &str) -> Vec<String> {
    let listed = fs::read_dir(scene.path(path)).unwrap();
    let name = |item: std::io::Result<fs::DirEntry>| item.unwrap().file_name();
    let mut names: Vec<String> = listed
        .map(|item| name(item).into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn they_are_there_once_they_are_shown_and_in_no_listing() {
    let mut scene = scene();
    let all = ["/usr", "/var/tmp", "/home/agent"];
    for path in all {
        let found = fs::metadata(scene.path(path)).map_err(|error| error.kind());
        assert_eq!(found.err(), Some(ErrorKind::NotFound), "{path}");
    }
    scene.view().show_mount_points();
    for path in all {
        assert!(fs::metadata(scene.path(path)).unwrap().is_dir(), "{path}");
        assert!(names(&scene, path).is_empty(), "{path}");
    }
    assert_eq!(names(&scene, "/"), ["var"]);
    assert!(names(&scene, "/var").is_empty());
    let root = scene.commit().root;
    assert_eq!(scene.paths(root), ["/", "/var"]);
}

#[test]
fn what_is_mounted_on_stays_where_it_is() {
    let scene = scene();
    fs::create_dir(scene.path("/d")).unwrap();
    scene.view().show_mount_points();
    for path in ["/usr", "/var", "/var/tmp"] {
        let busy = Some(ErrorKind::ResourceBusy);
        let removed = fs::remove_dir(scene.path(path));
        assert_eq!(removed.map_err(|error| error.kind()).err(), busy, "{path}");
        let renamed = fs::rename(scene.path(path), scene.path("/x"));
        assert_eq!(renamed.map_err(|error| error.kind()).err(), busy, "{path}");
        let replaced = fs::rename(scene.path("/d"), scene.path(path));
        assert_eq!(replaced.map_err(|error| error.kind()).err(), busy, "{path}");
    }
    // Others of the same names are not.
    fs::create_dir_all(scene.path("/d/var/tmp")).unwrap();
    fs::remove_dir(scene.path("/d/var/tmp")).unwrap();
    fs::rename(scene.path("/d/var"), scene.path("/d/usr")).unwrap();
    fs::remove_dir(scene.path("/home/agent")).unwrap();
}

#[test]
fn what_is_written_in_one_makes_it_a_directory_like_others() {
    let mut scene = scene();
    scene.view().show_mount_points();
    assert_eq!(names(&scene, "/"), ["var"]);
    fs::write(scene.path("/home/agent/f"), "text").unwrap();
    fs::write(scene.path("/usr/f"), "text").unwrap();
    assert_eq!(names(&scene, "/"), ["home", "usr", "var"]);
    assert_eq!(names(&scene, "/home"), ["agent"]);
    assert_eq!(fs::read(scene.path("/home/agent/f")).unwrap(), b"text");
    let root = scene.commit().root;
    let expected = [
        "/",
        "/home",
        "/home/agent",
        "/home/agent/f",
        "/usr",
        "/usr/f",
        "/var",
    ];
    assert_eq!(scene.paths(root), expected);
    let home: VaultPath = "/home".parse().unwrap();
    let stored = scene.trees.entry(root, &home).unwrap().unwrap();
    assert_eq!(stored.meta.mode, 0o755);
    // Shown again, as after a restart.
    scene.remount(root);
    assert_eq!(names(&scene, "/home/agent"), ["f"]);
}
