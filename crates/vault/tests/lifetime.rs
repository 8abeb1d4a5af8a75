//! The way back from a deletion.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use avfs_store::Store;
use avfs_vault::{
    Cause, CheckpointName, CheckpointOrigin, Content, Entry, Error, Meta, NewVersion, Principal,
    RootId, Time, Vault, VaultName, Vaults,
};
use serde_json::json;

const OWNER: &Principal = &Principal::OWNER;

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
        by: Principal::OWNER,
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
    assert_eq!(vaults.current(OWNER).unwrap(), None);
    assert!(matches!(
        vaults.by_id(one.id),
        Err(Error::VaultIdNotFound { .. })
    ));
    assert_eq!(vaults.deleted().unwrap()[0].vault, before);

    // The name is free meanwhile, and then it is not.
    let other = vaults.create(&name("one"), OWNER).unwrap();
    assert_eq!(
        vaults.current(OWNER).unwrap().unwrap().id,
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
