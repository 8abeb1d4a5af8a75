//! Where an import came from is remembered, inherited by forks, and never without its content.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use avfs_store::{ObjectId, Store};
use avfs_vault::{
    Cause, Content, Entry, Error, ForkPoint, ImportSource, Meta, NewVersion, Principal, RootId,
    Time, Vault, VaultName, Vaults,
};

const OWNER: &Principal = &Principal::OWNER;

struct Scene {
    _home: tempfile::TempDir,
    vaults: Vaults,
    vault: Vault,
}

impl Scene {
    fn new() -> Scene {
        let home = tempfile::tempdir().unwrap();
        let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
        let vault = vaults.create(&name("one"), OWNER).unwrap();
        Scene {
            _home: home,
            vaults,
            vault,
        }
    }

    fn root_with(&self, content: Content, size: u64) -> RootId {
        let mut edit = self.vaults.trees().edit(self.vault.head).unwrap();
        let entry = Entry::file(content, size, Meta::new(0o644, Time::EPOCH));
        edit.put(&"/file".parse().unwrap(), entry).unwrap();
        edit.finish().unwrap()
    }

    fn publish(&self, root: RootId, source: Option<&ImportSource>) -> Result<(), Error> {
        let version = NewVersion {
            by: Principal::OWNER,
            exec: None,
            cause: Cause::Import,
            details: serde_json::Value::Null,
        };
        let entry = self.vaults.trees().entry(root, &"/file".parse().unwrap());
        let Some(avfs_vault::Kind::File { content, .. }) = entry?.map(|entry| entry.kind) else {
            panic!("a file");
        };
        let reused = self.vaults.trees().content_objects(content)?;
        let (id, head) = (self.vault.id, self.vault.head);
        self.vaults
            .publish_import(id, head, root, version, source, &reused)
            .map(drop)
    }
}

fn name(text: &str) -> VaultName {
    text.parse().unwrap()
}

fn source() -> ImportSource {
    ImportSource {
        host_dir: b"/home/\xff/project".to_vec(),
        at: "/workspace".parse().unwrap(),
    }
}

#[test]
fn a_base_is_remembered_and_inherited() {
    let scene = Scene::new();
    let root = scene.root_with(Content::EMPTY, 0);
    scene.publish(root, Some(&source())).unwrap();
    let bases = scene.vaults.import_bases(scene.vault.id).unwrap();
    assert_eq!(bases.len(), 1);
    assert_eq!((bases[0].root, bases[0].version), (root, 2));
    assert_eq!(bases[0].source, source());

    let fork = scene
        .vaults
        .fork(&name("one"), &name("two"), OWNER)
        .unwrap();
    let inherited = scene.vaults.import_bases(fork.id).unwrap();
    assert_eq!((inherited[0].root, inherited[0].version), (root, 1));
    assert_eq!(inherited[0].source, source());
    let before = ForkPoint::Version(1);
    let early = scene
        .vaults
        .fork_at(&name("one"), &before, &name("early"), OWNER);
    let early = scene.vaults.import_bases(early.unwrap().id).unwrap();
    assert_eq!(early, [], "it begins before the import");
    let empty = scene.vaults.trees().empty_root().unwrap();
    scene
        .vaults
        .set_import_base(fork.id, &source(), empty, 1)
        .unwrap();
    assert_eq!(scene.vaults.import_bases(fork.id).unwrap()[0].root, empty);
    assert_eq!(scene.vaults.import_bases(scene.vault.id).unwrap(), bases);

    scene.vaults.delete(&name("one"), OWNER).unwrap();
    assert_eq!(scene.vaults.import_bases(fork.id).unwrap().len(), 1);
}

#[test]
fn content_that_is_gone_is_not_published() {
    let scene = Scene::new();
    let gone = Content::Object(ObjectId::of(b"never stored"));
    let root = scene.root_with(gone, 12);
    let refused = scene.publish(root, Some(&source()));
    assert!(matches!(
        refused,
        Err(Error::Store(avfs_store::Error::Missing { .. }))
    ));
    let now = scene.vaults.by_id(scene.vault.id).unwrap();
    assert_eq!((now.head, now.version), (scene.vault.head, 1));
    assert_eq!(scene.vaults.import_bases(scene.vault.id).unwrap(), []);
}

#[test]
fn the_objects_of_large_content_are_its_chunks() {
    let scene = Scene::new();
    let trees = scene.vaults.trees();
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    let (content, _) = trees.write_bytes(&bytes).unwrap();
    let objects = trees.content_objects(content).unwrap();
    assert!(objects.len() > 3, "{objects:?}");
    for id in objects {
        assert!(trees.store().contains(id).unwrap());
    }
    assert_eq!(trees.content_objects(Content::EMPTY).unwrap(), []);
}
