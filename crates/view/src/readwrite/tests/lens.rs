//! The lens through the kernel: who asks for many names one by one is noticed, once.

use std::sync::Arc;
use std::sync::mpsc::TryRecvError;

use super::support::{Builder, Scene, me, mount};
use crate::{Lens, Xattrs};

fn with_files(number: usize) -> impl FnOnce(&mut Builder) {
    move |base| {
        base.directory("/d");
        for file in 0..number {
            base.file(&format!("/d/f{file}"), "x");
        }
    }
}

#[test]
fn a_search_for_many_names_is_told_of_once() {
    let scene = Scene::of(with_files(400));
    let directory = tempfile::tempdir().unwrap();
    let served = Lens::serve(
        mount(directory.path()),
        scene.trees.clone(),
        me(),
        Xattrs::Absent,
    );
    let (lens, searched) = served.unwrap();
    let lens = Arc::new(lens);
    let shown = lens.open(scene.base);
    let top = directory.path().join(shown.name());
    let look = |files: std::ops::Range<usize>| {
        for file in files {
            assert_eq!(top.join(format!("d/f{file}")).metadata().unwrap().len(), 1);
        }
    };
    look(0..200);
    assert_eq!(searched.try_recv(), Err(TryRecvError::Empty));
    look(200..400);
    assert_eq!(searched.try_recv(), Ok(scene.base));
    assert_eq!(searched.try_recv(), Err(TryRecvError::Empty));
    assert!(lens.nodes() >= 400);
    drop(shown);
    let flags = rustix::mount::UnmountFlags::DETACH;
    if rustix::mount::unmount(directory.path(), flags).is_err() {
        let fusermount = std::process::Command::new("fusermount3")
            .args(["-u", "-z"])
            .arg(directory.path())
            .status();
        assert!(fusermount.unwrap().success());
    }
}
