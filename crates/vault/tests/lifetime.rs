//! Names, forks from any point, and the way back from a deletion.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use avfs_store::Store;
use avfs_vault::{
    Cause, CheckpointName, CheckpointOrigin, Content, Entry, Error, ForkPoint, JournalFilter, Meta,
    NewVersion, Principal, RootId, Time, Vault, VaultName, Vaults,
};
use serde_json::json;

const OWNER: &Principal = &Principal::Owner;

fn vaults() -> (tempfile::TempDir, Vaults) {
    let home = tempfile::tempdir().unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    (home, vaults)
}

fn name(text: &str) -> VaultName {
    text.parse().unwrap()
}

fn point(text: &str) -> CheckpointName {
    text.parse().unwrap()
}

fn add(vaults: &Vaults, vault: &Vault, file: &str) -> RootId {
    let head = vaults.by_id(vault.id).unwrap().head;
    let mut edit = vaults.trees().edit(head).unwrap();
    let entry = Entry::file(Content::EMPTY, 0, Meta::new(0o644, Time::EPOCH));
    edit.put(&file.parse().unwrap(), entry).unwrap();
    let root = edit.finish().unwrap();
    let version = NewVersion {
        by: Principal::Owner,
        exec: None,
        cause: Cause::Write,
        details: json!({}),
    };
    vaults.publish(vault.id, head, root, version).unwrap();
    root
}

fn save(vaults: &Vaults, vault: &Vault, checkpoint: &str) {
    let head = vaults.by_id(vault.id).unwrap().head;
    let asked = CheckpointOrigin::Asked;
    vaults
        .save_checkpoint(vault.id, Some(&point(checkpoint)), head, asked, OWNER)
        .unwrap();
}

fn operations(vaults: &Vaults) -> Vec<String> {
    let entries = vaults.journal(&JournalFilter::default()).unwrap();
    entries.into_iter().map(|entry| entry.operation).collect()
}

#[test]
fn a_renamed_vault_is_the_same_vault() {
    let (_home, vaults) = vaults();
    let one = vaults.create(&name("one"), OWNER).unwrap();
    vaults.create(&name("two"), OWNER).unwrap();
    add(&vaults, &one, "/a");
    let renamed = vaults.rename(&name("one"), &name("uno"), OWNER).unwrap();
    assert_eq!((renamed.id, renamed.version), (one.id, 2));
    assert_eq!(vaults.current().unwrap(), Some(renamed.clone()));
    assert_eq!(vaults.get(&name("uno")).unwrap(), renamed);
    assert!(matches!(
        vaults.rename(&name("uno"), &name("two"), OWNER),
        Err(Error::VaultExists { .. })
    ));
    assert!(matches!(
        vaults.rename(&name("one"), &name("x"), OWNER),
        Err(Error::VaultNotFound { .. })
    ));
    assert_eq!(operations(&vaults).last().unwrap(), "vault.rename");
}

#[test]
fn a_fork_begins_at_any_point_and_says_which() {
    let (_home, vaults) = vaults();
    let source = vaults.create(&name("source"), OWNER).unwrap();
    let first = add(&vaults, &source, "/a");
    save(&vaults, &source, "saved");
    let second = add(&vaults, &source, "/b");

    let fork =
        |point: ForkPoint, to: &str| vaults.fork_at(&name("source"), &point, &name(to), OWNER);
    let head = fork(ForkPoint::Head, "from-head").unwrap();
    let saved = fork(ForkPoint::Checkpoint(point("saved")), "from-saved").unwrap();
    let version = fork(ForkPoint::Version(2), "from-version").unwrap();
    assert_eq!(
        [head.head, saved.head, version.head],
        [second, first, first]
    );
    for fork in [head, saved.clone(), version] {
        let stored = vaults.get(&fork.name).unwrap();
        assert_eq!(
            stored.parent, fork.parent,
            "the lineage is stored as it was given"
        );
        assert_eq!(stored.parent.unwrap().root, fork.head);
    }
    let lineage = saved.parent.unwrap();
    assert_eq!(lineage.point, ForkPoint::Checkpoint(point("saved")));
    assert!(matches!(
        fork(ForkPoint::Version(9), "x"),
        Err(Error::VersionNotFound { number: 9, .. })
    ));
    assert!(matches!(
        fork(ForkPoint::Checkpoint(point("lost")), "x"),
        Err(Error::CheckpointNotFound { .. })
    ));
}

#[test]
fn a_checkpoint_names_the_forks_made_from_it() {
    let (_home, vaults) = vaults();
    let source = vaults.create(&name("source"), OWNER).unwrap();
    add(&vaults, &source, "/a");
    save(&vaults, &source, "saved");
    let at = ForkPoint::Checkpoint(point("saved"));
    for to in ["one", "two", "gone"] {
        vaults
            .fork_at(&name("source"), &at, &name(to), OWNER)
            .unwrap();
    }
    vaults
        .fork(&name("source"), &name("of-head"), OWNER)
        .unwrap();
    vaults.delete(&name("gone"), OWNER).unwrap();
    let forks = [name("one"), name("two")];
    assert_eq!(
        vaults.checkpoint_forks(source.id, &point("saved")).unwrap(),
        forks
    );
    assert_eq!(
        vaults
            .delete_checkpoint(source.id, &point("saved"), OWNER)
            .unwrap(),
        forks
    );
    let fork = vaults.get(&name("one")).unwrap();
    assert_eq!(
        vaults.trees().root(fork.head).unwrap().files(),
        1,
        "it outlives the checkpoint"
    );

    add(&vaults, &source, "/b");
    save(&vaults, &source, "saved");
    let another = vaults.checkpoint_forks(source.id, &point("saved")).unwrap();
    assert_eq!(
        another,
        [],
        "another state under the same name is another checkpoint"
    );
}

#[test]
fn a_deleted_vault_comes_back_whole() {
    let (_home, vaults) = vaults();
    let one = vaults.create(&name("one"), OWNER).unwrap();
    add(&vaults, &one, "/a");
    save(&vaults, &one, "saved");
    let before = vaults.get(&name("one")).unwrap();
    let versions = vaults.versions(one.id, 9).unwrap();
    vaults.delete(&name("one"), OWNER).unwrap();
    assert_eq!(vaults.list().unwrap(), []);
    assert_eq!(vaults.current().unwrap(), None);
    assert!(matches!(
        vaults.by_id(one.id),
        Err(Error::VaultIdNotFound { .. })
    ));
    assert_eq!(vaults.deleted().unwrap()[0].vault, before);

    // The name is free meanwhile, and then it is not.
    let other = vaults.create(&name("one"), OWNER).unwrap();
    assert_eq!(
        vaults.current().unwrap().unwrap().id,
        other.id,
        "the only one there is"
    );
    assert!(matches!(
        vaults.undelete(&name("one"), None, OWNER),
        Err(Error::VaultExists { .. })
    ));
    let back = vaults
        .undelete(&name("one"), Some(&name("back")), OWNER)
        .unwrap();
    assert_eq!(
        (back.id, back.head, back.version),
        (before.id, before.head, before.version)
    );
    assert_eq!(vaults.versions(back.id, 9).unwrap(), versions);
    assert_eq!(vaults.checkpoints(back.id).unwrap().len(), 1);
    assert_eq!(vaults.deleted().unwrap(), []);
    assert!(matches!(
        vaults.undelete(&name("one"), None, OWNER),
        Err(Error::DeletedVaultNotFound { .. })
    ));
}

#[test]
fn the_last_deleted_of_a_name_comes_back_first() {
    let (_home, vaults) = vaults();
    let ids: Vec<_> = (0..3)
        .map(|_| {
            let id = vaults.create(&name("v"), OWNER).unwrap().id;
            vaults.delete(&name("v"), OWNER).unwrap();
            id
        })
        .collect();
    for id in ids.into_iter().rev() {
        assert_eq!(vaults.undelete(&name("v"), None, OWNER).unwrap().id, id);
        vaults
            .rename(&name("v"), &name(&format!("v-{id}")), OWNER)
            .unwrap();
    }
}
