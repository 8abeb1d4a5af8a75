//! Garbage collection: what is dead goes, nothing else ever does.

use std::time::Duration;

use crate::common::{
    OWNER, add_file, checkpoint, edit_file, head, name, noise, open, publish, read,
};
use avfs_store::ObjectId;
use avfs_vault::{Error, GcMode, GcOptions, GcReport, Keep, RootId, Vault, Vaults};

fn collect(vaults: &Vaults) -> GcReport {
    gc(vaults, GcMode::Collect, Duration::ZERO, Vec::new())
}

fn gc(vaults: &Vaults, mode: GcMode, grace: Duration, roots: Vec<RootId>) -> GcReport {
    let options = GcOptions { mode, grace, roots };
    let report = vaults.gc(&options, OWNER).unwrap();
    let fsck = vaults.fsck();
    assert!(fsck.is_clean(), "{fsck:#?}");
    report
}

fn keep_newest(vaults: &Vaults, vault: &Vault) {
    vaults.prune(vault.id, Keep::Newest(1), OWNER).unwrap();
}

#[test]
fn what_only_old_versions_had_goes_once_they_are_pruned() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    add_file(&vaults, &vault, "/f", &noise(1, 50_000));
    add_file(&vaults, &vault, "/f", &noise(2, 50_000));
    assert_eq!(collect(&vaults).swept.objects, 0, "history is kept");
    keep_newest(&vaults, &vault);
    let dry = gc(&vaults, GcMode::DryRun, Duration::ZERO, Vec::new());
    assert_eq!((dry.swept.objects, dry.compacted.packs), (0, 0));
    assert!(dry.dead.bytes >= 50_000);
    let report = collect(&vaults);
    assert_eq!(report.swept, dry.dead, "what the dry run told of");
    assert_eq!(read(&vaults, head(&vaults, &vault), "/f"), noise(2, 50_000));
    assert_eq!(collect(&vaults).dead.objects, 0);
}

#[test]
fn a_checkpoint_a_fork_and_its_beginning_keep_what_they_need() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let first = add_file(&vaults, &vault, "/f", &noise(1, 9000));
    checkpoint(&vaults, &vault, "one");
    add_file(&vaults, &vault, "/f", &noise(2, 9000));
    let fork = vaults.fork(&name("v"), &name("fork"), OWNER).unwrap();
    add_file(&vaults, &fork, "/f", &noise(3, 9000));
    let third = add_file(&vaults, &vault, "/f", &noise(4, 9000));
    keep_newest(&vaults, &vault);
    keep_newest(&vaults, &fork);
    let report = collect(&vaults);
    assert_eq!(report.roots.checkpoints, 1);
    assert_eq!(report.roots.beginnings, 1);
    assert_eq!(read(&vaults, first, "/f"), noise(1, 9000));
    assert_eq!(
        read(&vaults, fork.head, "/f"),
        noise(2, 9000),
        "where the fork began"
    );
    assert_eq!(read(&vaults, third, "/f"), noise(4, 9000));
    vaults
        .delete_checkpoint(vault.id, &"one".parse().unwrap(), OWNER)
        .unwrap();
    assert!(collect(&vaults).swept.bytes >= 9000);
}

#[test]
fn a_deleted_vault_goes_after_its_grace_and_not_before() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let root = add_file(&vaults, &vault, "/f", &noise(1, 9000));
    vaults.delete(&name("v"), OWNER).unwrap();
    let hour = Duration::from_secs(3600);
    let report = gc(&vaults, GcMode::Collect, hour, Vec::new());
    assert_eq!((report.recoverable.len(), report.forgotten.len()), (1, 0));
    let back = vaults.undelete(&name("v"), None, OWNER).unwrap();
    assert_eq!(
        (back.id, read(&vaults, root, "/f")),
        (vault.id, noise(1, 9000))
    );

    vaults.delete(&name("v"), OWNER).unwrap();
    let dry = gc(&vaults, GcMode::DryRun, Duration::ZERO, Vec::new());
    assert_eq!(dry.forgotten.len(), 1);
    assert_eq!(
        vaults.deleted().unwrap().len(),
        1,
        "a dry run forgets nothing"
    );
    let report = collect(&vaults);
    assert_eq!(report.forgotten[0].vault.name, name("v"));
    assert_eq!(report.swept, dry.dead);
    assert!(matches!(
        vaults.undelete(&name("v"), None, OWNER),
        Err(Error::DeletedVaultNotFound { .. })
    ));
}

#[test]
fn a_file_that_looks_like_a_directory_hides_nothing() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let root = add_file(&vaults, &vault, "/d-file", &noise(1, 900));
    // The bytes of the root's own directory and of the root, as files that sort before all else.
    let tree = vaults.trees().root(root).unwrap().tree();
    let node = vaults.trees().store().get(tree.object()).unwrap();
    let record = vaults.trees().store().get(root.object()).unwrap();
    let other = vaults.create(&name("a"), OWNER).unwrap();
    add_file(&vaults, &other, "/a-node", &node);
    add_file(&vaults, &other, "/b-root", &record);
    let moved = edit_file(&vaults, head(&vaults, &vault), "/other", &noise(5, 100));
    publish(&vaults, &vault, moved).unwrap();
    collect(&vaults);
    assert_eq!(read(&vaults, root, "/d-file"), noise(1, 900));
}

#[test]
fn a_held_root_stays_and_so_does_a_layer_s() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let one = add_file(&vaults, &vault, "/f", &noise(1, 9000));
    let two = add_file(&vaults, &vault, "/f", &noise(2, 9000));
    add_file(&vaults, &vault, "/f", &noise(3, 9000));
    keep_newest(&vaults, &vault);
    let hold = vaults.hold(one);
    let never_stored = RootId::new(ObjectId::of(b"a layer's next root that did not come to be"));
    let report = gc(
        &vaults,
        GcMode::Collect,
        Duration::ZERO,
        vec![two, never_stored],
    );
    assert_eq!(report.roots.held, 2);
    assert_eq!(read(&vaults, one, "/f"), noise(1, 9000));
    assert_eq!(read(&vaults, two, "/f"), noise(2, 9000));
    drop(hold);
    assert!(collect(&vaults).swept.bytes >= 18_000);
}

#[test]
fn long_work_with_a_lease_is_left_alone_and_without_one_is_told() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let begin = head(&vaults, &vault);
    let lease = vaults.lease();
    let root = edit_file(&vaults, begin, "/kept", &noise(1, 9000));
    vaults.trees().flush().unwrap();
    assert_eq!(collect(&vaults).swept.objects, 0);
    publish(&vaults, &vault, root).unwrap();
    drop(lease);

    let root = edit_file(&vaults, root, "/lost", &noise(2, 9000));
    vaults.trees().flush().unwrap();
    assert!(collect(&vaults).swept.objects > 0);
    let refused = publish(&vaults, &vault, root);
    assert!(matches!(refused, Err(Error::Swept { .. })), "{refused:?}");
    // Done again, it is whole.
    let root = edit_file(&vaults, head(&vaults, &vault), "/lost", &noise(2, 9000));
    publish(&vaults, &vault, root).unwrap();
    collect(&vaults);
    assert_eq!(read(&vaults, root, "/lost"), noise(2, 9000));
}

#[test]
fn the_same_content_again_after_it_was_swept() {
    let (_home, vaults) = open();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    for _ in 0..3 {
        let root = add_file(&vaults, &vault, "/f", &noise(1, 3 << 20));
        assert_eq!(read(&vaults, root, "/f"), noise(1, 3 << 20));
        add_file(&vaults, &vault, "/f", b"");
        keep_newest(&vaults, &vault);
        assert!(collect(&vaults).swept.bytes >= 3 << 20);
        assert!(vaults.stats().unwrap().bytes_stored < 10_000);
    }
}
