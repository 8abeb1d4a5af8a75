//! Random operations on a view and on a plain directory have the same outcomes and end in the same tree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, XattrFlags, renameat_with, setxattr};

use super::support::Scene;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Files that are open at once.
const HELD: usize = 3;

#[derive(Debug, Clone)]
pub enum Step {
    Write(String, Vec<u8>),
    Overwrite(String, u64, Vec<u8>),
    Append(String, Vec<u8>),
    Truncate(String, u64),
    MakeDirectory(String),
    Remove(String),
    RemoveDirectory(String),
    Rename(String, String),
    Exchange(String, String),
    Spare(String, String),
    Link(String, String),
    Symlink(String, String),
    Mode(String, u32),
    Attribute(String, u8),
    Open(usize, String),
    WriteOpen(usize, u64, Vec<u8>),
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(&NAMES[..]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..50)
}

pub fn step() -> impl Strategy<Value = Step> {
    let pair = || (path(), path());
    prop_oneof![
        3 => (path(), bytes()).prop_map(|(p, b)| Step::Write(p, b)),
        2 => (path(), 0..5000u64, bytes()).prop_map(|(p, at, b)| Step::Overwrite(p, at, b)),
        1 => (path(), bytes()).prop_map(|(p, b)| Step::Append(p, b)),
        1 => (path(), 0..5000u64).prop_map(|(p, size)| Step::Truncate(p, size)),
        3 => path().prop_map(Step::MakeDirectory),
        3 => path().prop_map(Step::Remove),
        2 => path().prop_map(Step::RemoveDirectory),
        6 => pair().prop_map(|(from, to)| Step::Rename(from, to)),
        2 => pair().prop_map(|(from, to)| Step::Exchange(from, to)),
        1 => pair().prop_map(|(from, to)| Step::Spare(from, to)),
        2 => pair().prop_map(|(from, to)| Step::Link(from, to)),
        1 => pair().prop_map(|(target, at)| Step::Symlink(target, at)),
        1 => (path(), 0..8u32).prop_map(|(p, bits)| Step::Mode(p, bits)),
        1 => (path(), any::<u8>()).prop_map(|(p, value)| Step::Attribute(p, value)),
        2 => (0..HELD, path()).prop_map(|(slot, p)| Step::Open(slot, p)),
        2 => (0..HELD, 0..100u64, bytes()).prop_map(|(slot, at, b)| Step::WriteOpen(slot, at, b)),
    ]
}

/// One of the two directories, with its open files.
pub struct Side {
    top: PathBuf,
    held: [Option<File>; HELD],
}

impl Side {
    pub fn new(top: &Path) -> Side {
        Side {
            top: top.to_owned(),
            held: Default::default(),
        }
    }

    pub fn run(&mut self, step: &Step) -> io::Result<()> {
        let at = |path: &String| self.top.join(path);
        let both = |path: &String| File::options().read(true).write(true).open(at(path));
        let rename = |from: &String, to: &String, flags| {
            renameat_with(CWD, at(from), CWD, at(to), flags).map_err(io::Error::from)
        };
        match step {
            // Not through a symlink: it could lead out of the test.
            Step::Write(path, _) | Step::Overwrite(path, ..) | Step::Append(path, _)
                if at(path).is_symlink() =>
            {
                Ok(())
            }
            Step::Write(path, bytes) => fs::write(at(path), bytes),
            Step::Overwrite(path, offset, bytes) => both(path)?.write_all_at(bytes, *offset),
            Step::Append(path, bytes) => {
                let mut options = File::options();
                options.append(true).open(at(path))?.write_all(bytes)
            }
            Step::Truncate(path, size) => both(path)?.set_len(*size),
            Step::MakeDirectory(path) => fs::DirBuilder::new().mode(0o750).create(at(path)),
            Step::Remove(path) => fs::remove_file(at(path)),
            Step::RemoveDirectory(path) => fs::remove_dir(at(path)),
            Step::Rename(from, to) => fs::rename(at(from), at(to)),
            Step::Exchange(from, to) => rename(from, to, RenameFlags::EXCHANGE),
            Step::Spare(from, to) => rename(from, to, RenameFlags::NOREPLACE),
            Step::Link(from, to) => fs::hard_link(at(from), at(to)),
            Step::Symlink(target, path) => symlink(target, at(path)),
            Step::Mode(path, bits) => {
                fs::set_permissions(at(path), fs::Permissions::from_mode(0o700 | bits))
            }
            Step::Attribute(path, value) => {
                let name = format!("user.{}", value % 3);
                Ok(setxattr(at(path), name, &[*value], XattrFlags::empty())?)
            }
            Step::Open(slot, path) => {
                let opened = both(path)?;
                self.held[*slot] = Some(opened);
                Ok(())
            }
            Step::WriteOpen(slot, offset, bytes) => match &self.held[*slot] {
                Some(file) => file.write_all_at(bytes, *offset),
                None => Ok(()),
            },
        }
    }

    /// For each path, everything that a commit should store.
    pub fn tree(&self) -> BTreeMap<Vec<u8>, String> {
        let mut told = BTreeMap::new();
        let mut pending = vec![(self.top.clone(), String::from("/"))];
        while let Some((path, shown)) = pending.pop() {
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mut mode = metadata.permissions().mode() & 0o7777;
            let content = if metadata.is_dir() {
                for item in fs::read_dir(&path).unwrap() {
                    let name = item.unwrap().file_name().into_string().unwrap();
                    let below = format!("{}/{name}", shown.trim_end_matches('/'));
                    pending.push((path.join(&name), below));
                }
                "directory".to_owned()
            } else if metadata.is_symlink() {
                mode = 0o777;
                let target = fs::read_link(&path).unwrap();
                format!("symlink {:?}", target.as_os_str().as_encoded_bytes())
            } else {
                let bytes = fs::read(&path).unwrap();
                let (hash, linked) = (blake3::hash(&bytes), metadata.nlink() > 1);
                format!("file {} {hash} link {linked}", bytes.len())
            };
            let text = format!("{content} {mode:o} {:?}", attributes(&path, &metadata));
            told.insert(shown.into_bytes(), text);
        }
        told
    }
}

fn attributes(path: &Path, metadata: &fs::Metadata) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut attributes = BTreeMap::new();
    if metadata.is_symlink() {
        return attributes;
    }
    let mut value = [0; 64];
    for number in 0..3 {
        let name = format!("user.{number}");
        if let Ok(length) = rustix::fs::getxattr(path, &name, &mut value) {
            attributes.insert(name.into_bytes(), value[..length].to_vec());
        }
    }
    attributes
}

pub fn scene() -> Scene {
    Scene::of(|base| {
        base.directory("/a")
            .directory("/a/a")
            .directory("/a/b")
            .file("/a/a/a", "deep")
            .file("/a/a/b", vec![3; 4000])
            .file("/a/b/c", "text")
            .link("/a/b/c", "/a/c")
            .directory("/b")
            .file("/b/a", "one")
            .file("/b/b", "two")
            .link("/a/b/c", "/b/c")
            .symlink("/b/d", "a")
            .directory("/c");
    })
}

/// The base as a plain directory.
pub fn plain_copy(scene: &Scene, to: &Path) {
    let mut links: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let mut pending = vec![(scene.top.clone(), to.to_owned())];
    while let Some((from, to)) = pending.pop() {
        let metadata = fs::symlink_metadata(&from).unwrap();
        if metadata.is_dir() {
            let _ = fs::create_dir(&to);
            for item in fs::read_dir(&from).unwrap() {
                let name = item.unwrap().file_name();
                pending.push((from.join(&name), to.join(&name)));
            }
        } else if metadata.is_symlink() {
            symlink(fs::read_link(&from).unwrap(), &to).unwrap();
        } else if let Some(first) = links.get(&metadata.ino()) {
            fs::hard_link(first, &to).unwrap();
        } else {
            fs::copy(&from, &to).unwrap();
            links.insert(metadata.ino(), to.clone());
        }
        if !metadata.is_symlink() {
            fs::set_permissions(&to, metadata.permissions()).unwrap();
        }
    }
}

/// Linux filesystems differ in which of these errors it is.
fn outcome(result: io::Result<()>) -> Option<i32> {
    match result.err().and_then(|error| error.raw_os_error()) {
        Some(libc::EEXIST) => Some(libc::ENOTEMPTY),
        other => other,
    }
}

fn check(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut scene = scene();
    let plain = tempfile::tempdir().unwrap();
    plain_copy(&scene, plain.path());
    let (mut view, mut model) = (Side::new(&scene.top), Side::new(plain.path()));
    prop_assert_eq!(view.tree(), model.tree());
    for step in steps {
        let (ours, theirs) = (view.run(step), model.run(step));
        prop_assert_eq!(outcome(ours), outcome(theirs), "{:?}", step);
    }
    prop_assert_eq!(view.tree(), model.tree());
    let root = scene.commit().root;
    prop_assert_eq!(scene.tree(root), model.tree());
    view.held = Default::default();
    scene.remount(scene.base);
    prop_assert_eq!(view.tree(), model.tree(), "after a restart");
    Ok(())
}

/// More of them on demand: `PROPTEST_CASES=2000 cargo test -p avfs-view a_view_is_a_directory`.
fn cases() -> u32 {
    let wanted = std::env::var("PROPTEST_CASES").ok();
    wanted.and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_view_is_a_directory(steps in prop::collection::vec(step(), 1..60)) {
        check(&steps)?;
    }
}

/// A file with other names leaves a directory that was moved: it is still the one that they name.
#[test]
fn a_linked_file_leaves_a_moved_directory() {
    let rename = |from: &str, to: &str| Step::Rename(from.into(), to.into());
    let steps = [
        rename("b", "c"),
        Step::MakeDirectory("b".into()),
        rename("c/c", "b/c"),
    ];
    check(&steps).unwrap();
}
