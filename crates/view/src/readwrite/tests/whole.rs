//! The view as a whole: read-only, restarted, changed by others, unmounted, forgotten.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::sync::mpsc;
use std::time::Duration;

use super::support::{Scene, Wishes};
use crate::Owner;
use crate::readwrite::{Access, Owners};

fn errno<T>(outcome: std::io::Result<T>) -> Option<i32> {
    outcome.err().and_then(|error| error.raw_os_error())
}

fn assert_unchangeable(scene: &Scene) {
    assert_eq!(fs::read(scene.path("/d/f")).unwrap(), b"stored");
    assert_eq!(fs::read_dir(scene.path("/d")).unwrap().count(), 1);
    let file = scene.path("/d/f");
    assert_eq!(errno(fs::write(&file, "x")), Some(libc::EROFS));
    assert_eq!(errno(fs::write(scene.path("/new"), "x")), Some(libc::EROFS));
    assert_eq!(errno(fs::remove_file(&file)), Some(libc::EROFS));
    assert_eq!(errno(fs::create_dir(scene.path("/n"))), Some(libc::EROFS));
    assert_eq!(
        errno(fs::rename(&file, scene.path("/n"))),
        Some(libc::EROFS)
    );
    assert_eq!(fs::read_dir(&scene.upper).unwrap().count(), 0);
}

#[test]
fn a_view_of_the_base_alone_cannot_be_changed() {
    let wishes = Wishes {
        with_upper: false,
        ..Wishes::default()
    };
    let scene = Scene::with(wishes, |base| {
        base.directory("/d").file("/d/f", "stored");
    });
    assert_unchangeable(&scene);
}

#[test]
fn a_read_only_view_of_a_layer_cannot_be_changed() {
    let wishes = Wishes {
        access: Access::ReadOnly,
        ..Wishes::default()
    };
    let scene = Scene::with(wishes, |base| {
        base.directory("/d").file("/d/f", "stored");
    });
    assert_unchangeable(&scene);
}

#[test]
fn a_commit_holds_writers_until_it_is_done() {
    let scene = Scene::of(|base| {
        base.file("/f", "stored");
    });
    let quiet = scene.view().quiesce().unwrap();
    let (sender, done) = mpsc::channel();
    std::thread::scope(|scope| {
        let path = scene.path("/f");
        scope.spawn(move || {
            fs::write(path, "written").unwrap();
            sender.send(()).unwrap();
        });
        let held = done.recv_timeout(Duration::from_millis(100));
        assert!(held.is_err(), "nothing is written meanwhile");
        assert_eq!(fs::read(scene.path("/f")).unwrap(), b"stored");
        drop(quiet);
        done.recv().unwrap();
    });
    assert_eq!(fs::read(scene.path("/f")).unwrap(), b"written");
}

#[test]
fn nodes_go_when_the_kernel_forgets_them() {
    let scene = Scene::of(|base| {
        base.directory("/d");
        for number in 0..500 {
            base.file(&format!("/d/{number}"), "");
        }
    });
    for number in 500..1_000 {
        fs::write(scene.path(&format!("/d/{number}")), "").unwrap();
    }
    for item in fs::read_dir(scene.path("/d")).unwrap() {
        item.unwrap().metadata().unwrap().size();
    }
    assert!(scene.view().nodes() > 1_000);
    fs::remove_dir_all(scene.path("/d")).unwrap();
    // The kernel tells in its own time.
    while scene.view().nodes() > 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_view_notices_that_it_was_unmounted() {
    let mut scene = Scene::of(|_| {});
    assert!(scene.view().is_alive());
    scene.unmount();
    while scene.view().is_alive() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_dropped_answers_no_more() {
    let mut scene = Scene::of(|base| {
        base.file("/f", "stored");
    });
    let mut file = File::create(scene.path("/new")).unwrap();
    file.write_all(b"before").unwrap();
    drop(scene.view.take());
    assert_eq!(errno(file.write_all(b"after")), Some(libc::ENOTCONN));
    assert_eq!(
        errno(fs::write(scene.path("/other"), "x")),
        Some(libc::ENOTCONN)
    );
    assert_eq!(fs::read(scene.upper.join("new")).unwrap(), b"before");
}

/// Only root can give files away.
fn owned(owners: Owners) -> Option<Scene> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let wishes = Wishes {
        owner: Owner { uid: 7, gid: 8 },
        owners,
        ..Wishes::default()
    };
    Some(Scene::with(wishes, |base| {
        base.directory("/d").file("/d/f", "stored");
    }))
}

fn owner(path: std::path::PathBuf) -> (u32, u32) {
    let metadata = fs::symlink_metadata(path).unwrap();
    (metadata.uid(), metadata.gid())
}

#[test]
fn everything_belongs_to_one_owner() {
    let Some(scene) = owned(Owners::One) else {
        return;
    };
    fs::write(scene.path("/new"), "").unwrap();
    fs::create_dir(scene.path("/directory")).unwrap();
    std::os::unix::fs::symlink("x", scene.path("/link")).unwrap();
    fs::write(scene.path("/d/f"), "changed").unwrap();
    for path in ["new", "directory", "link", "d", "d/f"] {
        assert_eq!(owner(scene.path(path)), (7, 8), "{path}");
        assert_eq!(owner(scene.upper.join(path)), (7, 8), "{path} on the host");
    }
    let given = chown(scene.path("/new"), Some(9), None);
    assert_eq!(errno(given), Some(libc::EPERM));
    chown(scene.path("/new"), Some(7), Some(8)).unwrap();
}

#[test]
fn owners_are_kept_until_the_commit() {
    let Some(scene) = owned(Owners::Each) else {
        return;
    };
    fs::write(scene.path("/new"), "").unwrap();
    assert_eq!(owner(scene.path("/new")), (0, 0));
    assert_eq!(owner(scene.path("/d/f")), (7, 8));
    chown(scene.path("/d/f"), Some(9), Some(10)).unwrap();
    chown(scene.path("/new"), Some(9), None).unwrap();
    assert_eq!(owner(scene.path("/d/f")), (9, 10));
    assert_eq!(owner(scene.path("/new")), (9, 0));
    assert_eq!(owner(scene.path("/d")), (7, 8));
}
