//! Files with several names, stored and new.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use super::support::Scene;

fn scene() -> Scene {
    Scene::of(|base| {
        base.directory("/a")
            .directory("/b")
            .file("/a/one", "shared")
            .link("/a/one", "/a/two")
            .link("/a/one", "/b/three");
    })
}

fn inode(scene: &Scene, path: &str) -> (u64, u64) {
    let metadata = fs::metadata(scene.path(path)).unwrap();
    (metadata.ino(), metadata.nlink())
}

#[test]
fn stored_names_of_one_file_stay_one_file_when_it_changes() {
    let mut scene = scene();
    let before = inode(&scene, "/a/one");
    assert_eq!(before.1, 3);
    for path in ["/a/two", "/b/three"] {
        assert_eq!(inode(&scene, path), before);
    }
    fs::write(scene.path("/a/two"), "changed").unwrap();
    for path in ["/a/one", "/a/two", "/b/three"] {
        assert_eq!(fs::read(scene.path(path)).unwrap(), b"changed");
        assert_eq!(inode(&scene, path), before);
    }
    let root = scene.commit().root;
    let link = scene.entry(root, "/a/one").link();
    assert!(link.is_some());
    for path in ["/a/two", "/b/three"] {
        assert_eq!(scene.entry(root, path).link(), link);
        assert_eq!(scene.content(root, path), b"changed");
    }
}

#[test]
fn a_removed_name_is_one_less() {
    let mut scene = scene();
    let open = File::open(scene.path("/a/one")).unwrap();
    fs::remove_file(scene.path("/a/one")).unwrap();
    assert_eq!(inode(&scene, "/a/two").1, 2);
    assert_eq!(open.metadata().unwrap().nlink(), 2);
    fs::write(scene.path("/b/three"), "changed").unwrap();
    let mut bytes = [0; 7];
    open.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"changed");
    assert_eq!(fs::read(scene.path("/a/two")).unwrap(), b"changed");
    assert!(!scene.path("/a/one").exists());
    let root = scene.commit().root;
    assert_eq!(scene.paths(root), ["/", "/a", "/a/two", "/b", "/b/three"]);
    assert_eq!(scene.content(root, "/a/two"), b"changed");
}

#[test]
fn names_are_found_where_their_directories_were_moved_to() {
    let mut scene = scene();
    fs::create_dir(scene.path("/new")).unwrap();
    fs::rename(scene.path("/b"), scene.path("/new/b")).unwrap();
    scene.remount(scene.base);
    assert_eq!(inode(&scene, "/a/one").1, 3);
    fs::write(scene.path("/a/one"), "changed").unwrap();
    assert_eq!(fs::read(scene.path("/new/b/three")).unwrap(), b"changed");
    let root = scene.commit().root;
    assert_eq!(scene.content(root, "/new/b/three"), b"changed");
    let link = scene.entry(root, "/a/one").link();
    assert_eq!(scene.entry(root, "/new/b/three").link(), link);
}

#[test]
fn new_names_are_the_same_file() {
    let mut scene = scene();
    fs::write(scene.path("/new"), "text").unwrap();
    fs::hard_link(scene.path("/new"), scene.path("/b/also")).unwrap();
    fs::hard_link(scene.path("/a/one"), scene.path("/four")).unwrap();
    assert_eq!(inode(&scene, "/new"), inode(&scene, "/b/also"));
    assert_eq!(inode(&scene, "/new").1, 2);
    assert_eq!(inode(&scene, "/four"), inode(&scene, "/b/three"));
    assert_eq!(inode(&scene, "/four").1, 4);
    fs::remove_file(scene.path("/new")).unwrap();
    assert_eq!(inode(&scene, "/b/also").1, 1);
    let taken = fs::hard_link(scene.path("/four"), scene.path("/a/one"));
    assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    let root = scene.commit().root;
    assert_eq!(
        scene.entry(root, "/four").link(),
        scene.entry(root, "/a/two").link()
    );
    assert_eq!(scene.entry(root, "/b/also").link(), None);
}
