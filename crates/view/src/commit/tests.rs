//! Uppers made by hand, in the format of overlayfs, and their commits.

use super::cache::RACY;
use super::*;
use crate::scan::MarkNames;
use crate::scanner::in_a_thread;
use avfs_store::Store;
use avfs_vault::{Entry, Kind, Meta};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// The staging directory of these uppers.
pub const STAGING: Staging<'static> = Staging {
    hidden: b"proc",
    name: b"token",
    exchange_ends: [b"first", b"second"],
    exchange_copies: [b"to-first", b"to-second"],
    used: StagingUse::Abandoned,
};

pub struct Scene {
    _directory: tempfile::TempDir,
    pub upper: PathBuf,
    pub trees: Trees,
    pub base: RootId,
    pub last_commit: RootId,
    pub scanner: Scanner,
    pub cache: HashCache,
}

impl Scene {
    /// A base with `/a/f`, `/a/g` (both "one"), `/a/sub/h` and an empty upper like its top.
    pub fn new() -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let upper = directory.path().join("upper");
        std::fs::create_dir(&upper).unwrap();
        let trees = Trees::new(Store::open(&directory.path().join("home")).unwrap());
        let mut edit = trees.edit(trees.empty_root().unwrap()).unwrap();
        let (content, size) = trees.write_content(&mut b"one".as_slice()).unwrap();
        let time = Time {
            secs: 1_000,
            nanos: 0,
        };
        for path in ["/a", "/a/sub"] {
            edit.put(&path.parse().unwrap(), Entry::directory(0o755, time))
                .unwrap();
        }
        for path in ["/a/f", "/a/g", "/a/sub/h"] {
            let entry = Entry::file(content, size, Meta::new(0o644, time));
            edit.put(&path.parse().unwrap(), entry).unwrap();
        }
        let base = edit.finish().unwrap();
        let scanner = in_a_thread(MarkNames::User).unwrap();
        let cache = HashCache::default();
        Scene {
            _directory: directory,
            upper,
            trees,
            base,
            last_commit: base,
            scanner,
            cache,
        }
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.upper.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn mark(&self, path: &str, name: &str, value: &str) {
        let path = self.upper.join(path);
        std::fs::create_dir_all(&path).unwrap();
        let name = format!("user.overlay.{name}");
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&path, name, value.as_bytes(), flags).unwrap();
    }

    pub fn commit(&mut self, writers: Writers) -> Committed {
        self.commit_with(writers, OwnWork::Staging(STAGING))
            .unwrap()
    }

    pub fn commit_with(
        &mut self,
        writers: Writers,
        own_work: OwnWork<'_>,
    ) -> crate::Result<Committed> {
        self.commit_within(writers, own_work, Allowance::default(), &Bounds::USUAL)
    }

    pub fn commit_within(
        &mut self,
        writers: Writers,
        own_work: OwnWork<'_>,
        allowance: Allowance,
        bounds: &Bounds,
    ) -> crate::Result<Committed> {
        let skeleton = BTreeSet::from(["/usr".parse().unwrap(), "/var/tmp".parse().unwrap()]);
        let input = CommitInput {
            trees: &self.trees,
            base: self.base,
            last_commit: self.last_commit,
            skeleton: &skeleton,
            own_work,
            owner: Owner {
                uid: 1000,
                gid: 1000,
            },
            writers,
            allowance,
            spool: self._directory.path(),
            stopped: &|| false,
        };
        let upper = std::fs::File::open(&self.upper).unwrap();
        let cache = &mut self.cache;
        super::commit_within(&input, &self.scanner, upper.as_fd(), cache, bounds)
    }

    /// Path and content of every file of a root.
    pub fn files(&self, root: RootId) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut pending = vec![VaultPath::root()];
        while let Some(path) = pending.pop() {
            let entry = self.trees.entry(root, &path).unwrap().unwrap();
            match entry.kind {
                Kind::Directory { tree, .. } => {
                    let names = self.trees.list(tree).unwrap().into_iter();
                    pending.extend(names.map(|(name, _)| path.join(&name).unwrap()));
                }
                Kind::File { content, size, .. } => {
                    let bytes = self.trees.read(content, 0, size as usize).unwrap();
                    found.push((path.to_string(), String::from_utf8(bytes).unwrap()));
                }
                _ => found.push((path.to_string(), "special".into())),
            }
        }
        found.sort();
        found
    }
}

pub fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn what_the_upper_says_wins_and_the_rest_shows_through() {
    let mut scene = Scene::new();
    scene.write("a/f", "two");
    scene.write("new/x", "three");
    let committed = scene.commit(Writers::None);
    let expected = [
        ("/a/f", "two"),
        ("/a/g", "one"),
        ("/a/sub/h", "one"),
        ("/new/x", "three"),
    ];
    assert_eq!(scene.files(committed.root), pairs(&expected));
    let new = scene
        .trees
        .entry(committed.root, &"/new/x".parse().unwrap())
        .unwrap()
        .unwrap();
    assert_eq!(
        (new.meta.uid, new.meta.gid),
        (1000, 1000),
        "new names get the default owner"
    );
}

#[test]
fn an_opaque_directory_hides_what_was_below() {
    let mut scene = Scene::new();
    scene.mark("a", "opaque", "y");
    scene.write("a/only", "x");
    let committed = scene.commit(Writers::None);
    assert_eq!(scene.files(committed.root), pairs(&[("/a/only", "x")]));
}

#[test]
fn a_redirected_directory_brings_its_origin_along() {
    let mut scene = Scene::new();
    // Moved to another parent: the redirect is a path from the top.
    scene.mark("moved", "redirect", "/a");
    // Moved within a moved directory: the redirect is a name in its original directory.
    scene.mark("moved/renamed", "redirect", "sub");
    scene.write("moved/f", "changed");
    let committed = scene.commit(Writers::None);
    let expected = [
        ("/a/f", "one"),
        ("/a/g", "one"),
        ("/a/sub/h", "one"),
        ("/moved/f", "changed"),
        ("/moved/g", "one"),
        ("/moved/renamed/h", "one"),
        // Without a whiteout, which only the kernel can make here, the old name stays.
        ("/moved/sub/h", "one"),
    ];
    assert_eq!(scene.files(committed.root), pairs(&expected));
}

#[test]
fn a_redirect_to_nowhere_is_an_error() {
    let mut scene = Scene::new();
    scene.mark("moved", "redirect", "/nowhere");
    let refused = scene.commit_with(Writers::None, OwnWork::None);
    assert!(matches!(refused, Err(Error::LostRedirect { .. })));
}

#[test]
fn a_mount_point_that_was_renamed_is_an_empty_directory() {
    let mut scene = Scene::new();
    scene.mark("w", "redirect", "/var");
    scene.write("w/x", "new");
    scene.write("var/tmp/x", "where nothing is mounted any more");
    let committed = scene.commit(Writers::None);
    let files = scene.files(committed.root);
    let new = [
        ("/var/tmp/x", "where nothing is mounted any more"),
        ("/w/x", "new"),
    ];
    for (path, text) in new {
        assert!(files.contains(&(path.into(), text.into())), "{files:?}");
    }
}

#[test]
fn all_names_are_content_but_those_that_nobody_can_choose() {
    let names = [
        "usr/x",
        "var/tmp/x",
        "proc/x",
        "proc/tokens/x",
        "token",
        "a/token/x",
        ".avfs-moving-1/first",
        ".avfs-writing",
        "a/.moved-1/x",
    ];
    for own_work in [OwnWork::None, OwnWork::Staging(STAGING)] {
        let mut scene = Scene::new();
        for name in names {
            scene.write(name, name);
        }
        scene.write("proc/token/1/f", "half a copy");
        let committed = scene.commit_with(Writers::None, own_work).unwrap();
        let files = scene.files(committed.root);
        // Content, if there is no staging directory.
        let is_staged = matches!(own_work, OwnWork::Staging(_));
        let expected = names.len() + 3 + usize::from(!is_staged);
        assert_eq!(files.len(), expected, "{files:?}");
        for name in names {
            let stored = (format!("/{name}"), name.to_owned());
            assert!(files.contains(&stored), "{name} is not in {files:?}");
        }
    }
    let mut scene = Scene::new();
    scene.write("a/token-1/f", "not finished");
    scene.write("a/tok", "content");
    let own_work = OwnWork::Names(b"token-");
    let committed = scene.commit_with(Writers::None, own_work).unwrap();
    let files = scene.files(committed.root);
    assert_eq!(files.len(), 4, "{files:?}");
    assert!(files.contains(&("/a/tok".into(), "content".into())));
}

#[test]
fn what_trees_do_not_hold_is_left_out() {
    let mut scene = Scene::new();
    let socket = std::os::unix::net::UnixListener::bind(scene.upper.join("s")).unwrap();
    let committed = scene.commit(Writers::None);
    drop(socket);
    let skipped = Skipped {
        path: b"/s".to_vec(),
        reason: "sockets are not stored",
    };
    assert_eq!(committed.skipped, [skipped]);
}

#[test]
fn names_of_one_file_share_a_link_and_others_do_not() {
    let mut scene = Scene::new();
    scene.write("x", "linked");
    std::fs::hard_link(scene.upper.join("x"), scene.upper.join("y")).unwrap();
    scene.write("z", "linked");
    let committed = scene.commit(Writers::None);
    let link = |path: &str| {
        let entry = scene
            .trees
            .entry(committed.root, &path.parse().unwrap())
            .unwrap();
        entry.unwrap().link()
    };
    assert!(link("/x").is_some());
    assert_eq!(link("/x"), link("/y"));
    assert_eq!(link("/z"), None);
    let root = scene.trees.root(committed.root).unwrap();
    assert_eq!(root.link_count(link("/x").unwrap()), 2);
}

/// The commit after it knows the first two names from the one before, with older times.
#[test]
fn a_name_that_a_later_commit_adds_is_the_same_file() {
    let mut scene = Scene::new();
    let at = |scene: &Scene, name: &str| scene.upper.join(name);
    scene.write("x", "linked");
    std::fs::hard_link(at(&scene, "x"), at(&scene, "y")).unwrap();
    scene.last_commit = scene.commit(Writers::None).root;
    std::fs::hard_link(at(&scene, "x"), at(&scene, "z")).unwrap();
    let warm = scene.commit(Writers::None).root;
    scene.cache = HashCache::default();
    let cold = scene.commit(Writers::None).root;
    assert_eq!(warm, cold);
    let entry = |path: &str| scene.trees.entry(warm, &path.parse().unwrap()).unwrap();
    let link = entry("/z").unwrap().link().expect("a link");
    assert_eq!(scene.trees.root(warm).unwrap().link_count(link), 3);
    assert_eq!(entry("/x"), entry("/z"));
}

#[test]
fn committing_again_gives_the_same_root_and_hashes_only_what_changed() {
    let mut scene = Scene::new();
    for number in 0..50 {
        scene.write(&format!("many/{number}"), &number.to_string());
    }
    std::thread::sleep(RACY * 2);
    let first = scene.commit(Writers::None);
    assert_eq!(scene.cache.trusted(), 50, "all are settled");
    assert_eq!(scene.commit(Writers::None).root, first.root);
    scene.write("many/7", "seven");
    let second = scene.commit(Writers::None);
    assert_eq!(scene.cache.trusted(), 49, "one is too fresh to be trusted");
    let files = scene.files(second.root);
    assert!(files.contains(&("/many/7".into(), "seven".into())));
    // While a process writes, nothing is trusted by the next commit.
    scene.commit(Writers::Some);
    assert_eq!(scene.cache.trusted(), 0);
}

#[test]
fn a_file_that_cannot_be_told_from_the_bases_stays_the_bases() {
    let mut scene = Scene::new();
    scene.write("a/f", "one");
    let file = std::fs::File::options()
        .write(true)
        .open(scene.upper.join("a/f"))
        .unwrap();
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_000);
    file.set_modified(time).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
        .unwrap();
    let committed = scene.commit(Writers::None);
    let path = "/a/f".parse().unwrap();
    let before = scene.trees.entry(scene.base, &path).unwrap();
    assert_eq!(scene.trees.entry(committed.root, &path).unwrap(), before);
}
