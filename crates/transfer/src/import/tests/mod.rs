//! In and out again: what the host has is what the vault gets, and what comes out is what went in.

mod sources;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use avfs_store::Store;
use avfs_vault::{Kind, Root, RootId, Time, Trees, VaultPath};
use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, XattrFlags};

use crate::{
    Error, ExportReport, Exporter, GitEnvironment, Hooks, ImportCache, ImportFilter, ImportReport,
    ImportTerms, Importer, OnDamage, Result, Standing, Unwatched,
};

const OWNER: (u32, u32) = (1000, 1001);

fn import_directory(
    trees: &Trees,
    edit: &mut avfs_vault::Edit,
    host_dir: &Path,
    at: &VaultPath,
    owner: (u32, u32),
) -> Result<ImportReport> {
    let terms = ImportTerms {
        trees,
        at,
        owner,
        filter: &ImportFilter::default(),
        notes: Path::new("/nowhere"),
        cache: &ImportCache::empty(),
        git: GitEnvironment {
            path: OsStr::new("/usr/local/bin:/usr/bin:/bin"),
            user_home: None,
        },
        admits: &|_, _| Ok(()),
    };
    let importer = Importer::new(terms, &Unwatched)?;
    importer.put(edit, importer.read_directory(host_dir)?)
}

struct Scene {
    dir: tempfile::TempDir,
    trees: Trees,
    root: RootId,
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("host")).unwrap();
        let trees = Trees::new(Store::open(&dir.path().join("home")).unwrap());
        let root = trees.empty_root().unwrap();
        Scene { dir, trees, root }
    }

    fn host(&self, name: &str) -> PathBuf {
        self.dir.path().join("host").join(name)
    }

    fn write(&self, name: &str, bytes: &[u8], mode: u32) {
        std::fs::create_dir_all(self.host(name).parent().unwrap()).unwrap();
        std::fs::write(self.host(name), bytes).unwrap();
        std::fs::set_permissions(self.host(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn import(&mut self, at: &str) -> ImportReport {
        let mut edit = self.trees.edit(self.root).unwrap();
        let at = at.parse().unwrap();
        let report = import_directory(&self.trees, &mut edit, &self.host(""), &at, OWNER).unwrap();
        self.root = edit.finish().unwrap();
        report
    }

    fn export(&self, path: &str, to: &str) -> Result<ExportReport> {
        let exporter = Exporter {
            trees: &self.trees,
            root: self.root,
            path: &path.parse().unwrap(),
            hooks: Hooks::Refuse,
            on_damage: OnDamage::Stop,
            notes: &self.dir.path().join("exports"),
            watcher: &Unwatched,
        };
        exporter.to_directory(&self.dir.path().join(to), Standing::Nothing)
    }

    fn entry(&self, path: &str) -> Option<avfs_vault::Entry> {
        self.trees.entry(self.root, &path.parse().unwrap()).unwrap()
    }

    fn content(&self, path: &str) -> Vec<u8> {
        let Some(Kind::File { content, size, .. }) = self.entry(path).map(|entry| entry.kind)
        else {
            panic!("{path} is no file");
        };
        self.trees.read(content, 0, size as usize).unwrap()
    }

    fn root(&self) -> Root {
        Root::clone(&self.trees.root(self.root).unwrap())
    }
}

fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::Host { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

fn set_mtime(path: &Path, secs: i64, nanos: i64) {
    let time = Timespec {
        tv_sec: secs,
        tv_nsec: nanos,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// What an independent look at a directory sees: kind, mode, mtime, content, who is linked.
fn scan(top: &Path) -> BTreeMap<PathBuf, String> {
    let (mut seen, mut first) = (BTreeMap::new(), BTreeMap::new());
    let mut ahead = vec![PathBuf::new()];
    while let Some(relative) = ahead.pop() {
        let path = top.join(&relative);
        let stat = path.symlink_metadata().unwrap();
        let body = if stat.is_dir() {
            let names = path
                .read_dir()
                .unwrap()
                .map(|e| relative.join(e.unwrap().file_name()));
            ahead.extend(names);
            "directory".to_owned()
        } else if stat.is_symlink() {
            format!("to {:?}", path.read_link().unwrap())
        } else if stat.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            format!("{} {}", bytes.len(), blake3_hex(&bytes))
        } else {
            "fifo".to_owned()
        };
        let mut value = [0; 64];
        let path_bytes = path.as_os_str().as_bytes();
        let xattr = rustix::fs::lgetxattr(path_bytes, "user.note", &mut value).ok();
        let time = (stat.mtime(), stat.mtime_nsec());
        let told = format!(
            "{:o} {time:?} {body} {xattr:?} {:?}",
            stat.mode(),
            &value[..8]
        );
        seen.insert(relative.clone(), told);
        if stat.is_file() && stat.nlink() > 1 {
            first
                .entry(stat.ino())
                .or_insert_with(Vec::new)
                .push(relative);
        }
    }
    for mut names in first.into_values() {
        names.sort();
        for name in &names {
            seen.entry(name.clone())
                .and_modify(|told| told.push_str(&format!(" = {names:?}")));
        }
    }
    seen
}

fn blake3_hex(bytes: &[u8]) -> String {
    avfs_store::ObjectId::of(bytes).to_string()
}

/// A directory with one of everything.
fn furnish(scene: &Scene) {
    scene.write("a/file", b"hello", 0o640);
    scene.write("a/empty", b"", 0o600);
    scene.write("a/run.sh", b"#!/bin/sh\n", 0o755);
    scene.write("big", &vec![7; 3_000_000], 0o644);
    scene.write("a/b/c/deep", b"deep", 0o444);
    std::fs::create_dir(scene.host("void")).unwrap();
    symlink("../a/file", scene.host("a/link")).unwrap();
    symlink("/nowhere", scene.host("dangling")).unwrap();
    std::fs::hard_link(scene.host("a/file"), scene.host("twin")).unwrap();
    rustix::fs::mkfifoat(CWD, scene.host("pipe"), Mode::from_raw_mode(0o620)).unwrap();
    let strange = scene.host("").join(OsStr::from_bytes(b"not \xff utf8\n"));
    std::fs::write(&strange, b"strange").unwrap();
    for name in ["a/file", "void"] {
        let path = scene.host(name);
        rustix::fs::setxattr(&path, "user.note", b"noted", XattrFlags::empty()).unwrap();
    }
    for (n, name) in ["a/b/c/deep", "a/link", "pipe", "a/file", "void", "a"]
        .iter()
        .enumerate()
    {
        set_mtime(&scene.host(name), 1_500_000_000 + n as i64, 123_456_789);
    }
    std::fs::set_permissions(scene.host("a/b"), PermissionsExt::from_mode(0o1770)).unwrap();
}

#[test]
fn everything_comes_in_and_goes_out_as_it_was() {
    let mut scene = Scene::new();
    furnish(&scene);
    let report = scene.import("/workspace");
    assert_eq!((report.files, report.directories), (10, 4));
    assert_eq!(report.bytes, 5 + 10 + 3_000_000 + 4 + 5 + 7);
    assert_eq!(report.skipped, []);
    let root = scene.root();
    assert_eq!(
        (root.files(), root.bytes(), root.has_xattrs),
        (10, report.bytes, true)
    );

    let file = scene.entry("/workspace/a/file").unwrap();
    assert_eq!(
        (file.meta.mode, file.meta.uid, file.meta.gid),
        (0o640, OWNER.0, OWNER.1)
    );
    assert_eq!(
        file.meta.mtime,
        Time {
            secs: 1_500_000_003,
            nanos: 123_456_789
        }
    );
    let stat = scene.host("a/file").metadata().unwrap();
    let ctime = Time {
        secs: stat.ctime(),
        nanos: stat.ctime_nsec() as u32,
    };
    assert_eq!(file.meta.ctime, ctime);
    assert_eq!(root.link_count(file.link().unwrap()), 2);
    assert_eq!(file.link(), scene.entry("/workspace/twin").unwrap().link());
    assert_eq!(scene.content("/workspace/big"), vec![7; 3_000_000]);

    let report = scene.export("/workspace", "out").unwrap();
    assert_eq!(
        (report.files, report.directories, report.bytes),
        (10, 4, root.bytes())
    );
    assert_eq!(report.skipped, []);
    assert_eq!(scan(&scene.dir.path().join("out")), scan(&scene.host("")));
}

#[test]
fn importing_again_gives_the_same_root() {
    let mut scene = Scene::new();
    furnish(&scene);
    scene.import("/w");
    let first = scene.entry("/w");
    scene.root = scene.trees.empty_root().unwrap();
    scene.import("/w");
    assert_eq!(scene.entry("/w"), first);
    let before = scene.root;
    scene.import("/w");
    assert_eq!(scene.root, before, "merging the same changes nothing");
}

#[test]
fn an_import_merges_directories_and_replaces_files() {
    let mut scene = Scene::new();
    scene.write("keep/old", b"old", 0o644);
    scene.write("both/x", b"one", 0o644);
    scene.write("was-dir/x", b"gone", 0o644);
    scene.import("/deep/er");
    std::fs::remove_dir_all(scene.host("")).unwrap();
    scene.write("both/x", b"two", 0o600);
    scene.write("both/y", b"new", 0o644);
    scene.write("was-dir", b"now a file", 0o644);
    scene.import("/deep/er");
    assert_eq!(scene.content("/deep/er/keep/old"), b"old");
    assert_eq!(scene.content("/deep/er/both/x"), b"two");
    assert_eq!(scene.content("/deep/er/both/y"), b"new");
    assert_eq!(scene.content("/deep/er/was-dir"), b"now a file");
    assert_eq!(scene.entry("/deep").unwrap().meta.mode, 0o755);
    assert_eq!(scene.root().files(), 4);

    let mut edit = scene.trees.edit(scene.root).unwrap();
    let onto_file: VaultPath = "/deep/er/was-dir/x".parse().unwrap();
    let refused = import_directory(&scene.trees, &mut edit, &scene.host(""), &onto_file, OWNER);
    assert!(matches!(
        refused,
        Err(Error::Vault(avfs_vault::Error::NotADirectory { .. }))
    ));
}

#[test]
fn sockets_and_the_unreadable_are_listed() {
    let mut scene = Scene::new();
    scene.write("fine", b"fine", 0o644);
    let _socket = std::os::unix::net::UnixListener::bind(scene.host("socket")).unwrap();
    scene.write("secret", b"secret", 0o000);
    std::fs::create_dir(scene.host("closed")).unwrap();
    std::fs::set_permissions(scene.host("closed"), PermissionsExt::from_mode(0o000)).unwrap();
    let report = scene.import("/w");
    std::fs::set_permissions(scene.host("closed"), PermissionsExt::from_mode(0o700)).unwrap();
    let told: Vec<_> = report
        .skipped
        .iter()
        .map(|s| (&s.path[..], &s.reason[..]))
        .collect();
    let denied = "it cannot be read: permission denied";
    if rustix::process::geteuid().is_root() {
        assert_eq!(told, [(&b"socket"[..], "it is a socket")]);
    } else {
        let expected = [
            (&b"closed"[..], denied),
            (b"secret", denied),
            (b"socket", "it is a socket"),
        ];
        assert_eq!(told, expected);
    }
    assert_eq!(scene.content("/w/fine"), b"fine");
    assert_eq!(scene.entry("/w/socket"), None);
}

#[test]
fn a_large_directory_comes_in_whole() {
    let mut scene = Scene::new();
    for n in 0..900 {
        scene.write(&format!("d{}/{n}", n % 3), n.to_string().as_bytes(), 0o644);
    }
    let report = scene.import("/");
    assert_eq!((report.files, report.directories), (900, 3));
    for n in (0..900).step_by(97) {
        assert_eq!(
            scene.content(&format!("/d{}/{n}", n % 3)),
            n.to_string().as_bytes()
        );
    }
    scene.export("/", "out").unwrap();
    assert_eq!(scan(&scene.dir.path().join("out")).len(), 904);
}

#[test]
fn an_export_wants_a_directory_and_an_empty_place() {
    let mut scene = Scene::new();
    scene.write("sub/file", b"x", 0o4755);
    scene.import("/w");
    let full = scene.export("/w", "host");
    assert!(matches!(full, Err(Error::NotEmpty { .. })), "{full:?}");
    let file = scene.export("/w/sub/file", "new");
    assert!(matches!(
        file,
        Err(Error::Vault(avfs_vault::Error::NotADirectory { .. }))
    ));
    let none = scene.export("/none", "new");
    assert!(matches!(
        none,
        Err(Error::Vault(avfs_vault::Error::PathNotFound { .. }))
    ));
    assert!(!scene.dir.path().join("new").exists());
    let nowhere = scene.export("/w", "not/there/yet").unwrap_err();
    assert!(is_not_found(&nowhere), "{nowhere}");
    std::fs::create_dir(scene.dir.path().join("empty")).unwrap();
    scene.export("/w/sub", "empty").unwrap();
    let out = scene.dir.path().join("empty/file").metadata().unwrap();
    assert_eq!(
        out.mode() & 0o7777,
        0o755,
        "setuid does not leave the vault"
    );
}

#[test]
fn what_is_not_there_cannot_be_imported() {
    let scene = Scene::new();
    let mut edit = scene.trees.edit(scene.root).unwrap();
    let at = "/w".parse().unwrap();
    let missing =
        import_directory(&scene.trees, &mut edit, &scene.host("none"), &at, OWNER).unwrap_err();
    assert!(is_not_found(&missing), "{missing}");
    assert_eq!(edit.finish().unwrap(), scene.root);
}
