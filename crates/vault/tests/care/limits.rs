//! Quotas hold, and pruning forgets no more than it is told to.

use avfs_vault::{
    CheckpointLabel, CheckpointOrigin, Error, Keep, Quota, QuotaLimit, Time, Vault, VaultName,
    Vaults,
};

use crate::common::{OWNER, add_file, checkpoint, edit_file, head, name, noise, open, publish};

fn set(vaults: &Vaults, vault: &Vault, limit: QuotaLimit, value: Option<u64>) {
    vaults.set_quota(vault.id, limit, value, OWNER).unwrap();
}

/// Writes a file of this size; gives which limit refused it.
fn write(vaults: &Vaults, vault: &Vault, path: &str, size: usize) -> Option<QuotaLimit> {
    let root = edit_file(vaults, head(vaults, vault), path, &noise(size as u64, size));
    match publish(vaults, vault, root) {
        Ok(_) => None,
        Err(Error::QuotaExceeded { limit, .. }) => Some(limit),
        Err(error) => panic!("{error}"),
    }
}

fn vault(vaults: &Vaults) -> Vault {
    vaults.create(&name("v"), OWNER).unwrap()
}

#[test]
fn bytes_count_the_difference_and_shrinking_is_always_allowed() {
    let (_home, vaults) = open();
    let vault = vault(&vaults);
    set(&vaults, &vault, QuotaLimit::Bytes, Some(1000));
    assert_eq!(write(&vaults, &vault, "/a", 900), None);
    assert_eq!(write(&vaults, &vault, "/b", 200), Some(QuotaLimit::Bytes));
    assert_eq!(
        write(&vaults, &vault, "/a", 1000),
        None,
        "an overwrite counts what it adds"
    );
    assert_eq!(write(&vaults, &vault, "/a", 1001), Some(QuotaLimit::Bytes));
    set(&vaults, &vault, QuotaLimit::Bytes, Some(10));
    assert_eq!(
        write(&vaults, &vault, "/a", 999),
        None,
        "above the limit it may shrink"
    );
    assert_eq!(write(&vaults, &vault, "/a", 1000), Some(QuotaLimit::Bytes));
    set(&vaults, &vault, QuotaLimit::Bytes, None);
    assert_eq!(write(&vaults, &vault, "/a", 5000), None);
}

#[test]
fn files_and_file_sizes_are_held_too() {
    let (_home, vaults) = open();
    let vault = vault(&vaults);
    set(&vaults, &vault, QuotaLimit::Files, Some(2));
    set(&vaults, &vault, QuotaLimit::FileBytes, Some(500));
    assert_eq!(write(&vaults, &vault, "/a", 500), None);
    assert_eq!(
        write(&vaults, &vault, "/a", 501),
        Some(QuotaLimit::FileBytes)
    );
    assert_eq!(write(&vaults, &vault, "/b", 1), None);
    assert_eq!(write(&vaults, &vault, "/c", 1), Some(QuotaLimit::Files));
    let quota = vaults.by_id(vault.id).unwrap().quota;
    let expected = Quota {
        bytes: None,
        files: Some(2),
        file_bytes: Some(500),
    };
    assert_eq!(quota, expected);
    let fork = vaults.fork(&name("v"), &name("fork"), OWNER).unwrap();
    assert_eq!(
        vaults.by_id(fork.id).unwrap().quota,
        expected,
        "a fork has its source's"
    );
}

#[test]
fn a_large_file_of_before_may_be_moved_but_not_grow() {
    let (_home, vaults) = open();
    let vault = vault(&vaults);
    assert_eq!(write(&vaults, &vault, "/a", 2000), None);
    set(&vaults, &vault, QuotaLimit::FileBytes, Some(500));
    let mut edit = vaults.trees().edit(head(&vaults, &vault)).unwrap();
    let entry = edit.get(&"/a".parse().unwrap()).unwrap().unwrap();
    edit.put(&"/b".parse().unwrap(), entry).unwrap();
    edit.remove(&"/a".parse().unwrap()).unwrap();
    let moved = edit.finish().unwrap();
    publish(&vaults, &vault, moved).unwrap();
    assert_eq!(
        write(&vaults, &vault, "/b", 2001),
        Some(QuotaLimit::FileBytes)
    );
    assert_eq!(write(&vaults, &vault, "/b", 1999), None);
    let refused = edit_file(&vaults, head(&vaults, &vault), "/new", &noise(1, 600));
    let error = publish(&vaults, &vault, refused).unwrap_err();
    assert_eq!(
        error.to_string(),
        "vault 'v' may hold 500 bytes in one file; this would be 600 at /new"
    );
}

#[test]
fn a_restore_is_not_refused() {
    let (_home, vaults) = open();
    let vault = vault(&vaults);
    add_file(&vaults, &vault, "/a", &noise(1, 2000));
    checkpoint(&vaults, &vault, "large");
    add_file(&vaults, &vault, "/a", b"");
    set(&vaults, &vault, QuotaLimit::Bytes, Some(100));
    let root = head(&vaults, &vault);
    vaults
        .restore(vault.id, root, &"large".parse().unwrap(), OWNER)
        .unwrap();
    assert_eq!(
        vaults.trees().root(head(&vaults, &vault)).unwrap().bytes(),
        2000
    );
}

fn numbers(vaults: &Vaults, vault: &Vault) -> Vec<u64> {
    let versions = vaults.versions(vault.id, usize::MAX).unwrap();
    versions.into_iter().map(|version| version.number).collect()
}

#[test]
fn pruning_keeps_the_newest_versions_and_what_was_asked_for() {
    let (_home, vaults) = open();
    let vault = vault(&vaults);
    for n in 0..6_u64 {
        add_file(&vaults, &vault, "/f", &n.to_le_bytes());
        let (origin, root) = (CheckpointOrigin::Automatic, head(&vaults, &vault));
        vaults
            .save_checkpoint(vault.id, CheckpointLabel::default(), root, origin, OWNER)
            .unwrap();
    }
    checkpoint(&vaults, &vault, "asked");
    let dry = vaults.prune_dry_run(vault.id, Keep::Newest(3)).unwrap();
    assert_eq!(numbers(&vaults, &vault), [7, 6, 5, 4, 3, 2, 1]);
    let pruned = vaults.prune(vault.id, Keep::Newest(3), OWNER).unwrap();
    assert_eq!((pruned, pruned.versions, pruned.checkpoints), (dry, 4, 3));
    assert_eq!(numbers(&vaults, &vault), [7, 6, 5]);
    assert_eq!(vaults.checkpoints(vault.id).unwrap().len(), 4);
    assert_eq!(
        vaults
            .prune(vault.id, Keep::Newest(99), OWNER)
            .unwrap()
            .versions,
        0
    );
    vaults.prune(vault.id, Keep::Newest(0), OWNER).unwrap();
    assert_eq!(numbers(&vaults, &vault), [7], "the newest always stays");
    add_file(&vaults, &vault, "/f", b"next");
    assert_eq!(numbers(&vaults, &vault), [8, 7], "and the count goes on");
}

#[test]
fn pruning_by_time_keeps_the_newest_too() {
    let (_home, vaults) = open();
    let vault = vault(&vaults);
    add_file(&vaults, &vault, "/f", b"1");
    let middle = Time::now();
    add_file(&vaults, &vault, "/f", b"2");
    add_file(&vaults, &vault, "/f", b"3");
    vaults.prune(vault.id, Keep::Since(middle), OWNER).unwrap();
    assert_eq!(numbers(&vaults, &vault), [4, 3]);
    vaults
        .prune(vault.id, Keep::Since(Time::now()), OWNER)
        .unwrap();
    assert_eq!(numbers(&vaults, &vault), [4]);
    let missing: VaultName = name("nobody");
    assert!(vaults.get(&missing).is_err());
}
