//! Directories nearly as deep as a path may be long, on a stack that no recursion over them would fit on.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use avfs_transfer::{Gitignores, ImportFilter, Standing};
use rustix::fs::{Mode, OFlags};

use super::Scene;

/// Names of one letter: a path may have 4,095 bytes. In fewer than 130 bytes a level nothing recurses.
const DEPTH: usize = 1_500;
const SMALL: usize = 192 << 10;
/// Edits of a tree still recurse.
const LARGE: usize = 256 << 20;

fn on_stack<T: Send>(size: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(size);
        let running = thread.spawn_scoped(scope, work).unwrap();
        running.join().unwrap()
    })
}

fn open(at: &OwnedFd, name: &str) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty()).unwrap()
}

/// Directories in each other, with a file in the last.
fn dig(top: &Path, content: &str) {
    let mut here: OwnedFd = File::open(top).unwrap().into();
    for _ in 0..DEPTH {
        rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = open(&here, "d");
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&here, "f", flags, Mode::RUSR | Mode::WUSR).unwrap();
    rustix::io::write(&file, content.as_bytes()).unwrap();
}

/// What is in the file at the end.
fn bottom(top: &Path) -> Vec<u8> {
    let mut here: OwnedFd = File::open(top).unwrap().into();
    for _ in 0..DEPTH {
        here = open(&here, "d");
    }
    let file = rustix::fs::openat(&here, "f", OFlags::RDONLY, Mode::empty()).unwrap();
    let mut bytes = vec![0; 100];
    let length = rustix::io::read(&file, &mut bytes[..]).unwrap();
    bytes.truncate(length);
    bytes
}

/// Removes what `std::fs` would need a deep stack for.
fn fill_in(top: &Path) {
    let removed = Command::new("rm").arg("-rf").arg(top).status().unwrap();
    assert!(removed.success());
}

/// An open directory for each level, twice where two are merged.
fn raise_open_files() -> bool {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    limit
        .maximum
        .is_none_or(|most| most > 2 * DEPTH as u64 + 200)
}

#[test]
fn a_deep_directory_comes_in_and_goes_out_on_a_small_stack() {
    if !raise_open_files() {
        avfs_testkit::skip("too few files may be open at once");
        return;
    }
    let mut scene = Scene::new();
    dig(&scene.host(""), "content");
    std::fs::write(scene.host(".gitignore"), "*.o\n").unwrap();
    let filter = ImportFilter {
        gitignores: Gitignores::Heeded,
        ..ImportFilter::default()
    };
    let host = scene.host("");
    let report = on_stack(LARGE, || {
        scene.import(&filter, |importer| {
            on_stack(SMALL, || importer.read_directory(&host))
        })
    });
    let report = report.unwrap();
    assert_eq!((report.files, report.directories), (2, DEPTH as u64));

    let out = scene.beside("out");
    on_stack(SMALL, || scene.export_directory(&out)).unwrap();
    assert_eq!(bottom(&out), b"content");
    // Merged into what is there, and what was made beside it goes.
    fill_in(&out);
    std::fs::create_dir(&out).unwrap();
    dig(&out, "old");
    on_stack(SMALL, || {
        scene.export(|exporter| exporter.to_directory(&out, Standing::Replaced))
    })
    .unwrap();
    assert_eq!(bottom(&out), b"content");
    assert!(scene.is_settled(), "the emptied directories are gone");

    let archive = scene.beside("deep.tar");
    on_stack(SMALL, || {
        scene.export(|exporter| exporter.to_archive(&archive))
    })
    .unwrap();
    let mut again = Scene::new();
    let report = on_stack(LARGE, || {
        again.import(&ImportFilter::default(), |importer| {
            on_stack(SMALL, || {
                importer.read_archive(&mut File::open(&archive).unwrap(), "it")
            })
        })
    });
    assert_eq!(report.unwrap().directories, DEPTH as u64);
    fill_in(&out);
    fill_in(&host);
}
