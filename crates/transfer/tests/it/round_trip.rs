//! What the host has is what the tree gets, and what comes out is what went in: each compared with a walk that shares no
//! code with the crate.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use avfs_testkit::{Node, NodeKind, Scan, scan};
use avfs_transfer::{Apply, ApplyAction, Hooks, Unwatched};
use avfs_vault::{Entry, Kind, LinkId, RootId, Trees, VaultPath};
use rustix::fs::{AtFlags, CWD, Mode, SeekFrom, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;

use super::{Scene, path};

const HOLE: u64 = 1 << 20;
/// Holes are kept in units of this.
const UNIT: usize = 64 << 10;

/// One of everything that a tree can hold.
fn furnish(scene: &Scene) {
    let write = |name: &str, bytes: &[u8], mode: u32| {
        fs::create_dir_all(scene.host(name).parent().unwrap()).unwrap();
        fs::write(scene.host(name), bytes).unwrap();
        fs::set_permissions(scene.host(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    write("a/file", b"hello", 0o640);
    write("a/empty", b"", 0o600);
    write("a/run.sh", b"#!/bin/sh\n", 0o755);
    write("a/b/c/deep", b"deep", 0o444);
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n >> 3) as u8).collect();
    write("large", &large, 0o644);
    let strange = scene
        .host("")
        .join(std::ffi::OsStr::from_bytes(b"not \xff utf8\n"));
    fs::write(strange, b"strange").unwrap();
    write(&("long/".repeat(60) + "name"), b"long", 0o644);
    fs::create_dir(scene.host("void")).unwrap();
    symlink("../a/file", scene.host("a/link")).unwrap();
    symlink("/nowhere", scene.host("dangling")).unwrap();
    fs::hard_link(scene.host("a/file"), scene.host("twin")).unwrap();
    fs::hard_link(scene.host("a/file"), scene.host("a/b/third")).unwrap();
    rustix::fs::mkfifoat(CWD, scene.host("pipe"), Mode::from_raw_mode(0o620)).unwrap();
    let sparse = File::create(scene.host("sparse")).unwrap();
    sparse.write_all_at(&[1; UNIT], 0).unwrap();
    sparse.write_all_at(&[2; UNIT], 2 * HOLE).unwrap();
    sparse.set_len(5 * HOLE).unwrap();
    for (name, key, value) in [
        ("a/file", "user.note", &b"noted"[..]),
        ("a/file", "user.empty", b""),
        ("void", "user.note", b"\0\xff"),
    ] {
        rustix::fs::setxattr(scene.host(name), key, value, XattrFlags::empty()).unwrap();
    }
    fs::set_permissions(scene.host("a/b"), PermissionsExt::from_mode(0o1770)).unwrap();
    let names = ["a/b/c/deep", "a/link", "pipe", "large", "void", "a", ""];
    for (number, name) in names.iter().enumerate() {
        set_mtime(&scene.host(name), number as i64 - 3);
    }
}

/// Some of them before 1970, all with a fraction.
fn set_mtime(path: &Path, secs: i64) {
    let time = Timespec {
        tv_sec: secs * 500_000_000,
        tv_nsec: 123_456_789,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// A path, when it was changed, and where it has data.
type Details = (PathBuf, (i64, i64), Vec<(u64, u64)>);

fn assert_same_details(are: &[Details], were: &[Details]) {
    // The first is the top.
    for (is, was) in are.iter().zip(were).skip(1) {
        assert_eq!(is, was);
    }
    assert_eq!(are.len(), were.len());
}

/// What a scan leaves out.
fn details(top: &Path) -> Vec<Details> {
    let mut seen = Vec::new();
    let mut ahead = vec![top.to_owned()];
    while let Some(path) = ahead.pop() {
        let stat = path.symlink_metadata().unwrap();
        if stat.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            ahead.extend(entries.map(|entry| entry.unwrap().path()));
        }
        let data = match stat.is_file() {
            true => data_of(&path),
            false => Vec::new(),
        };
        let relative = path.strip_prefix(top).unwrap().to_owned();
        seen.push((relative, (stat.mtime(), stat.mtime_nsec()), data));
    }
    seen.sort();
    seen
}

fn data_of(path: &Path) -> Vec<(u64, u64)> {
    let file = File::open(path).unwrap();
    let (mut data, mut end) = (Vec::new(), 0);
    loop {
        match rustix::fs::seek(&file, SeekFrom::Data(end)) {
            Ok(begin) => {
                end = rustix::fs::seek(&file, SeekFrom::Hole(begin)).unwrap();
                data.push((begin, end));
            }
            Err(Errno::NXIO) => return data,
            Err(errno) => panic!("{path:?}: {errno}"),
        }
    }
}

/// What a tree holds, told as a scan of the host tells it.
fn scan_tree(trees: &Trees, root: RootId) -> Scan {
    let mut scan = Scan::default();
    let mut links: HashMap<LinkId, Vec<u8>> = HashMap::new();
    let top = trees.entry(root, &path("/")).unwrap().unwrap();
    let mut ahead = vec![(path("/"), top)];
    let mut all = Vec::new();
    while let Some((at, entry)) = ahead.pop() {
        if let Kind::Directory { tree, .. } = entry.kind {
            let below = trees.list(tree).unwrap().into_iter();
            ahead.extend(below.map(|(name, entry)| (at.join(&name).unwrap(), entry)));
        }
        all.push((at, entry));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    for (at, entry) in &all {
        let name = at.as_bytes().to_vec();
        entry
            .link()
            .map(|link| links.entry(link).or_insert(name.clone()));
        let node = node_of(trees, at, entry, &links);
        scan.nodes.insert(name, node);
    }
    scan
}

fn node_of(trees: &Trees, at: &VaultPath, entry: &Entry, links: &HashMap<LinkId, Vec<u8>>) -> Node {
    let kind = match &entry.kind {
        Kind::File { content, size, .. } => {
            let bytes = trees.read(*content, 0, *size as usize).unwrap();
            assert_eq!(bytes.len() as u64, *size, "{at}");
            NodeKind::File { bytes }
        }
        Kind::Directory { .. } => NodeKind::Directory,
        Kind::Symlink { target } => NodeKind::Symlink {
            target: target.clone(),
        },
        Kind::Fifo => NodeKind::Fifo,
    };
    let xattrs = entry.meta.xattrs.iter();
    Node {
        kind,
        mode: entry.meta.mode,
        same_as: entry.link().map(|link| links[&link].clone()),
        xattrs: xattrs
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .collect(),
    }
}

/// Equal in all that a tree keeps; the top excepted, whose own metadata a tree's `/` has from elsewhere.
fn assert_equal(seen: &Scan, expected: &Scan) {
    let below = |scan: &Scan| {
        let mut nodes = scan.nodes.clone();
        nodes.remove(b"/".as_slice());
        nodes
    };
    let (seen, expected) = (below(seen), below(expected));
    for (name, node) in &expected {
        let shown = String::from_utf8_lossy(name);
        assert!(seen.get(name) == Some(node), "{shown} is not what it was");
    }
    assert_eq!(seen.len(), expected.len());
}

#[test]
fn a_directory_comes_in_and_goes_out_as_it_was() {
    let mut scene = Scene::new();
    furnish(&scene);
    let expected = scan(&scene.host(""));
    let report = scene.import_directory(&scene.host("")).unwrap();
    assert_eq!(report.skipped, []);
    assert_eq!(
        report.files + report.directories + 1,
        expected.nodes.len() as u64
    );
    assert_equal(&scan_tree(&scene.trees, scene.root), &expected);

    let out = scene.beside("out");
    let report = scene.export_directory(&out).unwrap();
    assert_eq!(report.skipped, []);
    assert_equal(&scan(&out), &expected);
    assert_same_details(&details(&out), &details(&scene.host("")));
    assert!(scene.is_settled());
}

#[test]
fn an_archive_of_every_kind_holds_all_of_it() {
    let mut scene = Scene::new();
    furnish(&scene);
    let expected = scan(&scene.host(""));
    let were = details(&scene.host(""));
    scene.import_directory(&scene.host("")).unwrap();
    for ending in ["tar", "tar.gz", "tzst"] {
        let file = scene.beside(&format!("archive.{ending}"));
        let report = scene.export(|exporter| exporter.to_archive(&file)).unwrap();
        assert_eq!(report.skipped, [], "{ending}");
        let mut again = Scene::new();
        let report = again.import_archive(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(report.skipped, [], "{ending}");
        assert_equal(&scan_tree(&again.trees, again.root), &expected);
        let out = again.beside("out");
        again.export_directory(&out).unwrap();
        assert_equal(&scan(&out), &expected);
        assert_same_details(&details(&out), &were);
    }
    assert!(scene.is_settled());
}

#[test]
fn what_changed_in_the_tree_is_applied_to_the_host() {
    let mut scene = Scene::new();
    furnish(&scene);
    scene.import_directory(&scene.host("")).unwrap();
    let base = scene.root;
    let mut edit = scene.trees.edit(base).unwrap();
    edit.remove(&path("/a/b")).unwrap();
    let (content, size) = scene.trees.write_bytes(b"changed").unwrap();
    let mut entry = edit.get(&path("/large")).unwrap().unwrap();
    entry.kind = Entry::file(content, size, entry.meta.clone()).kind;
    edit.put(&path("/large"), entry.clone()).unwrap();
    edit.put(&path("/void/new"), entry).unwrap();
    scene.root = edit.finish().unwrap();

    let apply = |scene: &Scene, roots| {
        let host = scene.real_host();
        let planned = Apply::plan(&scene.trees, roots, &path("/"), &host, &Unwatched)?;
        planned.write(Hooks::Refuse, &scene.notes())
    };
    let before = scan(&scene.host(""));
    let planned = Apply::plan(
        &scene.trees,
        (base, scene.root),
        &path("/"),
        &scene.real_host(),
        &Unwatched,
    );
    let planned = planned.unwrap().into_report();
    assert_eq!(
        scan(&scene.host("")),
        before,
        "a plan alone changes nothing"
    );
    let report = apply(&scene, (base, scene.root)).unwrap();
    assert_eq!(report.changes, planned.changes);
    let done = |name: &str| {
        let found = report.changes.iter();
        let mut found = found.filter(|(path, _)| path == name.as_bytes());
        found.next().map(|(_, action)| *action)
    };
    assert_eq!(done("large"), Some(ApplyAction::Replaced));
    assert_eq!(done("void/new"), Some(ApplyAction::Created));
    assert_eq!(done("a/b/c/deep"), Some(ApplyAction::Deleted));
    assert_equal(&scan(&scene.host("")), &scan_tree(&scene.trees, scene.root));
    let again = apply(&scene, (base, scene.root)).unwrap();
    assert!(again.changes.is_empty(), "{again:?}");
    assert!(scene.is_settled());
}
