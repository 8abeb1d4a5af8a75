//! Archives, directories and revisions, each imported through filters, with a cache, and by somebody who may be gone.

mod archives;

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use avfs_store::Store;
use avfs_vault::{Kind, RootId, Trees, VaultPath};

use archives::honest;

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
            git: GitEnvironment {
                path: OsStr::new("/usr/local/bin:/usr/bin:/bin"),
                user_home: Some(self.dir.path()),
            },
            admits: &|_, _| Ok(()),
        };
        let importer = Importer::new(terms, watcher)?;
        let incoming = match from {
            From::Archive(mut bytes) => importer.read_archive(&mut bytes, "it")?,
            From::Directory(dir) => importer.read_directory(dir)?,
            From::Revision(dir, revision) => importer.read_revision(dir, revision)?,
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
        git: GitEnvironment {
            path: OsStr::new(""),
            user_home: None,
        },
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
