//! File verbs on directories nearly as deep as a path may be long, on a stack that no recursion over them would fit on.

use avfs_store::Store;
use avfs_vault::{Content, Edit, Entry, Meta, Time, Trees, VaultPath};

use crate::common::Depth;
use crate::files::Parents;
use crate::files::attributes::change_modes;
use crate::files::copy::copy_entry;
use crate::files::scratch::Scratch;
use crate::files::tree::{TreeNode, list_scratch};

/// Names of one letter: a path may have 4,095 bytes.
const DEPTH: usize = 1_500;
/// Not 200 bytes for each level.
const STACK: usize = 256 << 10;

fn on_a_small_stack(test: fn()) {
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(test).unwrap().join().unwrap();
}

/// As deep as [`DEPTH`] below `top`.
fn bottom_of(top: &str) -> VaultPath {
    format!("{top}{}", "/d".repeat(DEPTH)).parse().unwrap()
}

fn path(text: &str) -> VaultPath {
    text.parse().unwrap()
}

/// Makes `top`, directories in each other beneath it, and a file `name` in the last.
fn dig(edit: &mut Edit, top: &str, name: &str) {
    let mut at = path(top);
    edit.put(&at, Entry::directory(0o755, Time::EPOCH)).unwrap();
    for _ in 0..DEPTH {
        at = at.join(b"d").unwrap();
        edit.put(&at, Entry::directory(0o755, Time::EPOCH)).unwrap();
    }
    let file = Entry::file(Content::EMPTY, 0, Meta::new(0o644, Time::EPOCH));
    edit.put(&at.join(name.as_bytes()).unwrap(), file).unwrap();
}

fn empty_edit() -> (tempfile::TempDir, Edit) {
    let home = tempfile::tempdir().unwrap();
    let trees = Trees::new(Store::open(home.path()).unwrap());
    let edit = trees.edit(trees.empty_root().unwrap()).unwrap();
    (home, edit)
}

#[test]
fn a_deep_directory_is_copied_into_one_as_deep() {
    on_a_small_stack(|| {
        let (_home, mut edit) = empty_edit();
        dig(&mut edit, "/from", "new");
        dig(&mut edit, "/to", "old");
        let source = edit.get(&path("/from")).unwrap().unwrap();
        copy_entry(&mut edit, path("/from"), &source, path("/to")).unwrap();
        let listed = edit.list(&bottom_of("/to")).unwrap();
        let names: Vec<_> = listed.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(names, [b"new", b"old"]);
    });
}

#[test]
fn the_modes_of_a_deep_directory_are_changed() {
    on_a_small_stack(|| {
        let (_home, mut edit) = empty_edit();
        dig(&mut edit, "/top", "f");
        let mode = "go-rx".parse().unwrap();
        let changed = change_modes(&mut edit, &path("/top"), &mode, Depth::Recursive).unwrap();
        assert_eq!(changed, DEPTH + 2);
        let bottom = bottom_of("/top");
        assert_eq!(edit.get(&bottom).unwrap().unwrap().meta.mode, 0o700);
        let file = bottom.join(b"f").unwrap();
        assert_eq!(edit.get(&file).unwrap().unwrap().meta.mode, 0o600);
    });
}

#[test]
fn deep_directories_in_tmp_are_made_listed_and_removed() {
    on_a_small_stack(|| {
        let directory = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(directory.path()).unwrap();
        scratch.mkdir(&bottom_of("/tmp"), Parents::Make).unwrap();
        let top = TreeNode {
            depth: 0,
            name: b"tmp".to_vec(),
            entry: scratch.stat(&path("/tmp")).unwrap(),
        };
        let mut nodes = Vec::new();
        list_scratch(&scratch, &path("/tmp"), top, usize::MAX, &mut nodes).unwrap();
        let depths = nodes.iter().map(|node| node.depth);
        assert!(depths.eq(0..=DEPTH));
        scratch.remove(&path("/tmp/d"), Depth::Recursive).unwrap();
    });
}

#[test]
fn a_tree_of_tmp_is_listed_a_directory_before_what_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let scratch = Scratch::open(directory.path()).unwrap();
    for below in ["/tmp/a/b/c", "/tmp/a/d", "/tmp/e"] {
        scratch.mkdir(&path(below), Parents::Make).unwrap();
    }
    let list = |levels| {
        let top = TreeNode {
            depth: 0,
            name: b"tmp".to_vec(),
            entry: scratch.stat(&path("/tmp")).unwrap(),
        };
        let mut nodes = Vec::new();
        list_scratch(&scratch, &path("/tmp"), top, levels, &mut nodes).unwrap();
        let nodes = nodes.into_iter();
        let told = nodes.map(|node| format!("{} {}", node.depth, node.name.escape_ascii()));
        told.collect::<Vec<_>>()
    };
    let all = ["0 tmp", "1 a", "2 b", "3 c", "2 d", "1 e"];
    assert_eq!(list(usize::MAX), all);
    assert_eq!(list(2), ["0 tmp", "1 a", "2 b", "2 d", "1 e"]);
    assert_eq!(list(0), ["0 tmp"]);
}
