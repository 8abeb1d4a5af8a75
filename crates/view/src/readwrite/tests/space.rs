//! Space: holes, copies of ranges, the quota, and what `statfs` says.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::{FallocateFlags, SeekFrom, copy_file_range, fallocate, seek};
use rustix::io::Errno;

use super::support::{Scene, Wishes};
use crate::readwrite::Room;

fn both(scene: &Scene, path: &str) -> File {
    let mut options = File::options();
    options.read(true).write(true).create(true);
    options.truncate(false).open(scene.path(path)).unwrap()
}

fn limited(room: Room) -> Scene {
    let wishes = Wishes {
        room,
        ..Wishes::default()
    };
    Scene::with(wishes, |base| {
        base.file("/stored", [1; 1000]);
    })
}

fn errno<T>(outcome: std::io::Result<T>) -> Option<i32> {
    outcome.err().and_then(|error| error.raw_os_error())
}

#[test]
fn holes_are_made_and_found() {
    let scene = Scene::of(|base| {
        base.file("/stored", [1; 10]);
    });
    let file = both(&scene, "/holes");
    file.write_all_at(&[9; 65536], 0).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, punch, 16384, 16384).unwrap();
    let mut bytes = [1; 4];
    file.read_exact_at(&mut bytes, 20000).unwrap();
    assert_eq!(bytes, [0; 4]);
    assert_eq!(seek(&file, SeekFrom::Hole(0)), Ok(16384));
    assert_eq!(seek(&file, SeekFrom::Data(16384)), Ok(32768));
    assert_eq!(seek(&file, SeekFrom::Data(65536)), Err(Errno::NXIO));
    fallocate(&file, FallocateFlags::empty(), 0, 100_000).unwrap();
    assert_eq!(file.metadata().unwrap().size(), 100_000);
    fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 200_000).unwrap();
    assert_eq!(file.metadata().unwrap().size(), 100_000);
    let stored = File::open(scene.path("/stored")).unwrap();
    assert_eq!(seek(&stored, SeekFrom::Data(3)), Ok(3));
    assert_eq!(seek(&stored, SeekFrom::Hole(3)), Ok(10));
}

#[test]
fn ranges_are_copied_between_files() {
    let scene = Scene::of(|base| {
        base.file("/stored", "0123456789");
    });
    let (from, to) = (both(&scene, "/from"), both(&scene, "/to"));
    from.write_all_at(b"abcdefgh", 0).unwrap();
    let (mut read_at, mut write_at) = (2, 1);
    let copied = copy_file_range(&from, Some(&mut read_at), &to, Some(&mut write_at), 100);
    assert_eq!(copied, Ok(6));
    assert_eq!(fs::read(scene.path("/to")).unwrap(), b"\0cdefgh");
    let stored = File::open(scene.path("/stored")).unwrap();
    let (mut read_at, mut write_at) = (5, 0);
    let copied = copy_file_range(&stored, Some(&mut read_at), &to, Some(&mut write_at), 3);
    assert_eq!(copied, Ok(3));
    assert_eq!(fs::read(scene.path("/to")).unwrap(), b"567efgh");
}

#[test]
fn writes_beyond_the_quota_are_refused_at_once() {
    let scene = limited(Room {
        bytes: Some(100),
        ..Room::default()
    });
    let file = both(&scene, "/new");
    file.write_all_at(&[1; 100], 0).unwrap();
    assert_eq!(errno(file.write_at(&[1], 100)), Some(libc::EDQUOT));
    assert_eq!(errno(file.set_len(101)), Some(libc::EDQUOT));
    let grown = fallocate(&file, FallocateFlags::empty(), 0, 101);
    assert_eq!(grown, Err(Errno::DQUOT));
    file.write_all_at(&[2; 100], 0).unwrap();
    let linked = fs::hard_link(scene.path("/new"), scene.path("/again"));
    assert_eq!(errno(linked), Some(libc::EDQUOT), "every name counts");
    assert_eq!(fs::read(scene.path("/new")).unwrap(), [2; 100]);
    file.set_len(40).unwrap();
    file.write_all_at(&[3; 60], 40).unwrap();
    fs::write(scene.path("/stored"), [1; 900]).unwrap();
    file.write_all_at(&[4; 100], 100).unwrap();
    assert_eq!(scene.view().room().bytes, Some(0));
    // A removed file that is still open takes nothing from the vault.
    fs::remove_file(scene.path("/new")).unwrap();
    file.write_all_at(&[4; 500], 0).unwrap();
    assert_eq!(scene.view().room().bytes, Some(200));
    fs::remove_file(scene.path("/stored")).unwrap();
    assert_eq!(scene.view().room().bytes, Some(1100));
    scene.view().set_room(Room::default());
    fs::write(scene.path("/large"), [0; 5000]).unwrap();
}

#[test]
fn names_beyond_the_quota_are_refused_at_once() {
    let scene = limited(Room {
        files: Some(2),
        file_bytes: Some(50),
        ..Room::default()
    });
    fs::write(scene.path("/one"), "1").unwrap();
    std::os::unix::fs::symlink("x", scene.path("/two")).unwrap();
    assert_eq!(
        errno(fs::write(scene.path("/three"), "3")),
        Some(libc::EDQUOT)
    );
    assert!(!scene.path("/three").exists());
    fs::create_dir(scene.path("/directory")).unwrap();
    fs::rename(scene.path("/one"), scene.path("/two")).unwrap();
    fs::write(scene.path("/three"), "3").unwrap();
    let large = both(&scene, "/three").set_len(51);
    assert_eq!(errno(large), Some(libc::EFBIG));
    // What is too large already may shrink, and be written within its size.
    both(&scene, "/stored").write_all_at(&[0; 10], 500).unwrap();
    both(&scene, "/stored").set_len(900).unwrap();
}

#[test]
fn free_space_is_the_hosts_or_the_quotas() {
    let scene = Scene::of(|_| {});
    let (view, host) = (
        rustix::fs::statvfs(&scene.top).unwrap(),
        rustix::fs::statvfs(&scene.upper).unwrap(),
    );
    assert_eq!((view.f_blocks, view.f_namemax), (host.f_blocks, 255));
    assert!(view.f_bavail > 0);
    scene.view().set_room(Room {
        bytes: Some(1 << 20),
        files: Some(7),
        file_bytes: None,
    });
    let view = rustix::fs::statvfs(&scene.top).unwrap();
    assert_eq!(view.f_bavail * view.f_frsize, 1 << 20);
    assert_eq!(view.f_ffree, 7);
}
