//! An incremental commit gives the root of a whole one; also with names that are being exchanged.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::cache::RACY;
use super::tests::{STAGING, Scene, pairs};
use super::{Change, OwnWork, Staging, StagingUse, Writers};

/// A random generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn path(&mut self) -> &'static str {
        const PATHS: [&str; 16] = [
            "a",
            "a/f",
            "a/g",
            "a/sub",
            "a/sub/h",
            "a/sub/new",
            "a/x",
            "n",
            "n/f",
            "n/m",
            "n/m/f",
            "n/m/g",
            "usr/u",
            "x",
            "y",
            "proc/token/1",
        ];
        PATHS[self.roll(PATHS.len())]
    }
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
}

/// Changes an upper at random, as a command in an overlay could; impossible steps are skipped.
fn disturb(scene: &Scene, dice: &mut Dice) {
    let path = dice.path();
    let (at, other) = (scene.upper.join(path), scene.upper.join(dice.path()));
    let text = dice.roll(1000).to_string();
    let parent = at.parent().expect("it has one");
    if !parent.is_dir() {
        remove(parent);
        if fs::create_dir_all(parent).is_err() {
            return;
        }
    }
    match dice.roll(11) {
        0..=2 => drop(fs::write(&at, text)),
        3 => remove(&at),
        4 => drop(fs::create_dir(&at)),
        5 => {
            remove(&at);
            let mode = Mode::empty();
            // The device 0:0 is a whiteout.
            let _ = mknodat(CWD, &at, FileType::CharacterDevice, mode, 0);
        }
        6 if at.is_dir() => scene.mark(path, "opaque", "y"),
        7 => drop(fs::rename(&at, &other)),
        8 => drop(fs::hard_link(&at, &other)),
        9 => {
            let mode = fs::Permissions::from_mode(0o700 + dice.roll(64) as u32);
            let _ = fs::set_permissions(&at, mode);
        }
        10 => drop(UnixListener::bind(&at)),
        _ => drop(symlink(text, &at)),
    }
}

#[test]
fn knowing_the_commit_before_changes_nothing() {
    let (mut scene, mut dice) = (Scene::new(), Dice(88_172_645_463_325_252));
    for number in 0..60 {
        scene.write(&format!("many/{number}"), &number.to_string());
    }
    let mut kept = 0;
    for step in 0..200 {
        disturb(&scene, &mut dice);
        if dice.roll(3) == 0 {
            std::thread::sleep(RACY + RACY / 4);
        }
        let upper = fs::File::open(&scene.upper).expect("the upper");
        let entries = scene.scanner.scan(upper.as_fd()).expect("a listing");
        let changes = scene.cache.known(&entries).changes(scene.base, &entries);
        let unchanged = |changes: super::Changes<'_>| changes.of.contains(&Change::None);
        kept += u32::from(changes.is_some_and(unchanged));
        let warm = scene.commit(Writers::None);
        let cache = std::mem::take(&mut scene.cache);
        let cold = scene.commit(Writers::None);
        scene.cache = cache;
        let (shown, expected) = (scene.files(warm.root), scene.files(cold.root));
        assert_eq!(shown, expected, "step {step}");
        assert_eq!(warm.root, cold.root, "step {step}");
        let sorted = |mut skipped: Vec<super::Skipped>| {
            skipped.sort_by(|one, other| one.path.cmp(&other.path));
            skipped
        };
        assert_eq!(sorted(warm.skipped), sorted(cold.skipped), "step {step}");
        scene.last_commit = warm.root;
    }
    assert!(kept > 150, "{kept} commits used what they knew");
}

#[test]
fn what_only_its_time_of_change_tells_from_the_commit_before_stays() {
    let mut scene = Scene::new();
    for path in ["a/f", "a/new", "d/sub/deep", "moved/x"] {
        scene.write(path, path);
    }
    scene.mark("moved", "redirect", "/a/sub");
    scene.mark("d/sub", "opaque", "y");
    let before = scene.commit(Writers::None).root;
    std::thread::sleep(RACY);
    for path in ["a", "a/f", "a/new", "d", "d/sub", "d/sub/deep", "moved"] {
        let path = scene.upper.join(path);
        let mode = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(&path, mode).unwrap();
    }
    let cold = |scene: &mut Scene| {
        scene.cache = super::HashCache::default();
        scene.commit(Writers::None).root
    };
    assert_ne!(cold(&mut scene), before, "times of change are kept");
    scene.last_commit = before;
    assert_eq!(cold(&mut scene), before);
    scene.write("a/new", "other");
    assert_ne!(cold(&mut scene), before);
}

#[test]
fn what_the_commit_before_had_keeps_its_owner() {
    let mut scene = Scene::new();
    scene.write("d/f", "as a verb wrote it");
    let plain = scene.commit(Writers::None).root;
    let mut edit = scene.trees.edit(plain).unwrap();
    for path in ["/d", "/d/f"] {
        let path = path.parse().unwrap();
        let mut meta = edit.get(&path).unwrap().unwrap().meta;
        (meta.uid, meta.gid) = (33, 34);
        edit.set_meta(&path, meta).unwrap();
    }
    scene.last_commit = edit.finish().unwrap();
    scene.cache = super::HashCache::default();
    assert_eq!(scene.commit(Writers::None).root, scene.last_commit);
    scene.write("d/f", "changed");
    scene.write("d/new", "new");
    let root = scene.commit(Writers::None).root;
    for (path, owner) in [("/d", 33), ("/d/f", 33), ("/d/new", 1000)] {
        let entry = scene.trees.entry(root, &path.parse().unwrap());
        assert_eq!(entry.unwrap().unwrap().meta.uid, owner, "{path}");
    }
}

#[test]
fn only_what_changed_is_looked_at_again() {
    let mut scene = Scene::new();
    for number in 0..50 {
        scene.write(&format!("many/{number}"), &number.to_string());
    }
    std::thread::sleep(RACY * 2);
    scene.commit(Writers::None);
    scene.write("many/7", "seven");
    fs::remove_file(scene.upper.join("many/8")).unwrap();
    let upper = fs::File::open(&scene.upper).unwrap();
    let entries = scene.scanner.scan(upper.as_fd()).unwrap();
    let known = scene.cache.known(&entries);
    let changes = known.changes(scene.base, &entries).unwrap();
    let mut tops: Vec<&[u8]> = changes.tops().collect();
    tops.sort();
    assert_eq!(tops, [&b"many/7"[..], b"many/8"]);
    let of = |change| changes.of.iter().filter(|of| **of == change).count();
    assert_eq!((of(Change::New), of(Change::Meta)), (1, 1));
}

/// A scene in which `/a` and `/n` are being exchanged, with copies of both.
fn exchange() -> Scene {
    let scene = Scene::new();
    scene.write("n/new", "new");
    let at = "proc/token/1";
    scene.write(&format!("{at}/to-first/new"), "new");
    for (path, text) in [("f", "one"), ("g", "one"), ("sub/h", "changed")] {
        scene.write(&format!("{at}/to-second/{path}"), text);
    }
    scene
}

fn decide(scene: &Scene, first: &str, second: &str) {
    let at = scene.upper.join("proc/token/1");
    symlink(second, at.join("second")).unwrap();
    symlink(first, at.join("first")).unwrap();
}

const OLD: [(&str, &str); 4] = [
    ("/a/f", "one"),
    ("/a/g", "one"),
    ("/a/sub/h", "one"),
    ("/n/new", "new"),
];
const NEW: [(&str, &str); 4] = [
    ("/a/new", "new"),
    ("/n/f", "one"),
    ("/n/g", "one"),
    ("/n/sub/h", "changed"),
];

#[test]
fn an_exchange_has_happened_once_it_is_decided() {
    let mut scene = exchange();
    let files = |scene: &mut Scene| {
        let root = scene.commit(Writers::None).root;
        scene.files(root)
    };
    assert_eq!(files(&mut scene), pairs(&OLD));
    symlink("/n", scene.upper.join("proc/token/1/second")).unwrap();
    assert_eq!(files(&mut scene), pairs(&OLD), "one link decides nothing");
    symlink("/a", scene.upper.join("proc/token/1/first")).unwrap();
    assert_eq!(files(&mut scene), pairs(&NEW));
    // Half of the old content is removed, and a new file was added too late.
    scene.mark("a", "opaque", "y");
    scene.write("a/g", "one");
    assert_eq!(files(&mut scene), pairs(&NEW));
    fs::remove_dir_all(scene.upper.join("a")).unwrap();
    let copy = scene.upper.join("proc/token/1/to-first");
    fs::rename(copy, scene.upper.join("a")).unwrap();
    scene.mark("a", "opaque", "y");
    assert_eq!(files(&mut scene), pairs(&NEW), "the first has arrived");
    fs::remove_dir_all(scene.upper.join("n")).unwrap();
    let copy = scene.upper.join("proc/token/1/to-second");
    fs::rename(copy, scene.upper.join("n")).unwrap();
    assert_eq!(files(&mut scene), pairs(&NEW), "and so has the second");
    fs::remove_dir_all(scene.upper.join("proc/token/1")).unwrap();
    assert_eq!(files(&mut scene), pairs(&NEW));
}

#[test]
fn a_commit_beside_a_living_sandbox_shows_what_its_commands_see() {
    let mut scene = exchange();
    decide(&scene, "/a", "/n");
    let own_work = OwnWork::Staging(Staging {
        used: StagingUse::InUse,
        ..STAGING
    });
    let committed = scene.commit_with(Writers::Some, own_work).unwrap();
    assert_eq!(scene.files(committed.root), pairs(&OLD));
}

#[test]
fn records_that_commands_could_forge_mean_nothing() {
    let mut scene = Scene::new();
    let forged = [".avfs-moving-1", "token/1", "a/proc/token/1", "proc/1"];
    for at in forged {
        scene.write(&format!("{at}/to-first"), "other bytes");
        for (name, goal) in [("first", "/a/f"), ("second", "/a/g")] {
            symlink(goal, scene.upper.join(at).join(name)).unwrap();
        }
    }
    let root = scene.commit(Writers::None).root;
    let files = scene.files(root);
    assert!(files.contains(&("/a/f".into(), "one".into())), "{files:?}");
    assert_eq!(files.len(), 3 + 3 * forged.len(), "{files:?}");
}

#[test]
fn links_that_say_nothing_sensible_do_no_harm() {
    for (first, second) in [("/", "/a"), ("a", "/n"), ("/a/f/none", "/nowhere/at/all")] {
        let mut scene = exchange();
        decide(&scene, first, second);
        let root = scene.commit(Writers::None).root;
        assert_eq!(scene.files(root), pairs(&OLD), "{first} {second}");
    }
    let mut scene = exchange();
    decide(&scene, "/a/f", "/usr/x");
    let root = scene.commit(Writers::None).root;
    let shown = scene.files(root);
    assert!(shown.contains(&("/a/f/new".into(), "new".into())));
    assert!(!shown.iter().any(|(path, _)| path.starts_with("/usr")));
}
