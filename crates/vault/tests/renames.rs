//! Which deletions and creations are told as renames.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use avfs_store::Store;
use avfs_vault::{ChangeKind, Entry, Meta, RootId, Time, Trees, VaultPath, pair_renames};

fn path(text: &str) -> VaultPath {
    text.parse().unwrap()
}

struct Scene {
    _home: tempfile::TempDir,
    trees: Trees,
}

impl Scene {
    fn new() -> Scene {
        let home = tempfile::tempdir().unwrap();
        let trees = Trees::new(Store::open(home.path()).unwrap());
        Scene { _home: home, trees }
    }

    /// Paths that end in '/' are directories; the others hold the text after '='.
    fn root(&self, paths: &[&str]) -> RootId {
        let mut edit = self.trees.edit(self.trees.empty_root().unwrap()).unwrap();
        for text in paths {
            let entry = match text.split_once('=') {
                None => Entry::directory(0o755, Time::EPOCH),
                Some((_, body)) => {
                    let (content, size) = self.trees.write_bytes(body.as_bytes()).unwrap();
                    Entry::file(content, size, Meta::new(0o644, Time::EPOCH))
                }
            };
            edit.put(&path(text.split('=').next().unwrap()), entry)
                .unwrap();
        }
        edit.finish().unwrap()
    }

    /// The changes between two trees as short text.
    fn told(&self, before: &[&str], after: &[&str]) -> Vec<String> {
        let changes = self
            .trees
            .diff(self.root(before), self.root(after))
            .unwrap();
        let told = |change: avfs_vault::Change| match change.kind {
            ChangeKind::Renamed { from } => format!("{from}>{}", change.path),
            ChangeKind::Created => format!("+{}", change.path),
            ChangeKind::Deleted => format!("-{}", change.path),
            other => format!("{other:?} {}", change.path),
        };
        pair_renames(changes).into_iter().map(told).collect()
    }
}

#[test]
fn a_file_with_the_same_content_was_renamed() {
    let scene = Scene::new();
    assert_eq!(scene.told(&["/a=x", "/k=k"], &["/b=x", "/k=k"]), ["/a>/b"]);
    assert_eq!(scene.told(&["/a=x"], &["/b=y"]), ["-/a", "+/b"]);
    assert_eq!(
        scene.told(&["/a="], &["/b="]),
        ["-/a", "+/b"],
        "empty files say nothing"
    );
}

#[test]
fn among_equals_only_the_name_decides() {
    let scene = Scene::new();
    let before = ["/p/", "/p/one=x", "/p/two=x", "/q/"];
    let after = ["/p/", "/q/", "/q/one=x", "/q/two=x"];
    assert_eq!(
        scene.told(&before, &after),
        ["/p/one>/q/one", "/p/two>/q/two"]
    );
    assert_eq!(
        scene.told(&["/a=x", "/b=x"], &["/c=x", "/d=x"]),
        ["-/a", "-/b", "+/c", "+/d"]
    );
}

#[test]
fn a_directory_moves_with_everything_in_it() {
    let scene = Scene::new();
    let before = [
        "/old/",
        "/old/empty/",
        "/old/f=1",
        "/old/sub/",
        "/old/sub/g=",
    ];
    let after = [
        "/new/",
        "/new/empty/",
        "/new/f=1",
        "/new/sub/",
        "/new/sub/g=",
    ];
    let expected = [
        "/old>/new",
        "/old/empty>/new/empty",
        "/old/f>/new/f",
        "/old/sub>/new/sub",
    ];
    let told = scene.told(&before, &after);
    assert_eq!(told[..4], expected);
    assert_eq!(told[4..], ["/old/sub/g>/new/sub/g"]);
}

#[test]
fn a_directory_that_gained_a_file_on_the_way_was_still_renamed() {
    let scene = Scene::new();
    let before = ["/old/", "/old/d/", "/old/d/g=2", "/old/f=1"];
    let after = ["/new/", "/new/d/", "/new/d/g=2", "/new/extra=3", "/new/f=1"];
    let told = scene.told(&before, &after);
    let expected = [
        "/old>/new",
        "/old/d>/new/d",
        "/old/d/g>/new/d/g",
        "+/new/extra",
        "/old/f>/new/f",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_directory_that_left_something_behind_was_not_renamed() {
    let scene = Scene::new();
    let before = ["/old/", "/old/f=1", "/old/lost=2"];
    let after = ["/new/", "/new/f=1"];
    assert_eq!(
        scene.told(&before, &after),
        ["+/new", "/old/f>/new/f", "-/old", "-/old/lost"]
    );
}

#[test]
fn a_file_that_moved_and_changed_is_told_by_its_lines() {
    let scene = Scene::new();
    let body = |lines: &[u32]| {
        let lines = lines.iter().map(|i| format!("line number {i}\n"));
        lines.collect::<String>()
    };
    let before = [
        format!("/old={}", body(&[1, 2, 3, 4, 5])),
        format!("/other={}", body(&[10, 11, 12])),
        "/gone=nothing like the rest\n".to_owned(),
    ];
    let after = [
        format!("/new={}", body(&[1, 2, 3, 4, 6])),
        format!("/twin={}", body(&[10, 11, 12, 13])),
        "/come=entirely different\n".to_owned(),
    ];
    let text = |list: &[String; 3]| scene.root(&list.each_ref().map(String::as_str));
    let changes = scene.trees.diff(text(&before), text(&after)).unwrap();
    let changes = scene.trees.pair_similar(pair_renames(changes)).unwrap();
    let told: Vec<String> = changes
        .iter()
        .map(|change| match &change.kind {
            ChangeKind::Renamed { from } => format!("{from} -> {}", change.path),
            kind => format!("{kind:?} {}", change.path),
        })
        .collect();
    let expected = [
        "Created /come",
        "Deleted /gone",
        "/old -> /new",
        "/other -> /twin",
    ];
    assert_eq!(told, expected);
}
