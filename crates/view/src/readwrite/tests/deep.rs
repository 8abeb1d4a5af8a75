//! Directories nearly as deep as a path may be long, on a stack that no recursion over them would fit on.

use std::os::unix::fs::MetadataExt;

use avfs_store::Store;
use avfs_vault::{Entry, Trees, VaultPath};
use rustix::fs::{Mode, OFlags};

use super::support::{PREFIX, marks, me, time};
use crate::readwrite::nodes::{Name, TOP};
use crate::readwrite::view::View;
use crate::readwrite::{Access, MountPoints, Owners, ReadWritePlan, Room};

/// Names of one letter: a path may have 4,095 bytes.
const DEPTH: usize = 1_500;
/// Not 200 bytes for each level.
const STACK: usize = 256 << 10;

#[test]
fn a_deep_directory_is_copied_up_and_opened_again() {
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(copy_up_and_open).unwrap().join().unwrap();
}

fn copy_up_and_open() {
    let directory = tempfile::tempdir().unwrap();
    let upper = directory.path().join("upper");
    std::fs::create_dir(&upper).unwrap();
    let trees = Trees::new(Store::open(&directory.path().join("home")).unwrap());
    let mut edit = trees.edit(trees.empty_root().unwrap()).unwrap();
    let mut path = VaultPath::root();
    for level in 0..DEPTH {
        path = path.join(b"d").unwrap();
        let mode = if level % 2 == 0 { 0o750 } else { 0o755 };
        let entry = Entry::directory(mode, time(1_000));
        edit.put(&path, entry).unwrap();
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let plan = ReadWritePlan {
        base: edit.finish().unwrap(),
        trees,
        upper: Some(rustix::fs::open(&upper, flags, Mode::empty()).unwrap()),
        marks: marks(),
        unfinished_prefix: PREFIX.to_vec(),
        owner: me(),
        owners: Owners::One,
        access: Access::ReadWrite,
        room: Room::default(),
        mount_points: MountPoints::default(),
    };
    let view = View::new(plan).unwrap();
    let (mut number, mut numbers) = (TOP, Vec::new());
    for _ in 0..DEPTH {
        numbers.push(number);
        let found = view.find(number, b"d").unwrap().unwrap();
        let name = Name {
            parent: number,
            name: b"d".to_vec(),
        };
        number = view.table().hand_out(&found, name);
    }
    drop(view.directory_in_upper(number).unwrap());
    let bottom = upper.join(&path.to_string()[1..]).metadata().unwrap();
    // Metadata as in the base, although directories were made in each other.
    assert_eq!((bottom.mode() & 0o7777, bottom.mtime()), (0o755, 1_000));
    for opened in numbers {
        view.close_directory(opened);
    }
    view.close_directory(number);
    let opened = view.directory(number).unwrap();
    assert_eq!(rustix::fs::fstat(&opened).unwrap().st_ino, bottom.ino());
    let top = std::fs::File::open(&upper).unwrap();
    crate::remove::remove_contents(&top).unwrap();
}
