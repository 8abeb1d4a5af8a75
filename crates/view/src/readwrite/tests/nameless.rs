//! Files without a name, as `open(O_TMPFILE)` makes them.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
use rustix::io::Errno;

use super::support::{PREFIX, Scene, Wishes, me};
use crate::readwrite::view::View;
use crate::readwrite::{Access, MountPoints, Owners, ReadWritePlan, Room};
use crate::scan::MarkNames;

fn nameless(directory: &Path, mode: u32, more_flags: i32) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(mode);
    options.custom_flags(libc::O_TMPFILE | more_flags);
    options.open(directory)
}

fn give_name(file: &File, path: &Path) -> Result<(), Errno> {
    let open = crate::readwrite::host::again(file);
    linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)
}

fn scene() -> Scene {
    Scene::of(|base| {
        base.directory("/d").file("/d/stored", "stored text");
    })
}

#[test]
fn a_file_without_a_name_is_seen_by_nobody_until_it_gets_one() {
    let mut scene = scene();
    let times = |scene: &Scene| fs::metadata(scene.path("/d")).unwrap().mtime_nsec();
    let before = times(&scene);
    let file = nameless(&scene.path("/d"), 0o640, 0).unwrap();
    file.write_all_at(b"nameless", 0).unwrap();
    let about = file.metadata().unwrap();
    assert_eq!((about.nlink(), about.len()), (0, 8));
    assert_eq!(fs::read_dir(scene.path("/d")).unwrap().count(), 1);
    assert_eq!(times(&scene), before);

    // It is a file as any other: opened again, mapped, made longer, given another mode.
    let again = File::open(crate::readwrite::host::again(&file)).unwrap();
    file.write_all_at(b"ly", 8).unwrap();
    let mut bytes = [0; 10];
    again.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"namelessly");
    file.set_permissions(fs::Permissions::from_mode(0o600))
        .unwrap();

    give_name(&file, &scene.path("/d/named")).unwrap();
    let named = fs::metadata(scene.path("/d/named")).unwrap();
    assert_eq!((named.ino(), named.nlink()), (about.ino(), 1));
    assert_eq!(named.permissions().mode() & 0o7777, 0o600);
    file.write_all_at(b"N", 0).unwrap();
    let committed = scene.commit();
    let paths = ["/", "/d", "/d/named", "/d/stored"];
    assert_eq!(scene.paths(committed.root), paths);
    assert_eq!(scene.content(committed.root, "/d/named"), b"Namelessly");
}

#[test]
fn a_name_may_be_one_that_was_removed_and_never_one_that_is_there() {
    let mut scene = scene();
    let file = nameless(&scene.top, 0o644, 0).unwrap();
    file.write_all_at(b"new text", 0).unwrap();
    let path = scene.path("/d/stored");
    assert_eq!(give_name(&file, &path), Err(Errno::EXIST));
    fs::remove_file(&path).unwrap();
    give_name(&file, &path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new text");
    let committed = scene.commit();
    assert_eq!(scene.content(committed.root, "/d/stored"), b"new text");
}

#[test]
fn one_that_shall_have_no_name_gets_none() {
    let mut scene = scene();
    let file = nameless(&scene.path("/d"), 0o600, libc::O_EXCL).unwrap();
    assert_eq!(give_name(&file, &scene.path("/d/named")), Err(Errno::NOENT));
    drop(file);
    let root = scene.commit().root;
    assert_eq!(scene.entry(root, "/d"), scene.entry(scene.base, "/d"));
}

#[test]
fn one_that_is_closed_leaves_nothing() {
    let scene = scene();
    for _ in 0..100 {
        let file = nameless(&scene.path("/d"), 0o600, 0).unwrap();
        file.write_all_at(&[1; 5000], 0).unwrap();
    }
    assert_eq!(fs::read_dir(scene.upper.join("d")).unwrap().count(), 0);
    // The kernel gives back what it was handed out, in its own time.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while scene.view().nodes() > 5 {
        assert!(std::time::Instant::now() < patience, "nodes are kept");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_name_beyond_the_quota_is_refused_and_the_file_stays() {
    let wishes = Wishes {
        room: Room {
            bytes: Some(100),
            ..Room::default()
        },
        ..Wishes::default()
    };
    let scene = Scene::with(wishes, |_| {});
    let file = nameless(&scene.top, 0o600, 0).unwrap();
    file.write_all_at(&[1; 101], 0).unwrap();
    let path = scene.path("/named");
    assert_eq!(give_name(&file, &path), Err(Errno::DQUOT));
    assert!(!path.exists());
    file.set_len(100).unwrap();
    give_name(&file, &path).unwrap();
    assert_eq!(scene.view().room().bytes, Some(0));
}

#[test]
fn an_upper_that_cannot_have_any_is_refused_with_the_reason() {
    if !rustix::process::getuid().is_root() {
        println!(
            "SKIPPED: only root finds a directory to write to that cannot have nameless files"
        );
        return;
    }
    let scene = scene();
    let upper = rustix::fs::open("/proc", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let plan = ReadWritePlan {
        trees: scene.trees.clone(),
        base: scene.base,
        upper: Some(upper),
        marks: MarkNames::User,
        unfinished_prefix: PREFIX.to_vec(),
        owner: me(),
        owners: Owners::One,
        access: Access::ReadWrite,
        room: Room::default(),
        mount_points: MountPoints::default(),
    };
    let refused = View::new(plan).unwrap().check_upper().unwrap_err();
    assert!(refused.to_string().contains("O_TMPFILE"), "{refused}");
}

#[test]
fn none_is_made_where_nothing_may_be() {
    let scene = Scene::with(
        Wishes {
            access: Access::ReadOnly,
            ..Wishes::default()
        },
        |_| {},
    );
    let refused = nameless(&scene.top, 0o600, 0).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS));

    let scene = self::scene();
    fs::create_dir(scene.path("/gone")).unwrap();
    let held = File::open(scene.path("/gone")).unwrap();
    fs::remove_dir(scene.path("/gone")).unwrap();
    let removed = crate::readwrite::host::again(&held);
    let refused = nameless(Path::new(&removed), 0o600, 0).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::ENOENT));
}
