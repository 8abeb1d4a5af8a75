//! Everything at once, with gc in between: vaults stay what a plain model says they are.
//!
//! `AVFS_CASES=5000 cargo test -p avfs-vault --test care` runs the long form.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{OWNER, noise, read};
use avfs_store::Store;
use avfs_vault::{
    Cause, CheckpointName, Entry, Error, ForkPoint, GcMode, GcOptions, Keep, Kind, Meta,
    NewVersion, Principal, RootId, Time, VaultName, Vaults,
};
use proptest::prelude::*;
use serde_json::json;

type Files = BTreeMap<String, u64>;

/// What a vault must be.
#[derive(Clone, Default)]
struct Model {
    files: Files,
    versions: BTreeMap<u64, Files>,
    checkpoints: BTreeMap<String, Files>,
    newest: u64,
}

impl Model {
    fn advance(&mut self) {
        self.newest += 1;
        self.versions.insert(self.newest, self.files.clone());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Create,
    Write(String, u64),
    Remove(String),
    Checkpoint(u8),
    Restore(u8),
    ForgetCheckpoint(u8),
    Fork(u8),
    Delete,
    Undelete,
    Prune(u64),
    Gc(bool),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<(u8, Step)>> {
    let path = prop_oneof!["/[a-c]", "/d/[a-c]", "/d/e/[ab]"];
    let step = prop_oneof![
        2 => Just(Step::Create),
        12 => (path.clone(), 0..12_u64).prop_map(|(path, seed)| Step::Write(path, seed)),
        3 => path.prop_map(Step::Remove),
        3 => (0..3_u8).prop_map(Step::Checkpoint),
        3 => (0..3_u8).prop_map(Step::Restore),
        1 => (0..3_u8).prop_map(Step::ForgetCheckpoint),
        3 => (0..5_u8).prop_map(Step::Fork),
        1 => Just(Step::Delete),
        1 => Just(Step::Undelete),
        2 => (1..4_u64).prop_map(Step::Prune),
        4 => any::<bool>().prop_map(Step::Gc),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec((0..3_u8, step), 1..60)
}

/// The vaults, and what they should be.
struct World {
    home: tempfile::TempDir,
    vaults: Vaults,
    models: BTreeMap<VaultName, Model>,
    /// Those that were deleted since the last gc without grace, by name, the last one last.
    deleted: BTreeMap<VaultName, Vec<Model>>,
}

/// Of different lengths, one of which is above the size of a chunk.
fn content(seed: u64) -> Vec<u8> {
    let length = if seed == 11 {
        1_200_000
    } else {
        seed as usize * 400
    };
    noise(seed, length)
}

fn vault_name(n: u8) -> VaultName {
    format!("v{n}").parse().unwrap()
}

fn point_name(n: u8) -> CheckpointName {
    format!("c{n}").parse().unwrap()
}

fn version(cause: Cause) -> NewVersion {
    NewVersion {
        by: Principal::OWNER,
        exec: None,
        cause,
        details: json!({}),
    }
}

/// `base` with a file written, directories above it made as needed; or with it removed.
fn edited(vaults: &Vaults, base: RootId, path: &str, seed: Option<u64>) -> RootId {
    let mut edit = vaults.trees().edit(base).unwrap();
    let parts: Vec<&str> = path[1..].split('/').collect();
    for depth in 1..parts.len() {
        let above = format!("/{}", parts[..depth].join("/")).parse().unwrap();
        if edit.get(&above).unwrap().is_none() {
            edit.put(&above, Entry::directory(0o755, Time::EPOCH))
                .unwrap();
        }
    }
    let path = path.parse().unwrap();
    match seed {
        None => edit.remove(&path).unwrap(),
        Some(seed) => {
            let (content, size) = vaults.trees().write_bytes(&content(seed)).unwrap();
            let meta = Meta::new(0o644, Time::EPOCH);
            edit.put(&path, Entry::file(content, size, meta)).unwrap();
        }
    }
    edit.finish().unwrap()
}

/// Every file beneath a root with its bytes, which must be those of the seed that the model has.
fn check_root(vaults: &Vaults, root: RootId, files: &Files) {
    let mut found = 0;
    let mut ahead = vec![(String::new(), vaults.trees().root(root).unwrap().tree())];
    while let Some((path, tree)) = ahead.pop() {
        for (name, entry) in vaults.trees().list(tree).unwrap() {
            let path = format!("{path}/{}", String::from_utf8(name).unwrap());
            match entry.kind {
                Kind::Directory { tree, .. } => ahead.push((path, tree)),
                Kind::File {
                    content: at, size, ..
                } => {
                    let bytes = vaults.trees().read(at, 0, size as usize + 1).unwrap();
                    assert_eq!(bytes, content(files[&path]), "{path}");
                    found += 1;
                }
                _ => panic!("{path} is something else"),
            }
        }
    }
    assert_eq!(found, files.len());
}

impl World {
    fn new() -> World {
        let home = tempfile::tempdir().unwrap();
        let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
        World {
            home,
            vaults,
            models: BTreeMap::new(),
            deleted: BTreeMap::new(),
        }
    }

    fn take(&mut self, vault: u8, step: Step) {
        let name = vault_name(vault);
        match step {
            Step::Gc(at_once) => return self.gc(at_once),
            Step::Reopen => {
                let elsewhere = tempfile::tempdir().unwrap();
                let other = Vaults::open(Store::open(elsewhere.path()).unwrap()).unwrap();
                drop(std::mem::replace(&mut self.vaults, other));
                self.vaults = Vaults::open(Store::open(self.home.path()).unwrap()).unwrap();
                return;
            }
            Step::Create => return self.create(&name),
            Step::Undelete => return self.undelete(&name),
            _ => {}
        }
        if self.models.contains_key(&name) {
            self.change(&name, step);
        } else {
            assert!(matches!(
                self.vaults.get(&name),
                Err(Error::VaultNotFound { .. })
            ));
        }
    }

    fn create(&mut self, name: &VaultName) {
        let created = self.vaults.create(name, OWNER);
        if self.models.contains_key(name) {
            assert!(matches!(created, Err(Error::VaultExists { .. })));
            return;
        }
        created.unwrap();
        let mut model = Model::default();
        model.advance();
        self.models.insert(name.clone(), model);
    }

    fn undelete(&mut self, name: &VaultName) {
        let back = self.vaults.undelete(name, None, OWNER);
        let gone = self.deleted.entry(name.clone()).or_default();
        match (gone.is_empty(), self.models.contains_key(name)) {
            (true, _) => assert!(matches!(back, Err(Error::DeletedVaultNotFound { .. }))),
            (false, true) => assert!(matches!(back, Err(Error::VaultExists { .. }))),
            (false, false) => {
                back.unwrap();
                self.models.insert(name.clone(), gone.pop().unwrap());
            }
        }
    }

    fn change(&mut self, name: &VaultName, step: Step) {
        let vault = self.vaults.get(name).unwrap();
        let model = self.models.get_mut(name).unwrap();
        match step {
            Step::Write(path, seed) => {
                let root = edited(&self.vaults, vault.head, &path, Some(seed));
                let written = version(Cause::Write);
                self.vaults
                    .publish(vault.id, vault.head, root, written)
                    .unwrap();
                if model.files.insert(path, seed) != Some(seed) {
                    model.advance();
                }
            }
            Step::Remove(path) if model.files.remove(&path).is_some() => {
                let root = edited(&self.vaults, vault.head, &path, None);
                let removed = version(Cause::Remove);
                self.vaults
                    .publish(vault.id, vault.head, root, removed)
                    .unwrap();
                model.advance();
            }
            Step::Checkpoint(n) => {
                common_checkpoint(&self.vaults, &vault, n, model);
            }
            Step::Restore(n) => {
                let restored = self
                    .vaults
                    .restore(vault.id, vault.head, &point_name(n), OWNER);
                match model.checkpoints.get(&format!("c{n}")).cloned() {
                    None => assert!(restored.is_err()),
                    Some(files) => {
                        let undo = restored.unwrap().undo.name.to_string();
                        let before = std::mem::replace(&mut model.files, files);
                        model.checkpoints.insert(undo, before);
                        model.advance();
                    }
                }
            }
            Step::ForgetCheckpoint(n) => {
                let gone = self
                    .vaults
                    .delete_checkpoint(vault.id, &point_name(n), OWNER);
                let known = model.checkpoints.remove(&format!("c{n}")).is_some();
                assert_eq!(gone.is_ok(), known);
            }
            Step::Fork(n) => self.fork(name, n),
            Step::Delete => {
                self.vaults.delete(name, OWNER).unwrap();
                let model = self.models.remove(name).unwrap();
                self.deleted.entry(name.clone()).or_default().push(model);
            }
            Step::Prune(keep) => {
                self.vaults
                    .prune(vault.id, Keep::Newest(keep), OWNER)
                    .unwrap();
                while model.versions.len() as u64 > keep {
                    model.versions.pop_first();
                }
                let left = self.vaults.checkpoints(vault.id).unwrap();
                let left: Vec<_> = left.into_iter().map(|it| it.name.to_string()).collect();
                model.checkpoints.retain(|name, _| {
                    assert!(name.starts_with("before") || left.contains(name));
                    left.contains(name)
                });
            }
            _ => {}
        }
    }

    fn fork(&mut self, name: &VaultName, n: u8) {
        let to: VaultName = vault_name(n % 4);
        let model = &self.models[name];
        let (point, files) = match n {
            0..=2 => (ForkPoint::Head, Some(model.files.clone())),
            3 => {
                let point = ForkPoint::Checkpoint(point_name(0));
                (point, model.checkpoints.get("c0").cloned())
            }
            _ => (ForkPoint::Version(2), model.versions.get(&2).cloned()),
        };
        let forked = self.vaults.fork_at(name, &point, &to, OWNER);
        match (files, self.models.contains_key(&to)) {
            (Some(files), false) => {
                forked.unwrap();
                let mut model = Model {
                    files,
                    ..Model::default()
                };
                model.advance();
                self.models.insert(to, model);
            }
            _ => assert!(forked.is_err()),
        }
    }

    fn gc(&mut self, at_once: bool) {
        let grace = if at_once { 0 } else { 1000 };
        let options = GcOptions {
            mode: GcMode::Collect,
            grace: Duration::from_secs(grace),
            roots: Vec::new(),
        };
        self.vaults.gc(&options, OWNER).unwrap();
        if at_once {
            self.deleted.clear();
        }
        self.check();
    }

    fn check(&self) {
        let fsck = self.vaults.fsck();
        assert!(fsck.is_clean(), "{fsck:#?}");
        let names: Vec<_> = self
            .vaults
            .list()
            .unwrap()
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(names, self.models.keys().cloned().collect::<Vec<_>>());
        for (name, model) in &self.models {
            let vault = self.vaults.get(name).unwrap();
            check_root(&self.vaults, vault.head, &model.files);
            let versions = self.vaults.versions(vault.id, usize::MAX).unwrap();
            assert_eq!(versions.len(), model.versions.len());
            for version in versions {
                check_root(&self.vaults, version.root, &model.versions[&version.number]);
            }
            let checkpoints = self.vaults.checkpoints(vault.id).unwrap();
            assert_eq!(checkpoints.len(), model.checkpoints.len());
            for it in checkpoints {
                check_root(&self.vaults, it.root, &model.checkpoints[it.name.as_str()]);
            }
        }
    }
}

fn common_checkpoint(vaults: &Vaults, vault: &avfs_vault::Vault, n: u8, model: &mut Model) {
    let origin = avfs_vault::CheckpointOrigin::Asked;
    let saved = vaults.save_checkpoint(vault.id, Some(&point_name(n)), vault.head, origin, OWNER);
    let key = format!("c{n}");
    assert_eq!(saved.is_ok(), !model.checkpoints.contains_key(&key));
    model
        .checkpoints
        .entry(key)
        .or_insert_with(|| model.files.clone());
}

fn cases() -> u32 {
    let asked = std::env::var("AVFS_CASES").ok();
    asked.map_or(48, |asked| asked.parse().expect("AVFS_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn any_steps_lead_where_the_model_says(steps in steps()) {
        let mut world = World::new();
        for (vault, step) in steps {
            world.take(vault, step);
        }
        world.gc(true);
    }
}

/// A small generator that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        let hash = blake3::hash(&self.0.to_le_bytes());
        self.0 += 1;
        u64::from_le_bytes(*hash.as_bytes().first_chunk().unwrap()) % sides
    }
}

/// One of several writers: its own vault is its own, and all else may vanish under its hands.
fn write_for_long(vaults: &Vaults, thread: u64, rounds: u64) {
    let mut dice = Dice(thread << 32);
    let name: VaultName = format!("own{thread}").parse().unwrap();
    let vault = vaults.create(&name, OWNER).unwrap();
    let mut files = Files::new();
    for round in 0..rounds {
        let head = vaults.by_id(vault.id).unwrap().head;
        match dice.roll(10) {
            0..=4 => {
                let _lease = vaults.lease();
                let mut root = head;
                // An import: many files, made to last in the middle of it.
                for n in 0..dice.roll(8) + 1 {
                    let (path, seed) = (format!("/d/{}", dice.roll(20)), dice.roll(12));
                    root = edited(vaults, root, &path, Some(seed));
                    files.insert(path, seed);
                    if n == 2 {
                        vaults.trees().flush().unwrap();
                        std::thread::yield_now();
                    }
                }
                vaults
                    .publish(vault.id, head, root, version(Cause::Import))
                    .unwrap();
            }
            5 => {
                let fork: VaultName = format!("fork{thread}-{round}").parse().unwrap();
                let from = format!("own{}", dice.roll(3)).parse().unwrap();
                if vaults.fork(&from, &fork, OWNER).is_ok() && dice.roll(3) > 0 {
                    vaults.delete(&fork, OWNER).unwrap();
                }
            }
            6 => {
                vaults.prune(vault.id, Keep::Newest(2), OWNER).unwrap();
            }
            7 => {
                let at: CheckpointName = format!("c{round}").parse().unwrap();
                let origin = avfs_vault::CheckpointOrigin::Asked;
                vaults
                    .save_checkpoint(vault.id, Some(&at), head, origin, OWNER)
                    .unwrap();
                let _lease = vaults.lease();
                let root = edited(vaults, head, "/d/wrong", Some(3));
                vaults
                    .publish(vault.id, head, root, version(Cause::Exec))
                    .unwrap();
                vaults.restore(vault.id, root, &at, OWNER).unwrap();
                vaults.delete_checkpoint(vault.id, &at, OWNER).unwrap();
            }
            8 => check_root(vaults, head, &files),
            _ => {
                // Without a lease it may be told to try again, and nothing worse.
                let root = edited(vaults, head, "/d/0", Some(dice.roll(12)));
                vaults.trees().flush().unwrap();
                std::thread::yield_now();
                match vaults.publish(vault.id, head, root, version(Cause::Write)) {
                    Err(Error::Swept { .. }) => {}
                    published => {
                        published.unwrap();
                        let bytes = read(vaults, root, "/d/0");
                        let seed = (0..12).find(|seed| content(*seed) == bytes);
                        files.insert("/d/0".into(), seed.unwrap());
                    }
                }
            }
        }
    }
    check_root(vaults, vaults.by_id(vault.id).unwrap().head, &files);
}

#[test]
fn many_writers_and_gc_all_the_time() {
    let home = tempfile::tempdir().unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    let done = AtomicBool::new(false);
    let rounds = u64::from(cases()) * 2;
    let swept = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|thread| {
                let vaults = vaults.clone();
                scope.spawn(move || write_for_long(&vaults, thread, rounds))
            })
            .collect();
        let collector = scope.spawn(|| {
            let options = GcOptions {
                mode: GcMode::Collect,
                grace: Duration::ZERO,
                roots: Vec::new(),
            };
            let mut swept = 0;
            while !done.load(Ordering::Relaxed) {
                swept += vaults.gc(&options, OWNER).unwrap().swept.objects;
                let fsck = vaults.fsck();
                assert!(fsck.is_clean(), "{fsck:#?}");
            }
            swept
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
        collector.join().unwrap()
    });
    assert!(swept > 0, "something was swept meanwhile");
}
