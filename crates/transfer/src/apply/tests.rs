//! What changed in the tree arrives, what changed on the host is not touched, and what is
//! interrupted never happened.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use avfs_store::Store;
use avfs_testkit::{SOON, Scan, scan, wait_for};
use avfs_vault::{Edit, Entry, Kind, Meta, RootId, Time, Trees, VaultPath};

use super::plan::Plan;
use super::record::{Kept, Step};
use super::{ApplyAction, ApplyReport, finish_interrupted};
use crate::host_tree::HostTree;
use crate::progress::Tally;
use crate::{
    Error, GitEnvironment, ImportCache, ImportFilter, ImportTerms, Importer, Result, Skipped,
    Unwatched,
};

struct Scene {
    dir: tempfile::TempDir,
    trees: Trees,
    base: RootId,
    head: RootId,
}

fn path(text: &str) -> VaultPath {
    text.parse().unwrap()
}

impl Scene {
    /// Finishes what was interrupted, until nothing is left of it. A child that another test is just starting has a copy of
    /// the locks of this process until it becomes another program; a daemon that starts has no such children.
    fn settle(&self) {
        let is_settled = || {
            finish_interrupted(&self.records());
            fs::read_dir(self.records()).unwrap().count() == 0
        };
        assert!(wait_for(SOON, is_settled));
    }

    /// A directory with one of everything, imported at /w.
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let trees = Trees::new(Store::open(&dir.path().join("home")).unwrap());
        let empty = trees.empty_root().unwrap();
        let mut scene = Scene {
            dir,
            trees,
            base: empty,
            head: empty,
        };
        fs::create_dir(scene.host()).unwrap();
        for name in [
            "same",
            "edited",
            "gone",
            "d/x",
            "d/y",
            "d/e/z",
            "was-dir/x",
            "was-file",
        ] {
            scene.write(name, name);
        }
        symlink("same", scene.at("link")).unwrap();
        scene.base = scene.import();
        scene.head = scene.base;
        scene
    }

    fn host(&self) -> PathBuf {
        self.dir.path().join("host")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.host().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), text).unwrap();
    }

    fn import(&self) -> RootId {
        let terms = ImportTerms {
            trees: &self.trees,
            at: &path("/w"),
            owner: (1000, 1000),
            filter: &ImportFilter::default(),
            notes: &self.records(),
            cache: &ImportCache::empty(),
            git: GitEnvironment {
                path: OsStr::new("/usr/local/bin:/usr/bin:/bin"),
                user_home: None,
            },
            admits: &|_, _| Ok(()),
        };
        let importer = Importer::new(terms, &Unwatched).unwrap();
        let mut edit = self.trees.edit(self.base).unwrap();
        let incoming = importer.read_directory(&self.host()).unwrap();
        importer.put(&mut edit, incoming).unwrap();
        edit.finish().unwrap()
    }

    fn edit(&mut self, change: impl FnOnce(&Trees, &mut Edit)) {
        let mut edit = self.trees.edit(self.head).unwrap();
        change(&self.trees, &mut edit);
        self.head = edit.finish().unwrap();
    }

    fn put(&mut self, name: &str, text: &str, mode: u32) {
        self.edit(|trees, edit| {
            let (content, size) = trees.write_bytes(text.as_bytes()).unwrap();
            let entry = Entry::file(content, size, Meta::new(mode, Time::now()));
            edit.put(&path(&format!("/w/{name}")), entry).unwrap();
        });
    }

    fn mkdir(&mut self, name: &str, mode: u32) {
        let at = path(&format!("/w/{name}"));
        self.edit(|_, edit| edit.put(&at, Entry::directory(mode, Time::now())).unwrap());
    }

    fn remove(&mut self, name: &str) {
        self.edit(|_, edit| edit.remove(&path(&format!("/w/{name}"))).unwrap());
    }

    fn plan(&self) -> Result<(Plan, HostTree)> {
        let host = HostTree::open(&self.host())?;
        let tally = Tally::new(&Unwatched, (None, None));
        let roots = (self.base, self.head);
        let plan = Plan::make(&self.trees, roots, &path("/w"), &host, &tally)?;
        Ok((plan, host))
    }

    fn apply(&mut self) -> Result<(ApplyReport, Vec<Skipped>)> {
        let (plan, host) = self.plan()?;
        let report = plan.report(path("/w"), self.host());
        let tally = Tally::new(&Unwatched, (None, None));
        let skipped = plan.apply(&self.trees, &host, &self.records(), tally)?;
        self.base = self.head;
        Ok((report, skipped))
    }

    fn records(&self) -> PathBuf {
        self.dir.path().join("home/exports")
    }

    /// What the host has, to be compared with later.
    fn seen(&self) -> Scan {
        scan(&self.host())
    }

    /// Everything a vault can do to a directory.
    fn change_everything(&mut self) {
        self.put("edited", "new text", 0o600);
        self.put("new", "new", 0o4755);
        self.mkdir("fresh", 0o555);
        self.put("fresh/a", "a", 0o644);
        self.remove("gone");
        self.remove("d");
        self.remove("was-dir");
        self.put("was-dir", "now a file", 0o644);
        self.remove("was-file");
        self.mkdir("was-file", 0o755);
        self.put("was-file/inside", "inside", 0o644);
        self.put("same", "same", 0o755);
        self.edit(|_, edit| {
            let entry = Entry::symlink(b"new", Time::now());
            edit.put(&path("/w/link"), entry).unwrap();
        });
    }
}

fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::HostChanged { .. })
}

/// Kept in a directory that must not be written into, lest removal fails.
fn open_up(scene: &Scene) {
    let _ = fs::set_permissions(scene.at("fresh"), PermissionsExt::from_mode(0o755));
}

#[test]
fn everything_that_changed_arrives() {
    let mut scene = Scene::new();
    scene.write("host-only", "stays");
    scene.change_everything();
    let inode = scene.at("edited").metadata().unwrap().ino();
    let (report, skipped) = scene.apply().unwrap();
    assert_eq!(skipped, []);
    assert_eq!(
        (report.files, report.deleted, report.directories),
        (6, 6, 2)
    );
    let action = |name: &str| {
        let found = report
            .changes
            .iter()
            .find(|(path, _)| path == name.as_bytes());
        found.map(|(_, action)| *action)
    };
    assert_eq!(action("edited"), Some(ApplyAction::Replaced));
    assert_eq!(action("new"), Some(ApplyAction::Created));
    assert_eq!(action("gone"), Some(ApplyAction::Deleted));
    assert_eq!(action("same"), Some(ApplyAction::Mode));

    // A second import sees exactly what the vault has, and what is the host's own.
    fs::remove_file(scene.at("host-only")).unwrap();
    let again = scene.trees.empty_root().unwrap();
    scene.base = again;
    let imported = scene.import();
    let differs: Vec<_> = scene
        .trees
        .diff(scene.head, imported)
        .unwrap()
        .into_iter()
        .filter(|change| !matches!(change.kind, avfs_vault::ChangeKind::Times))
        .map(|change| (change.path.to_string(), change.kind))
        .collect();
    // setuid does not leave the vault, and the test's entries belong to root.
    assert!(
        differs
            .iter()
            .all(|(_, kind)| *kind == avfs_vault::ChangeKind::Mode),
        "{differs:?}"
    );
    assert_eq!(scene.at("new").metadata().unwrap().mode() & 0o7777, 0o755);
    assert_eq!(scene.at("fresh").metadata().unwrap().mode() & 0o7777, 0o555);
    assert_ne!(scene.at("edited").metadata().unwrap().ino(), inode);
    assert_eq!(fs::read_dir(scene.records()).unwrap().count(), 0);
    open_up(&scene);
}

#[test]
fn what_changed_on_the_host_refuses_everything() {
    type Spoil = fn(&Scene);
    let spoils: [(Spoil, &str); 8] = [
        (
            |s| s.write("edited", "by hand"),
            "edited (it changed there)",
        ),
        (|s| s.write("edited", "edite?"), "edited (it changed there)"),
        (
            |s| s.write("gone", "not so fast"),
            "gone (it changed there)",
        ),
        (|s| s.write("new", "mine"), "new (it is new there too)"),
        (
            |s| fs::remove_file(s.at("edited")).unwrap(),
            "edited (it was removed there)",
        ),
        (
            |s| fs::set_permissions(s.at("edited"), PermissionsExt::from_mode(0o400)).unwrap(),
            "edited (it changed there)",
        ),
        (
            |s| {
                fs::remove_dir_all(s.at("d")).unwrap();
                symlink("/etc", s.at("d")).unwrap();
            },
            "d/x (what it is in is no directory there)",
        ),
        (
            |s| {
                fs::rename(s.at("edited"), s.at("elsewhere")).unwrap();
                symlink("elsewhere", s.at("edited")).unwrap();
            },
            "edited (it changed there)",
        ),
    ];
    for (spoil, told) in spoils {
        let mut scene = Scene::new();
        scene.change_everything();
        spoil(&scene);
        let before = scene.seen();
        let error = scene.apply().unwrap_err();
        assert!(is_conflict(&error), "{error}");
        assert!(
            error.to_string().contains(told),
            "{error} does not say {told}"
        );
        assert_eq!(scene.seen(), before, "{told}");
    }
}

#[test]
fn what_is_there_already_is_left_alone() {
    let mut scene = Scene::new();
    scene.change_everything();
    scene.write("edited", "new text");
    fs::set_permissions(scene.at("edited"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::remove_file(scene.at("gone")).unwrap();
    fs::create_dir(scene.at("fresh")).unwrap();
    let inode = scene.at("edited").metadata().unwrap().ino();
    scene.apply().unwrap();
    assert_eq!(scene.at("edited").metadata().unwrap().ino(), inode);
    let (report, _) = scene.apply().unwrap();
    assert!(
        report.changes.is_empty(),
        "a second time there is nothing to do"
    );
    open_up(&scene);
}

#[test]
fn a_directory_with_more_in_it_stays() {
    let mut scene = Scene::new();
    scene.write("d/e/untracked.o", "o");
    scene.remove("d");
    let (_, skipped) = scene.apply().unwrap();
    let told: Vec<_> = skipped.iter().map(|s| &s.path[..]).collect();
    assert_eq!(told, [&b"d/e"[..], b"d"]);
    assert!(scene.at("d/e/untracked.o").exists() && !scene.at("d/x").exists());

    let mut scene = Scene::new();
    scene.write("was-dir/more", "more");
    scene.change_everything();
    let before = scene.seen();
    assert!(is_conflict(&scene.apply().unwrap_err()));
    assert_eq!(scene.seen(), before);
}

#[test]
fn a_change_between_plan_and_deed_is_noticed() {
    for name in ["edited", "gone", "new", "fresh"] {
        let mut scene = Scene::new();
        scene.change_everything();
        let (plan, host) = scene.plan().unwrap();
        fs::remove_file(scene.at(name)).unwrap_or_default();
        scene.write(name, "in between");
        let before = scene.seen();
        let tally = Tally::new(&Unwatched, (None, None));
        let error = plan
            .apply(&scene.trees, &host, &scene.records(), tally)
            .unwrap_err();
        assert!(is_conflict(&error), "{name}: {error}");
        assert_eq!(scene.seen(), before, "{name}");
        assert_eq!(fs::read_dir(scene.records()).unwrap().count(), 0);
    }
}

#[test]
fn what_a_crash_left_is_put_back_wherever_it_came() {
    let steps = {
        let mut scene = Scene::new();
        scene.change_everything();
        scene.plan().unwrap().0.steps.len()
    };
    for stop in 0..=steps {
        let mut scene = Scene::new();
        scene.change_everything();
        let before = scene.seen();
        let (plan, host) = scene.plan().unwrap();
        plan.apply_until(&scene.trees, &host, &scene.records(), stop);
        let noted = fs::read_dir(scene.records()).unwrap().count();
        assert_eq!(noted, 2, "what is there, and what is to become of it");
        scene.settle();
        assert_eq!(scene.seen(), before, "after {stop} of {steps} steps");
    }
}

#[test]
fn what_was_finished_is_not_undone() {
    let mut scene = Scene::new();
    scene.change_everything();
    let (plan, host) = scene.plan().unwrap();
    let steps = plan.steps.len();
    let kept = plan.apply_until(&scene.trees, &host, &scene.records(), steps);
    kept.done().unwrap();
    scene.settle();
    assert_eq!(fs::read_to_string(scene.at("edited")).unwrap(), "new text");
    let names: Vec<_> = fs::read_dir(scene.host()).unwrap().flatten().collect();
    let aside = names
        .iter()
        .any(|name| name.file_name().to_string_lossy().starts_with(".avfs"));
    assert!(!aside);
    open_up(&scene);
}

#[test]
fn hard_links_go_back_as_such() {
    let mut scene = Scene::new();
    scene.put("one", "both", 0o644);
    scene.edit(|_, edit| {
        let mut entry = edit.get(&path("/w/one")).unwrap().unwrap();
        let id = edit.fresh_link(&path("/w/one"));
        if let Kind::File { link, .. } = &mut entry.kind {
            *link = Some(id);
        }
        edit.put(&path("/w/one"), entry.clone()).unwrap();
        edit.put(&path("/w/two"), entry).unwrap();
    });
    scene.apply().unwrap();
    let inode = |name| scene.at(name).metadata().unwrap().ino();
    assert_eq!(inode("one"), inode("two"));
    let linked = |step: &Step| matches!(step, Step::Create { .. });
    assert!(
        scene
            .plan()
            .unwrap()
            .0
            .steps
            .iter()
            .all(|step| !linked(step))
    );
}

impl Plan {
    /// Dies after some steps, as a daemon would.
    fn apply_until(
        self,
        trees: &Trees,
        host: &HostTree,
        records: &std::path::Path,
        stop: usize,
    ) -> Kept {
        let tally = Tally::new(&Unwatched, (None, None));
        let (kept, work, _) = self.begin(trees, host, records, tally).unwrap();
        for step in &kept.record.steps[..stop] {
            work.take(step).unwrap();
        }
        kept
    }
}
