//! Reading: symlinks, content, damage.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use avfs_store::{ObjectId, Store};
use avfs_vault::{Content, Entry, Error, Kind, Meta, RootId, Time, TreeId, Trees, VaultPath};

fn trees() -> (tempfile::TempDir, Trees) {
    let home = tempfile::tempdir().unwrap();
    let trees = Trees::new(Store::open(home.path()).unwrap());
    (home, trees)
}

fn path(text: &str) -> VaultPath {
    text.parse().unwrap()
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

fn root_with_links(trees: &Trees, links: &[(&str, &str)]) -> RootId {
    let mut edit = trees.edit(trees.empty_root().unwrap()).unwrap();
    for dir in ["/dir", "/dir/sub"] {
        edit.put(&path(dir), Entry::directory(0o755, Time::EPOCH))
            .unwrap();
    }
    let (content, size) = trees.write_bytes(b"hello").unwrap();
    edit.put(
        &path("/dir/file"),
        Entry::file(content, size, Meta::new(0o644, Time::EPOCH)),
    )
    .unwrap();
    for (at, target) in links {
        edit.put(&path(at), Entry::symlink(target.as_bytes(), Time::EPOCH))
            .unwrap();
    }
    edit.finish().unwrap()
}

#[test]
fn the_empty_root_is_always_the_same() {
    let ((_one, a), (_two, b)) = (trees(), trees());
    assert_eq!(a.empty_root().unwrap(), b.empty_root().unwrap());
    let root = a.root(a.empty_root().unwrap()).unwrap();
    assert_eq!(
        (root.files(), root.bytes(), root.top.meta.mode),
        (0, 0, 0o755)
    );
    assert_eq!(a.list(root.tree()).unwrap(), []);
}

#[test]
fn symlinks_are_followed_inside_the_vault() {
    let (_home, trees) = trees();
    let root = root_with_links(
        &trees,
        &[
            ("/abs", "/dir/file"),
            ("/dir/rel", "file"),
            ("/dir/sub/up", "../../dir"),
            ("/chain", "dir/sub/up/rel"),
            ("/above", "../../../dir/./file"),
            ("/loop", "loop2"),
            ("/loop2", "/loop"),
            ("/dangling", "nowhere/at/all"),
            ("/through", "dir/file/x"),
        ],
    );
    for from in [
        "/abs",
        "/dir/rel",
        "/dir/sub/up/file",
        "/chain",
        "/above",
        "/dir/file",
    ] {
        let (at, entry) = trees.resolve(root, &path(from)).unwrap();
        assert_eq!(
            (at.to_string().as_str(), entry.size()),
            ("/dir/file", 5),
            "{from}"
        );
    }
    assert_eq!(
        trees.resolve(root, &path("/dir/sub/up")).unwrap().0,
        path("/dir")
    );
    assert!(trees.resolve(root, &VaultPath::root()).unwrap().1.is_dir());
    let fails = |from| trees.resolve(root, &path(from)).unwrap_err();
    assert!(matches!(fails("/loop"), Error::SymlinkLoop { .. }));
    assert!(matches!(fails("/dangling"), Error::PathNotFound { path: p } if p == path("/nowhere")));
    assert!(
        matches!(fails("/through"), Error::NotADirectory { path: p } if p == path("/dir/file"))
    );
    assert!(matches!(fails("/none"), Error::PathNotFound { .. }));
    let unfollowed = trees.entry(root, &path("/abs")).unwrap().unwrap();
    assert!(unfollowed.is_symlink());
    assert_eq!(trees.entry(root, &path("/abs/x")).unwrap(), None);
}

#[test]
fn content_of_any_size_comes_back_in_any_piece() {
    let (_home, trees) = trees();
    for length in [0, 1, 4096, 1 << 20, (1 << 20) + 1, 5_000_000] {
        let bytes = noise(length as u64, length);
        let (content, size) = trees.write_content(&mut &bytes[..]).unwrap();
        assert_eq!(size, length as u64);
        assert_eq!((content, size), trees.write_bytes(&bytes).unwrap());
        assert_eq!(matches!(content, Content::Chunks(_)), length > 1 << 20);
        assert_eq!(content == Content::EMPTY, length == 0);
        assert_eq!(trees.read(content, 0, length + 10).unwrap(), bytes);
        let pieces = [
            (0, 1),
            (length / 2, 1000),
            (length / 3, length / 2),
            (length, 5),
        ];
        for (offset, len) in pieces {
            let end = (offset + len).min(length);
            let piece = trees.read(content, offset as u64, len).unwrap();
            assert_eq!(piece, &bytes[offset..end], "{offset}+{len} of {length}");
        }
        assert_eq!(trees.read(content, u64::MAX, 10).unwrap(), b"");
    }
}

#[test]
fn a_changed_byte_in_a_large_file_costs_one_chunk() {
    let (_home, trees) = trees();
    let mut bytes = noise(1, 8_000_000);
    trees.write_bytes(&bytes).unwrap();
    trees.flush().unwrap();
    let before = trees.store().stats().unwrap().bytes_stored;
    bytes[4_000_000] ^= 1;
    bytes.insert(100, 0);
    trees.write_bytes(&bytes).unwrap();
    trees.flush().unwrap();
    let more = trees.store().stats().unwrap().bytes_stored - before;
    assert!(more < 3_000_000, "{more}");
}

#[test]
fn a_reader_that_fails_is_reported() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no more"))
        }
    }
    let (_home, trees) = trees();
    assert!(matches!(
        trees.write_content(&mut Failing),
        Err(Error::Read(_))
    ));
    let head = noise(1, 3 << 20);
    let mut late = std::io::Read::chain(&head[..], Failing);
    assert!(matches!(
        trees.write_content(&mut late),
        Err(Error::Read(_))
    ));
}

#[test]
fn what_is_no_tree_is_corrupt_and_what_is_not_there_is_missing() {
    let (_home, trees) = trees();
    let object = trees.store().put(b"just bytes").unwrap();
    assert!(matches!(
        trees.list(TreeId::new(object)),
        Err(Error::Corrupt { .. })
    ));
    assert!(matches!(
        trees.root(RootId::new(object)),
        Err(Error::Corrupt { .. })
    ));
    assert!(matches!(
        trees.read(Content::Chunks(object), 0, 1),
        Err(Error::Corrupt { .. })
    ));
    let root = trees.empty_root().unwrap();
    assert!(matches!(
        trees.list(TreeId::new(root.object())),
        Err(Error::Corrupt { .. })
    ));
    let nowhere = ObjectId::of(b"never stored");
    let missing = |error| matches!(error, Error::Store(avfs_store::Error::Missing { .. }));
    assert!(missing(trees.list(TreeId::new(nowhere)).unwrap_err()));
    assert!(missing(
        trees.read(Content::Object(nowhere), 0, 1).unwrap_err()
    ));
}

#[test]
fn the_top_cannot_go_but_can_change() {
    let (_home, trees) = trees();
    let mut edit = trees.edit(root_with_links(&trees, &[])).unwrap();
    let top = VaultPath::root();
    assert!(matches!(edit.remove(&top), Err(Error::TopDirectory { .. })));
    let file = Entry::file(Content::EMPTY, 0, Meta::new(0, Time::EPOCH));
    assert!(matches!(
        edit.put(&top, file),
        Err(Error::NotADirectory { .. })
    ));
    edit.put(&top, edit.get(&path("/dir")).unwrap().unwrap())
        .unwrap();
    edit.set_meta(&top, Meta::new(0o700, Time::EPOCH)).unwrap();
    let root = edit.finish().unwrap();
    assert!(trees.entry(root, &path("/file")).unwrap().is_some());
    assert_eq!(trees.root(root).unwrap().top.meta.mode, 0o700);
}

#[test]
fn hard_linked_names_that_differ_are_parted() {
    let (_home, trees) = trees();
    let base = root_with_links(&trees, &[]);
    let mut edit = trees.edit(base).unwrap();
    let (a, b, c) = (path("/dir/file"), path("/b"), path("/c"));
    let mut entry = edit.get(&a).unwrap().unwrap();
    let id = edit.fresh_link(&a);
    if let Kind::File { link, .. } = &mut entry.kind {
        *link = Some(id);
    }
    for name in [&a, &b, &c] {
        edit.put(name, entry.clone()).unwrap();
    }
    assert_eq!(
        edit.linked_names(&c).unwrap(),
        [b.clone(), c.clone(), a.clone()]
    );
    let linked = edit.finish().unwrap();
    let root = trees.root(linked).unwrap();
    assert_eq!(root.links.len(), 1);
    let link = trees.entry(linked, &a).unwrap().unwrap().link().unwrap();
    assert_eq!((root.link_count(link), root.bytes()), (3, 15));

    let mut edit = trees.edit(linked).unwrap();
    assert_ne!(
        edit.fresh_link(&b),
        link,
        "the id of /b is taken by the file itself"
    );
    entry = edit.get(&b).unwrap().unwrap();
    entry.meta.mode = 0o600;
    edit.put(&b, entry).unwrap();
    let parted = edit.finish().unwrap();
    assert_eq!(trees.entry(parted, &b).unwrap().unwrap().link(), None);
    let names = trees
        .root(parted)
        .unwrap()
        .links
        .values()
        .next()
        .unwrap()
        .clone();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), [c, a]);
}
