//! Vaults, versions, checkpoints and the journal, through their public face.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use avfs_store::Store;
use avfs_testkit::change_database;
use avfs_vault::{
    Cause, CheckpointName, CheckpointOrigin, Content, Entry, Error, ExecId, JournalCheck,
    JournalEvent, JournalFilter, JournalOrder, JournalProblem, Meta, NewJournalEntry, NewVersion,
    Operation, Principal, RecordedOperation, RootId, Time, Vault, VaultId, VaultName, VaultPath,
    Vaults,
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

fn checkpoint_name(text: &str) -> CheckpointName {
    text.parse().unwrap()
}

fn by_exec(exec: ExecId) -> NewVersion {
    let details = json!({ "argv": ["true"] });
    NewVersion {
        by: Principal::AGENT,
        exec: Some(exec),
        cause: Cause::Exec,
        details,
    }
}

/// A root with one more file than `base`.
fn with_file(vaults: &Vaults, base: RootId, file: &str) -> RootId {
    let path: VaultPath = format!("/{file}").parse().unwrap();
    let mut edit = vaults.trees().edit(base).unwrap();
    edit.put(
        &path,
        Entry::file(Content::EMPTY, 0, Meta::new(0o644, Time::EPOCH)),
    )
    .unwrap();
    edit.finish().unwrap()
}

fn publish(vaults: &Vaults, vault: &Vault, file: &str) -> RootId {
    let head = vaults.by_id(vault.id).unwrap().head;
    let root = with_file(vaults, head, file);
    vaults
        .publish(vault.id, head, root, by_exec(ExecId::new()))
        .unwrap();
    root
}

#[test]
fn the_first_vault_becomes_current() {
    let (_home, vaults) = vaults();
    assert_eq!(vaults.current(OWNER).unwrap(), None);
    let one = vaults.create(&name("one"), OWNER).unwrap();
    let two = vaults.create(&name("two"), OWNER).unwrap();
    assert_eq!(vaults.current(OWNER).unwrap(), Some(one.clone()));
    assert_eq!(vaults.list().unwrap(), [one.clone(), two.clone()]);
    assert_eq!(vaults.get(&name("two")).unwrap(), two);
    assert_eq!(vaults.by_id(one.id).unwrap(), one);
    vaults.set_current(&name("two"), OWNER).unwrap();
    assert_eq!(vaults.current(OWNER).unwrap(), Some(two));
    vaults.delete(&name("two"), OWNER).unwrap();
    assert_eq!(vaults.current(OWNER).unwrap(), None);
    assert!(matches!(
        vaults.get(&name("two")),
        Err(Error::VaultNotFound { .. })
    ));
    assert!(matches!(
        vaults.create(&name("one"), OWNER),
        Err(Error::VaultExists { .. })
    ));
    assert!(matches!(
        vaults.set_current(&name("x"), OWNER),
        Err(Error::VaultNotFound { .. })
    ));
    assert!(matches!(
        vaults.by_id(VaultId::new()),
        Err(Error::VaultIdNotFound { .. })
    ));
}

#[test]
fn a_fork_begins_where_its_source_is_and_goes_its_own_way() {
    let (_home, vaults) = vaults();
    let source = vaults.create(&name("source"), OWNER).unwrap();
    let head = publish(&vaults, &source, "a");
    let fork = vaults
        .fork(&name("source"), &name("fork"), &Principal::AGENT)
        .unwrap();
    assert_eq!(fork.head, head);
    let lineage = fork.parent.clone().unwrap();
    assert_eq!(
        (lineage.vault, lineage.name, lineage.root),
        (source.id, name("source"), head)
    );
    publish(&vaults, &fork, "b");
    assert_eq!(vaults.get(&name("source")).unwrap().head, head);
    let versions = vaults.versions(fork.id, 10).unwrap();
    let causes: Vec<_> = versions
        .iter()
        .map(|version| (version.number, version.cause))
        .collect();
    assert_eq!(causes, [(2, Cause::Exec), (1, Cause::Fork)]);
    vaults.delete(&name("source"), OWNER).unwrap();
    assert_eq!(
        vaults.get(&name("fork")).unwrap().parent,
        fork.parent,
        "lineage stays"
    );
    let again = vaults.fork(&name("fork"), &name("fork"), OWNER);
    assert!(matches!(again, Err(Error::VaultExists { .. })));
}

#[test]
fn publishing_moves_the_head_or_conflicts() {
    let (_home, vaults) = vaults();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let (a, b) = (
        with_file(&vaults, vault.head, "a"),
        with_file(&vaults, vault.head, "b"),
    );
    let exec = ExecId::new();
    let version = vaults
        .publish(vault.id, vault.head, a, by_exec(exec))
        .unwrap();
    assert_eq!(
        (version.number, version.root, version.exec),
        (2, a, Some(exec))
    );
    let lost = vaults.publish(vault.id, vault.head, b, by_exec(ExecId::new()));
    let Err(Error::Conflict { expected, actual }) = lost else {
        panic!("{lost:?}")
    };
    assert_eq!((expected, actual), (vault.head, a));
    assert_eq!(vaults.by_id(vault.id).unwrap().version, 2);
    let unknown = RootId::new(avfs_store::ObjectId::of(b"never stored"));
    let refused = vaults.publish(vault.id, a, unknown, by_exec(exec));
    assert!(matches!(
        refused,
        Err(Error::Store(avfs_store::Error::Missing { .. }))
    ));
}

#[test]
fn publishing_nothing_new_only_journals() {
    let (_home, vaults) = vaults();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let exec = ExecId::new();
    let version = vaults
        .publish(vault.id, vault.head, vault.head, by_exec(exec))
        .unwrap();
    assert_eq!((version.number, version.cause), (1, Cause::Create));
    assert_eq!(vaults.versions(vault.id, 10).unwrap().len(), 1);
    let told = vaults
        .journal(&JournalFilter {
            exec: Some(exec),
            ..Default::default()
        })
        .unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].operation.as_str(), &told[0].details["argv"][0]),
        ("exec", &json!("true"))
    );
}

#[test]
fn of_many_publishers_exactly_one_wins_each_round() {
    let (_home, vaults) = vaults();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    for round in 0..10 {
        let head = vaults.by_id(vault.id).unwrap().head;
        let publish = |n: usize| {
            let root = with_file(&vaults, head, &format!("{round}-{n}"));
            vaults.publish(vault.id, head, root, by_exec(ExecId::new()))
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let publish = &publish;
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || publish(n))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let won: Vec<_> = results.iter().flatten().collect();
        assert_eq!(won.len(), 1, "{results:?}");
        assert_eq!(vaults.by_id(vault.id).unwrap().head, won[0].root);
        let lost = results
            .iter()
            .filter(|r| matches!(r, Err(Error::Conflict { .. })));
        assert_eq!(lost.count(), 3);
    }
    assert_eq!(vaults.versions(vault.id, 100).unwrap().len(), 11);
}

#[test]
fn checkpoints_are_named_listed_and_deleted() {
    let (_home, vaults) = vaults();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let asked = CheckpointOrigin::Asked;
    let wanted = checkpoint_name("mine");
    let save = |name: Option<&CheckpointName>, origin| {
        vaults.save_checkpoint(vault.id, name, vault.head, origin, OWNER)
    };
    let mine = save(Some(&wanted), asked).unwrap();
    assert!(matches!(
        save(Some(&wanted), asked),
        Err(Error::CheckpointExists { .. })
    ));
    let automatic: Vec<_> = (0..20)
        .map(|_| save(None, CheckpointOrigin::Automatic).unwrap())
        .collect();
    assert!(
        automatic[0].name.as_str().starts_with("checkpoint-2"),
        "{}",
        automatic[0].name
    );
    assert_eq!(
        automatic[0].name.as_str().len(),
        "checkpoint-YYYYMMDD-HHMMSS-xxxx".len()
    );
    let listed = vaults.checkpoints(vault.id).unwrap();
    assert_eq!((listed.len(), &listed[0]), (21, &mine));
    assert_eq!(listed[1..], automatic);
    assert_eq!(vaults.checkpoint(vault.id, &wanted).unwrap(), mine);

    let refused = vaults.drop_automatic_checkpoint(vault.id, &wanted, OWNER);
    assert!(matches!(refused, Err(Error::CheckpointNotAutomatic { .. })));
    vaults
        .drop_automatic_checkpoint(vault.id, &automatic[0].name, OWNER)
        .unwrap();
    vaults.delete_checkpoint(vault.id, &wanted, OWNER).unwrap();
    assert_eq!(vaults.checkpoints(vault.id).unwrap(), automatic[1..]);
    let gone = vaults.checkpoint(vault.id, &wanted);
    assert!(matches!(gone, Err(Error::CheckpointNotFound { .. })));
    let nowhere = vaults.checkpoints(VaultId::new());
    assert!(matches!(nowhere, Err(Error::VaultIdNotFound { .. })));
}

#[test]
fn a_restore_can_be_undone_and_keeps_newer_checkpoints() {
    let (_home, vaults) = vaults();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let save = |text: &str, root| {
        let origin = CheckpointOrigin::Asked;
        vaults
            .save_checkpoint(vault.id, Some(&checkpoint_name(text)), root, origin, OWNER)
            .unwrap()
    };
    let old = publish(&vaults, &vault, "a");
    save("old", old);
    let newer = publish(&vaults, &vault, "b");
    save("newer", newer);
    let head = publish(&vaults, &vault, "c");

    let stale = vaults.restore(vault.id, old, &checkpoint_name("old"), OWNER);
    assert!(matches!(stale, Err(Error::Conflict { .. })));
    let restored = vaults
        .restore(vault.id, head, &checkpoint_name("old"), OWNER)
        .unwrap();
    assert_eq!(
        (restored.version.root, restored.version.cause),
        (old, Cause::Restore)
    );
    assert_eq!(vaults.by_id(vault.id).unwrap().head, old);
    assert_eq!(
        (restored.undo.root, restored.undo.origin),
        (head, CheckpointOrigin::BeforeRestore)
    );
    assert!(restored.undo.name.as_str().starts_with("before-restore-"));
    assert!(
        vaults
            .checkpoint(vault.id, &checkpoint_name("newer"))
            .is_ok()
    );

    vaults
        .restore(vault.id, old, &restored.undo.name, OWNER)
        .unwrap();
    assert_eq!(vaults.by_id(vault.id).unwrap().head, head);
    let missing = vaults.restore(vault.id, head, &checkpoint_name("none"), OWNER);
    assert!(matches!(missing, Err(Error::CheckpointNotFound { .. })));
}

#[test]
fn everything_is_there_after_a_reopen() {
    let home = tempfile::tempdir().unwrap();
    let (vault, head, list) = {
        let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
        let vault = vaults.create(&name("v"), OWNER).unwrap();
        let head = publish(&vaults, &vault, "a");
        vaults.fork(&name("v"), &name("w"), OWNER).unwrap();
        (vault, head, vaults.list().unwrap())
    };
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    assert_eq!(vaults.list().unwrap(), list);
    let path = "/a".parse().unwrap();
    assert!(vaults.trees().entry(head, &path).unwrap().is_some());
    assert_eq!(vaults.versions(vault.id, 1).unwrap()[0].root, head);
}

#[test]
fn the_journal_tells_what_happened_and_filters() {
    let (_home, vaults) = vaults();
    let vault = vaults.create(&name("v"), OWNER).unwrap();
    let other = vaults.create(&name("w"), OWNER).unwrap();
    let exec = ExecId::new();
    let denied = NewJournalEntry {
        vault: Some(vault.id),
        exec: Some(exec),
        principal: Principal::AGENT,
        operation: JournalEvent::ExecRefused.into(),
        details: json!({ "b": 1, "a": [null, "ü"] }),
    };
    let recorded = vaults.record(denied.clone()).unwrap();
    assert_eq!((recorded.seq, &recorded.details), (3, &denied.details));
    let told = |filter: JournalFilter| -> Vec<u64> {
        vaults
            .journal(&filter)
            .unwrap()
            .into_iter()
            .map(|entry| entry.seq)
            .collect()
    };
    assert_eq!(told(JournalFilter::default()), [1, 2, 3]);
    assert_eq!(
        told(JournalFilter {
            vault: Some(other.id),
            ..Default::default()
        }),
        [2]
    );
    assert_eq!(
        told(JournalFilter {
            exec: Some(exec),
            ..Default::default()
        }),
        [3]
    );
    assert_eq!(
        told(JournalFilter {
            after: Some(1),
            limit: Some(1),
            ..Default::default()
        }),
        [2]
    );
    let operation = Some("vault.create".to_owned());
    let order = JournalOrder::NewestFirst;
    assert_eq!(
        told(JournalFilter {
            operation,
            order,
            ..Default::default()
        }),
        [2, 1]
    );
    let again = vaults
        .journal(&JournalFilter {
            after: Some(2),
            ..Default::default()
        })
        .unwrap();
    assert_eq!(again, [recorded]);
}

/// Does something to the journal behind its back, and says what the check finds.
fn tampered(sql: &str) -> JournalCheck {
    let (home, vaults) = vaults();
    for n in 0..5 {
        vaults.create(&name(&format!("v{n}")), OWNER).unwrap();
    }
    let check = vaults.verify_journal().unwrap();
    assert!(
        matches!(check, JournalCheck::Intact { entries: 5, .. }),
        "{check:?}"
    );
    change_database(home.path(), sql);
    vaults.verify_journal().unwrap()
}

#[test]
fn tampering_with_the_journal_is_found() {
    use JournalProblem::{Edited, OutOfOrder, Removed};
    let cases = [
        ("UPDATE journal SET details = '{}' WHERE seq = 3", 3, Edited),
        (
            "UPDATE journal SET principal = 'agent' WHERE seq = 1",
            1,
            Edited,
        ),
        (
            "UPDATE journal SET principal = 'nobody' WHERE seq = 5",
            5,
            Edited,
        ),
        (
            "UPDATE journal SET secs = secs - 1 WHERE seq = 5",
            5,
            Edited,
        ),
        ("UPDATE journal SET vault = NULL WHERE seq = 2", 2, Edited),
        ("DELETE FROM journal WHERE seq = 2", 2, Removed),
        ("DELETE FROM journal WHERE seq = 1", 1, Removed),
        ("DELETE FROM journal WHERE seq >= 4", 4, Removed),
        (
            "UPDATE journal SET seq = 100 WHERE seq = 2; UPDATE journal SET seq = 2 WHERE seq = 3;
             UPDATE journal SET seq = 3 WHERE seq = 100",
            2,
            OutOfOrder,
        ),
        (
            "DELETE FROM journal WHERE seq = 2; UPDATE journal SET seq = seq - 1 WHERE seq > 2",
            2,
            OutOfOrder,
        ),
    ];
    for (sql, seq, problem) in cases {
        assert_eq!(
            tampered(sql),
            JournalCheck::Broken { seq, problem },
            "{sql}"
        );
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    Vaults::open(store.clone()).unwrap();
    change_database(home.path(), "PRAGMA user_version = 99");
    assert!(matches!(
        Vaults::open(store),
        Err(Error::Store(avfs_store::Error::UnknownSchema {
            found: 99,
            ..
        }))
    ));
}

/// A home may have been used by a program that knew more, or fewer, operations.
#[test]
fn an_operation_that_nobody_knows_is_read_as_it_was_written() {
    let (home, vaults) = vaults();
    vaults.create(&name("v"), OWNER).unwrap();
    let word = "UPDATE journal SET operation = 'vault.teleport' WHERE seq = 1";
    change_database(home.path(), word);
    let all = vaults.journal(&JournalFilter::default()).unwrap();
    let unknown = RecordedOperation::Unknown("vault.teleport".to_owned());
    assert_eq!((all.len(), &all[0].operation), (1, &unknown));
    let operation = Some("vault".to_owned());
    let filter = JournalFilter {
        operation,
        ..JournalFilter::default()
    };
    assert_eq!(vaults.journal(&filter).unwrap(), all);
    vaults.create(&name("w"), OWNER).unwrap();
    let created = Operation::Event(JournalEvent::VaultCreate);
    let newest = &vaults.journal(&JournalFilter::default()).unwrap()[1];
    assert_eq!(newest.operation, RecordedOperation::Known(created));
}
