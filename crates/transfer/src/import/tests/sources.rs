//! Archives, revisions and filters: what is honest comes in, what is not is refused whole.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use avfs_store::Store;
use avfs_vault::{Kind, RootId, Trees, VaultPath};
use tar::{Builder, EntryType, Header};

use crate::{
    Error, GitEnvironment, Gitignores, ImportCache, ImportFilter, ImportReport, ImportTerms,
    Importer, Progress, Result, Unwatched, Watcher,
};

struct Scene {
    dir: tempfile::TempDir,
    trees: Trees,
    root: RootId,
}

enum From<'a> {
    Archive(&'a [u8]),
    Directory(&'a Path),
    Revision(&'a Path, &'a str),
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::new(Store::open(&dir.path().join("home")).unwrap());
        let root = trees.empty_root().unwrap();
        Scene { dir, trees, root }
    }

    fn import(
        &mut self,
        from: From<'_>,
        filter: &ImportFilter,
        cache: &ImportCache,
        watcher: &dyn Watcher,
    ) -> Result<ImportReport> {
        let at: VaultPath = "/w".parse().unwrap();
        let terms = ImportTerms {
            trees: &self.trees,
            at: &at,
            owner: (1000, 1000),
            filter,
            notes: Path::new("/nowhere"),
            cache,
            admits: &|_, _| Ok(()),
        };
        let importer = Importer::new(terms, watcher)?;
        let incoming = match from {
            From::Archive(mut bytes) => importer.read_archive(&mut bytes, "it")?,
            From::Directory(dir) => importer.read_directory(dir)?,
            From::Revision(dir, revision) => {
                let path = std::env::var_os("PATH").unwrap();
                let git = GitEnvironment {
                    path: &path,
                    user_home: Some(self.dir.path()),
                };
                importer.read_revision(git, dir, revision)?
            }
        };
        let mut edit = self.trees.edit(self.root).unwrap();
        let report = importer.put(&mut edit, incoming)?;
        self.root = edit.finish().unwrap();
        Ok(report)
    }

    fn archive(&mut self, bytes: &[u8]) -> Result<ImportReport> {
        let (filter, cache) = (ImportFilter::default(), ImportCache::empty());
        self.import(From::Archive(bytes), &filter, &cache, &Unwatched)
    }

    /// Must be refused for a reason that holds `why`, with nothing changed.
    fn refused(&mut self, bytes: &[u8], why: &str) {
        let before = self.root;
        let error = self.archive(bytes).expect_err(why);
        assert!(matches!(error, Error::Archive { .. }), "{error}");
        assert!(
            error.to_string().contains(why),
            "{error} does not say {why}"
        );
        assert_eq!(self.root, before);
    }

    fn kind(&self, path: &str) -> Option<Kind> {
        let entry = self.trees.entry(self.root, &path.parse().unwrap()).unwrap();
        entry.map(|entry| entry.kind)
    }

    fn text(&self, path: &str) -> String {
        let Some(Kind::File { content, size, .. }) = self.kind(path) else {
            panic!("{path} is no file");
        };
        let bytes = self.trees.read(content, 0, size as usize).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

/// One entry with a name exactly as given, which no honest writer would produce.
fn raw(builder: &mut Builder<Vec<u8>>, kind: EntryType, name: &[u8], target: &str, body: &[u8]) {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    if !target.is_empty() {
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    }
    header.set_entry_type(kind);
    header.set_mode(0o640);
    header.set_mtime(1_600_000_000);
    header.set_size(body.len() as u64);
    header.set_cksum();
    builder.append(&header, body).unwrap();
}

type Line<'a> = (EntryType, &'a str, &'a str, &'a str);

fn tar_of(lines: &[Line<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, target, body) in lines {
        raw(
            &mut builder,
            *kind,
            name.as_bytes(),
            target,
            body.as_bytes(),
        );
    }
    builder.into_inner().unwrap()
}

const FILE: EntryType = EntryType::Regular;
const DIR: EntryType = EntryType::Directory;
const LINK: EntryType = EntryType::Link;
const SYMLINK: EntryType = EntryType::Symlink;

fn honest() -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    raw(&mut builder, DIR, b"./", "", b"");
    raw(&mut builder, DIR, b"./d/", "", b"");
    raw(&mut builder, FILE, b"./d/f", "", b"first");
    raw(&mut builder, FILE, b"implied/above/g", "", b"");
    raw(&mut builder, LINK, b"twin", "./d/f", b"");
    raw(&mut builder, SYMLINK, b"out", "/etc/passwd", b"");
    raw(&mut builder, EntryType::Fifo, b"pipe", "", b"");
    raw(&mut builder, EntryType::Char, b"null", "", b"");
    raw(&mut builder, FILE, b"d/f", "", b"second");
    let pairs = [
        ("mtime", &b"12.5"[..]),
        ("SCHILY.xattr.user.k", b"v"),
        ("SCHILY.xattr.security.k", b"no"),
    ];
    builder.append_pax_extensions(pairs).unwrap();
    raw(&mut builder, FILE, b"attributed", "", b"x");
    let long = "long/".repeat(40) + "name";
    let mut header = Header::new_gnu();
    header.set_size(2);
    header.set_mode(0o755);
    builder.append_data(&mut header, &long, &b"ok"[..]).unwrap();
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n >> 3) as u8).collect();
    raw(&mut builder, FILE, b"large", "", &large);
    builder.into_inner().unwrap()
}

#[test]
fn an_honest_archive_comes_in() {
    let mut scene = Scene::new();
    let report = scene.archive(&honest()).unwrap();
    assert_eq!(report.files, 8, "{report:?}");
    let skipped: Vec<_> = report
        .skipped
        .iter()
        .map(|s| (&s.path[..], &s.reason[..]))
        .collect();
    assert_eq!(skipped, [(&b"null"[..], "it is a device")]);
    assert_eq!(scene.text("/w/d/f"), "second", "the last one counts");
    assert_eq!(scene.text("/w/twin"), "first");
    assert_eq!(scene.text("/w/implied/above/g"), "");
    assert_eq!(scene.kind("/w/pipe"), Some(Kind::Fifo));
    let target = b"/etc/passwd".to_vec();
    assert_eq!(scene.kind("/w/out"), Some(Kind::Symlink { target }));
    assert_eq!(scene.text(&format!("/w/{}name", "long/".repeat(40))), "ok");
    let Some(Kind::File { size, .. }) = scene.kind("/w/large") else {
        panic!("a file")
    };
    assert_eq!(size, 3_000_000);
    let entry = scene
        .trees
        .entry(scene.root, &"/w/attributed".parse().unwrap())
        .unwrap()
        .unwrap();
    assert_eq!(
        (entry.meta.mtime.secs, entry.meta.mtime.nanos),
        (12, 500_000_000)
    );
    assert_eq!(entry.meta.xattrs.len(), 1);
    assert_eq!((entry.meta.mode, entry.meta.uid), (0o640, 1000));
}

#[test]
fn compressed_archives_are_the_same() {
    let plain = honest();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::stream::encode_all(&plain[..], 1).unwrap();
    let mut roots = Vec::new();
    for bytes in [&plain, &gzip, &zstd] {
        let mut scene = Scene::new();
        scene.archive(bytes).unwrap();
        // Implied directories are as old as the import.
        roots.push((
            scene.text("/w/d/f"),
            scene.kind("/w/large"),
            scene.kind("/w/d"),
        ));
    }
    assert!(roots.iter().all(|root| *root == roots[0]));
    let mut scene = Scene::new();
    for whole in [&gzip, &zstd] {
        scene.refused(&whole[..whole.len() - 3], "");
    }
}

#[test]
fn what_is_not_honest_is_refused() {
    let mut scene = Scene::new();
    let through = [(SYMLINK, "a", "/tmp", ""), (FILE, "a/evil", "", "x")];
    for (lines, why) in [
        (&[(FILE, "/etc/passwd", "", "x")][..], "absolute"),
        (&[(FILE, "../x", "", "x")], "'.' and '..' are not names"),
        (
            &[(FILE, "a/../../x", "", "x")],
            "'.' and '..' are not names",
        ),
        (
            &[(FILE, "ok", "", "x"), (DIR, "a/..", "", "")],
            "'.' and '..' are not names",
        ),
        (&through, "it goes through /a, which is a symlink"),
        (
            &[(FILE, "a", "", "x"), (FILE, "a/b", "", "x")],
            "it goes through /a, which is a file",
        ),
        (&[(LINK, "a", "/etc/passwd", "")], "outside the archive"),
        (&[(LINK, "a", "../x", "")], "outside the archive"),
        (&[(LINK, "a", "never", "")], "not in the archive"),
        (
            &[(DIR, "d", "", ""), (LINK, "a", "d", "")],
            "which is a directory",
        ),
        (
            &[(FILE, "d/f", "", ""), (SYMLINK, "d", "/", "")],
            "a directory that has content",
        ),
        (&[(SYMLINK, "s", "", "")], "a symlink to nowhere"),
        (&[(SYMLINK, ".", "/", "")], "it makes the top a symlink"),
    ] {
        scene.refused(&tar_of(lines), why);
    }
    let name = "n".repeat(256);
    let mut builder = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(0);
    builder.append_data(&mut header, &name, &b""[..]).unwrap();
    scene.refused(&builder.into_inner().unwrap(), "longer than 255 bytes");
}

#[test]
fn an_archive_that_is_cut_short_is_refused_wherever_it_is_cut() {
    let whole = tar_of(&[
        (DIR, "d", "", ""),
        (FILE, "d/f", "", &"x".repeat(700)),
        (FILE, "zeros", "", &"\0".repeat(1024)),
    ]);
    let mut scene = Scene::new();
    scene.archive(&whole).unwrap();
    // Behind the first block of the end mark everything is there.
    let end = whole.len() - 1024;
    for length in (0..=end).step_by(64).chain([1, 511, 513, end - 1]) {
        let error = scene.archive(&whole[..length]).expect_err("cut");
        assert!(
            matches!(error, Error::Archive { .. }),
            "at {length}: {error}"
        );
    }
    let mut damaged = whole.clone();
    damaged[0] ^= 1;
    scene.refused(&damaged, "checksum");
    scene.refused(b"this is no archive", "no tar archive");
    scene.refused(&b"root:x:0:0:root:/root\n".repeat(50), "no tar archive");
    scene.refused(b"", "empty");
}

#[test]
fn filters_hold_for_archives_too() {
    let mut scene = Scene::new();
    let bytes = tar_of(&[
        (FILE, "a/node_modules/x/y", "", "y"),
        (FILE, "a/node_modules/z", "", "z"),
        (FILE, "a/b.o", "", "o"),
        (LINK, "a/link", "a/b.o", ""),
        (FILE, "a/b.c", "", "c"),
    ]);
    let filter = ImportFilter {
        exclude: vec!["node_modules".into(), "*.o".into()],
        ..ImportFilter::default()
    };
    let report = scene
        .import(
            From::Archive(&bytes),
            &filter,
            &ImportCache::empty(),
            &Unwatched,
        )
        .unwrap();
    let told: Vec<String> = report
        .skipped
        .iter()
        .map(|s| format!("{}: {}", String::from_utf8_lossy(&s.path), s.reason))
        .collect();
    assert_eq!(
        told,
        [
            "a/b.o: excluded by *.o",
            "a/link: it is a hard link to a/b.o, which is excluded by *.o",
            "a/node_modules: excluded by node_modules",
        ]
    );
    assert_eq!(report.files, 1);
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn gitignore_files_hold_where_they_are() {
    let mut scene = Scene::new();
    let host = scene.dir.path().join("host");
    for (name, text) in [
        (".gitignore", "*.log\n/build/\n# a comment\n"),
        (".git/info/exclude", "private\n"),
        ("a.log", ""),
        ("private", ""),
        ("build/out", ""),
        ("sub/build/kept", ""),
        ("sub/.gitignore", "!keep.log\ntmp\n"),
        ("sub/keep.log", ""),
        ("sub/tmp/x", ""),
        ("tmp", ""),
    ] {
        write(&host, name, text);
    }
    let filter = ImportFilter {
        exclude: vec![".git".into()],
        gitignores: Gitignores::Heeded,
        max_depth: None,
    };
    let report = scene
        .import(
            From::Directory(&host),
            &filter,
            &ImportCache::empty(),
            &Unwatched,
        )
        .unwrap();
    let told: Vec<_> = report
        .skipped
        .iter()
        .map(|s| String::from_utf8_lossy(&s.path))
        .collect();
    assert_eq!(told, [".git", "a.log", "build", "private", "sub/tmp"]);
    for other in [From::Archive(b""), From::Revision(&host, "HEAD")] {
        let refused = scene.import(other, &filter, &ImportCache::empty(), &Unwatched);
        assert!(
            matches!(refused, Err(Error::NoGitignores)),
            "{:?}",
            refused.err()
        );
    }
    assert!(report.skipped[1].reason.contains(".gitignore"));
    assert!(scene.kind("/w/sub/keep.log").is_some());
    assert!(scene.kind("/w/sub/build/kept").is_some());
    assert!(scene.kind("/w/tmp").is_some());
}

#[test]
fn what_has_not_changed_is_not_read_again() {
    let mut scene = Scene::new();
    let (host, memory) = (
        scene.dir.path().join("host"),
        scene.dir.path().join("memory"),
    );
    for n in 0..20 {
        write(&host, &format!("d/{n}"), &n.to_string());
    }
    std::thread::sleep(std::time::Duration::from_millis(60));
    let filter = ImportFilter::default();
    let import = |scene: &mut Scene| {
        let cache = ImportCache::load(&memory, &host);
        let report = scene
            .import(From::Directory(&host), &filter, &cache, &Unwatched)
            .unwrap();
        cache.save(&memory, &host).unwrap();
        report.reused
    };
    assert_eq!(import(&mut scene), 0);
    let first = scene.root;
    assert_eq!(import(&mut scene), 20);
    assert_eq!(scene.root, first);
    // The same size, and a time set back: only the ctime tells.
    let path = host.join("d/7");
    let times = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, "X").unwrap();
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(times)
        .unwrap();
    std::fs::set_permissions(host.join("d/8"), PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(import(&mut scene), 18);
    assert_eq!(scene.text("/w/d/7"), "X");
}

#[test]
fn nobody_waiting_means_nothing_done() {
    struct Gone;
    impl Watcher for Gone {
        fn progress(&self, _: Progress) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let mut scene = Scene::new();
    let host = scene.dir.path().join("host");
    for n in 0..3000 {
        write(&host, &n.to_string(), "x");
    }
    let (filter, cache) = (ImportFilter::default(), ImportCache::empty());
    std::thread::sleep(std::time::Duration::from_millis(120));
    let before = scene.root;
    let slow = Slow(&honest()[..]);
    let _ = scene.import(From::Directory(&host), &filter, &cache, &Gone);
    let at: VaultPath = "/w".parse().unwrap();
    let terms = ImportTerms {
        trees: &scene.trees,
        at: &at,
        owner: (0, 0),
        filter: &filter,
        notes: Path::new("/nowhere"),
        cache: &cache,
        admits: &|_, _| Ok(()),
    };
    let importer = Importer::new(terms, &Gone).unwrap();
    let ended = importer.read_archive(&mut { slow }, "it");
    let ended = ended.err();
    assert!(matches!(ended, Some(Error::Cancelled)), "{ended:?}");
    assert_eq!(scene.trees.root(before).unwrap().files(), 0);
}

/// Takes its time.
struct Slow<'a>(&'a [u8]);

impl std::io::Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        std::thread::sleep(std::time::Duration::from_millis(30));
        self.0.read(buffer)
    }
}

fn git(dir: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(words)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_COMMITTER_DATE", "1500000000 +0000")
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_revision_comes_in_and_nothing_of_the_repository_runs() {
    let mut scene = Scene::new();
    let repository = scene.dir.path().join("repository");
    let witness = scene.dir.path().join("ran");
    std::fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "-q"]);
    write(&repository, "a/file", "one");
    write(&repository, "run.sh", "#!/bin/sh\n");
    write(
        &repository,
        ".gitattributes",
        "* filter=evil export-subst\nignored export-ignore\n",
    );
    write(&repository, "ignored", "$Format:%H$");
    std::fs::set_permissions(repository.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("a/file", repository.join("link")).unwrap();
    git(&repository, &["add", "."]);
    git(
        &repository,
        &[
            "update-index",
            "--add",
            "--cacheinfo",
            "160000",
            &"1".repeat(40),
            "module",
        ],
    );
    git(&repository, &["commit", "-q", "-m", "one"]);
    write(&repository, "a/file", "two");
    git(&repository, &["commit", "-q", "-a", "-m", "two"]);
    let evil = format!("sh -c 'touch {}; cat'", witness.display());
    for key in [
        "filter.evil.smudge",
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "gpg.program",
    ] {
        git(&repository, &["config", key, &evil]);
    }
    git(&repository, &["config", "log.showSignature", "true"]);

    let (filter, cache) = (ImportFilter::default(), ImportCache::empty());
    let import = |scene: &mut Scene, dir: &Path, revision: &str| {
        scene.import(From::Revision(dir, revision), &filter, &cache, &Unwatched)
    };
    let report = import(&mut scene, &repository, "HEAD~1").unwrap();
    assert_eq!((report.files, report.directories), (5, 1));
    assert_eq!(scene.text("/w/a/file"), "one");
    assert_eq!(
        scene.text("/w/ignored"),
        "$Format:%H$",
        "as it was committed"
    );
    let told: Vec<_> = report.skipped.iter().map(|s| &s.path[..]).collect();
    assert_eq!(told, [b"module"]);
    let target = b"a/file".to_vec();
    assert_eq!(scene.kind("/w/link"), Some(Kind::Symlink { target }));
    let run = scene
        .trees
        .entry(scene.root, &"/w/run.sh".parse().unwrap())
        .unwrap()
        .unwrap();
    assert_eq!((run.meta.mode, run.meta.mtime.secs), (0o755, 1_500_000_000));
    import(&mut scene, &repository, "main").unwrap();
    assert_eq!(scene.text("/w/a/file"), "two");

    let mut inside = Scene::new();
    import(&mut inside, &repository.join("a"), "HEAD").unwrap();
    assert_eq!(inside.text("/w/file"), "two");
    for bad in ["no-such", "--help", "HEAD:a/file", ""] {
        let error = import(&mut inside, &repository, bad).unwrap_err();
        assert!(matches!(error, Error::Revision { .. }), "{bad}: {error}");
    }
    let error = import(&mut inside, scene.dir.path(), "HEAD").unwrap_err();
    assert!(
        error.to_string().contains("not a git repository"),
        "{error}"
    );
    assert!(
        !witness.exists(),
        "the repository's configuration was executed"
    );
}
