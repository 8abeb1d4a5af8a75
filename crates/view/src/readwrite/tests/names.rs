//! Names: what is made, removed, renamed and listed.

use std::fs;

use super::support::Scene;

#[test]
fn what_is_stored_is_read_and_what_is_written_is_committed() {
    let mut scene = Scene::of(|base| {
        base.directory("/a").file("/a/f", "one").file("/a/g", "two");
    });
    assert_eq!(fs::read(scene.path("/a/f")).unwrap(), b"one");
    fs::write(scene.path("/a/f"), "changed").unwrap();
    fs::create_dir(scene.path("/new")).unwrap();
    fs::write(scene.path("/new/x"), "three").unwrap();
    fs::remove_file(scene.path("/a/g")).unwrap();
    assert_eq!(fs::read(scene.path("/a/f")).unwrap(), b"changed");
    assert!(!scene.path("/a/g").exists());
    let root = scene.commit().root;
    let tree = scene.tree(root);
    let paths: Vec<String> = tree
        .keys()
        .map(|path| String::from_utf8(path.clone()).unwrap())
        .collect();
    assert_eq!(paths, ["/", "/a", "/a/f", "/new", "/new/x"]);
}
