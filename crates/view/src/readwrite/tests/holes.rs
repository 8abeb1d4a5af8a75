//! Holes of stored files: shown as holes, and copied as holes.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use avfs_vault::{ContentWriter, Entry, Meta};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::support::{Scene, Wishes, time};
use crate::readwrite::Access;

const SIZE: u64 = 4 << 40;
const BLOCK: u64 = 64 << 10;

/// A view of `/big`: a hole, a block of data at 1 TiB, a hole up to its end.
fn scene(access: Access, with_upper: bool) -> Scene {
    let wishes = Wishes {
        access,
        with_upper,
        ..Wishes::default()
    };
    Scene::with(wishes, |base| {
        let mut writer = ContentWriter::new(&base.trees);
        writer.zeros(1 << 40).unwrap();
        writer.write(b"data").unwrap();
        writer.zeros(SIZE - (1 << 40) - 4).unwrap();
        let (content, size) = writer.finish().unwrap();
        base.entry(
            "/big",
            Entry::file(content, size, Meta::new(0o644, time(1))),
        );
    })
}

fn check(file: &File) {
    let data = 1 << 40;
    let seek = |position| rustix::fs::seek(file, position);
    assert_eq!(seek(SeekFrom::Data(0)), Ok(data));
    assert_eq!(seek(SeekFrom::Hole(0)), Ok(0));
    assert_eq!(seek(SeekFrom::Data(data + 1)), Ok(data + 1));
    assert_eq!(seek(SeekFrom::Hole(data)), Ok(data + BLOCK));
    assert_eq!(seek(SeekFrom::Data(data + BLOCK)), Err(Errno::NXIO));
    assert_eq!(seek(SeekFrom::Data(SIZE)), Err(Errno::NXIO));
    assert_eq!(file.metadata().unwrap().blocks(), BLOCK / 512);
    let mut bytes = [1; 6];
    file.read_exact_at(&mut bytes, data - 1).unwrap();
    assert_eq!(&bytes, b"\0data\0");
}

#[test]
fn every_view_tells_where_holes_are() {
    for (access, with_upper) in [
        (Access::ReadWrite, true),
        (Access::ReadOnly, true),
        (Access::ReadOnly, false),
    ] {
        let scene = scene(access, with_upper);
        check(&File::open(scene.path("/big")).unwrap());
    }
}

#[test]
fn a_copy_has_the_same_holes() {
    let mut scene = scene(Access::ReadWrite, true);
    let base = scene.base;
    let file = File::options()
        .write(true)
        .open(scene.path("/big"))
        .unwrap();
    file.write_all_at(b"end", SIZE - 3).unwrap();
    drop(file);
    let copy = fs::metadata(scene.upper.join("big")).unwrap();
    assert_eq!(copy.len(), SIZE);
    assert!(copy.blocks() * 512 <= 4 * BLOCK, "{} blocks", copy.blocks());
    let root = scene.commit().root;
    assert_ne!(root, base);
    let changed = scene.entry(root, "/big");
    let avfs_vault::Kind::File { content, size, .. } = changed.kind else {
        panic!("it is a file")
    };
    assert_eq!(scene.trees.read(content, SIZE - 4, 9).unwrap(), b"\0end");
    assert_eq!(scene.trees.data_size(content, size).unwrap(), 2 * BLOCK);
    // Without what was written it is what it was, however it came about.
    let file = File::options()
        .write(true)
        .open(scene.path("/big"))
        .unwrap();
    file.write_all_at(&[0; 3], SIZE - 3).unwrap();
    drop(file);
    let root = scene.commit().root;
    assert_eq!(
        scene.entry(root, "/big").kind,
        scene.entry(base, "/big").kind
    );
}
