//! Rows and transactions: what goes in comes out, heads move by compare-and-swap, and failures leave nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;

use avfs_store::ledger::{
    Beginning, CheckpointRow, ImportRow, JournalQuery, JournalRow, ParentRow, QuotaRow, RootKind,
    Rows, Stamp, Transaction, VaultRow, VersionRow,
};
use avfs_store::{Durability, Error, ObjectId, Result, Store};

fn open() -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    store.prepare_ledger().unwrap();
    (home, store)
}

fn write<T>(store: &Store, f: impl FnOnce(&Transaction<'_>) -> Result<T>) -> T {
    store.write(Durability::Relaxed, f).unwrap()
}

fn read<T>(store: &Store, f: impl FnOnce(&Rows<'_>) -> Result<T>) -> T {
    store.read(f).unwrap()
}

fn root(n: u8) -> ObjectId {
    ObjectId::from_bytes([n; 32])
}

fn at(secs: i64) -> Stamp {
    Stamp { secs, nanos: 7 }
}

fn vault(n: u8, name: &str) -> VaultRow {
    VaultRow {
        id: [n; 16],
        name: name.to_owned(),
        head: root(n),
        version: 1,
        parent: None,
        created: at(1),
        quota: QuotaRow::default(),
        made_by: "owner".to_owned(),
        deleted: None,
    }
}

fn version(number: u64, root: ObjectId) -> VersionRow {
    VersionRow {
        number,
        root,
        principal: "agent:a".to_owned(),
        exec: Some([9; 16]),
        cause: "write".to_owned(),
        time: at(number as i64),
    }
}

#[test]
fn rows_come_back_as_they_went_in() {
    let (_home, store) = open();
    let mut whole = vault(1, "v");
    whole.parent = Some(ParentRow {
        vault: [8; 16],
        name: "gone".to_owned(),
        root: root(8),
    });
    whole.quota = QuotaRow {
        bytes: Some(5),
        files: None,
        file_bytes: Some(u64::MAX),
    };
    let checkpoint = CheckpointRow {
        name: "c".to_owned(),
        description: Some("before".to_owned()),
        root: root(3),
        origin: "asked".to_owned(),
        principal: "owner".to_owned(),
        time: at(4),
    };
    let import = ImportRow {
        host: b"/host/\xff".to_vec(),
        place: b"/".to_vec(),
        root: root(4),
        version: 1,
        time: at(5),
    };
    write(&store, |rows| {
        rows.add_vault(&whole)?;
        rows.add_version(&whole.id, &version(1, root(1)))?;
        rows.add_checkpoint(&whole.id, &checkpoint)?;
        rows.set_import(&whole.id, &import)
    });
    // No limit is beyond what an integer of SQLite holds.
    whole.quota.file_bytes = Some(i64::MAX as u64);
    read(&store, |rows| {
        assert_eq!(rows.vault(&whole.id)?, Some(whole.clone()));
        assert_eq!(rows.newest_version(&whole.id)?, Some(version(1, root(1))));
        assert_eq!(rows.checkpoints(&whole.id)?, [checkpoint]);
        assert_eq!(rows.imports(&whole.id)?, [import]);
        let kinds: Vec<RootKind> = rows.roots()?.into_iter().map(|row| row.kind).collect();
        let named = RootKind::Checkpoint("c".to_owned());
        use RootKind::{Beginning, Head, Import, Version};
        assert_eq!(kinds, [Head, Beginning, Version(1), named, Import]);
        Ok(())
    });
}

#[test]
fn a_head_moves_only_from_where_it_is() {
    let (_home, store) = open();
    let row = vault(1, "v");
    write(&store, |rows| rows.add_vault(&row));
    let moved = |from: u8, to: u8, number: u64| {
        write(&store, |rows| {
            rows.move_head(&row.id, root(from), root(to), number)
        })
    };
    assert!(moved(1, 2, 2));
    assert!(!moved(1, 3, 3), "it is elsewhere by now");
    let found = read(&store, |rows| rows.vault(&row.id)).unwrap();
    assert_eq!((found.head, found.version), (root(2), 2));
    let other = write(&store, |rows| rows.move_head(&[7; 16], root(1), root(2), 2));
    assert!(!other, "there is no such vault");
}

#[test]
fn what_fails_leaves_no_row() {
    let (_home, store) = open();
    let failed = store.write(Durability::Relaxed, |rows| {
        rows.add_vault(&vault(1, "v"))?;
        assert_eq!(rows.count_vaults()?, 1, "it sees what it has done");
        Err::<(), _>(Error::SyncFailed)
    });
    assert!(failed.is_err());
    assert_eq!(read(&store, |rows| rows.count_vaults()), 0);
    write(&store, |rows| rows.add_vault(&vault(1, "v")));
    let taken = store.write(Durability::Relaxed, |rows| rows.add_vault(&vault(2, "v")));
    assert!(matches!(taken, Err(Error::Database(_))), "{taken:?}");
}

#[test]
fn a_deleted_vault_keeps_its_rows_and_frees_its_name() {
    let (_home, store) = open();
    let row = vault(1, "v");
    write(&store, |rows| {
        rows.add_vault(&row)?;
        rows.set_current(&row.id)?;
        rows.set_current_of("agent:a", &row.id)?;
        rows.add_version(&row.id, &version(1, root(1)))?;
        rows.delete_vault(&row.id, "v", at(3))
    });
    read(&store, |rows| {
        assert_eq!(rows.vault(&row.id)?, None);
        assert!(!rows.is_name_taken("v")?);
        assert_eq!(rows.current()?, None);
        assert!(rows.has_chosen("agent:a")?);
        assert_eq!(rows.current_of("agent:a")?, None);
        let deleted = rows.last_deleted("v")?.unwrap();
        assert_eq!((&*deleted.name, deleted.deleted), ("v", Some(at(3))));
        assert_eq!(rows.roots()?.len(), 2);
        Ok(())
    });
    write(&store, |rows| rows.undelete_vault(&row.id, "w"));
    let back = read(&store, |rows| rows.vault_named("w")).unwrap();
    assert_eq!((back.id, back.deleted), (row.id, None));
    write(&store, |rows| rows.remove_vault(&row.id));
    assert_eq!(read(&store, |rows| rows.roots()), []);
}

#[test]
fn settings_are_copied_but_for_some() {
    let (_home, store) = open();
    let (from, to) = (vault(1, "from"), vault(2, "to"));
    write(&store, |rows| {
        rows.add_vault(&from)?;
        rows.add_vault(&to)?;
        rows.set_setting(&from.id, "env.A", Some("1"))?;
        rows.set_setting(&from.id, "own.x", Some("2"))?;
        rows.set_home_setting("default.net", Some("none"))?;
        rows.set_home_setting("default.quota.bytes", Some("3"))?;
        rows.copy_settings(&from.id, &to.id, "own.")?;
        rows.copy_home_settings(&to.id, "default.", "default.quota.")
    });
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(
        read(&store, |rows| rows.settings(&to.id)),
        [pair("env.A", "1"), pair("net", "none")]
    );
    assert_eq!(
        read(&store, |rows| rows.home_settings("default.")),
        [pair("net", "none"), pair("quota.bytes", "3")]
    );
    assert_eq!(
        read(&store, |rows| rows.vaults_with_setting("own.x")),
        [from.id]
    );
}

fn entry(seq: u64, principal: &str, operation: &str, details: &str) -> JournalRow {
    JournalRow {
        seq,
        time: at(seq as i64),
        vault: Some([seq as u8; 16]),
        exec: None,
        principal: principal.to_owned(),
        operation: operation.to_owned(),
        details: details.to_owned(),
        prev: [0; 32],
        hash: [seq as u8; 32],
    }
}

#[test]
fn the_journal_answers_what_is_asked_and_no_more() {
    let (_home, store) = open();
    let entries = [
        entry(1, "owner", "vault.create", r#"{"path":"/a"}"#),
        entry(2, "agent", "vaults", r#"{"paths":["/a/b","/c"]}"#),
        entry(3, "agent:x' OR 1=1", "exec", r#"{"decision":"deny"}"#),
        entry(4, "agentic", "exec", "no json"),
    ];
    write(&store, |rows| {
        for entry in &entries {
            rows.append_journal(entry)?;
        }
        Ok(())
    });
    let found = |query: JournalQuery| -> Vec<u64> {
        let rows = read(&store, |rows| rows.journal(&query));
        rows.iter().map(|row| row.seq).collect()
    };
    let begins = |exact: &str, prefix: Option<&str>| {
        Some(Beginning {
            exact: exact.to_owned(),
            prefix: prefix.map(str::to_owned),
        })
    };
    let all = JournalQuery::default;
    let principal = begins("agent", Some("agent:"));
    assert_eq!(found(JournalQuery { principal, ..all() }), [2, 3]);
    let principal = begins("agent:x' OR 1=1", None);
    assert_eq!(found(JournalQuery { principal, ..all() }), [3]);
    let operation = begins("vault", Some("vault."));
    assert_eq!(found(JournalQuery { operation, ..all() }), [1]);
    let path = begins("/a", Some("/a/"));
    assert_eq!(found(JournalQuery { path, ..all() }), [1, 2]);
    let decision = Some("deny".to_owned());
    assert_eq!(found(JournalQuery { decision, ..all() }), [3]);
    let (since, until) = (Some(at(2)), Some(at(3)));
    assert_eq!(
        found(JournalQuery {
            since,
            until,
            ..all()
        }),
        [2, 3]
    );
    assert_eq!(
        found(JournalQuery {
            after: Some(1),
            limit: Some(2),
            newest_first: true,
            ..all()
        }),
        [4, 3]
    );
    read(&store, |rows| {
        assert_eq!(rows.journal_head()?.map(|head| head.seq), Some(4));
        let broken = rows.each_journal_row(|row| match row {
            Some(row) if row.seq == 3 => ControlFlow::Break(row.principal),
            _ => ControlFlow::Continue(()),
        })?;
        assert_eq!(broken, ControlFlow::Break("agent:x' OR 1=1".to_owned()));
        Ok(())
    });
}

#[test]
fn a_snapshot_does_not_see_what_comes_meanwhile() {
    let (_home, store) = open();
    write(&store, |rows| rows.add_vault(&vault(1, "v")));
    let counts = store.read(|rows| {
        rows.snapshot(|rows| {
            let before = rows.count_vaults()?;
            write(&store, |rows| rows.add_vault(&vault(2, "w")));
            Ok::<_, Error>((before, rows.count_vaults()?))
        })
    });
    assert_eq!(counts.unwrap(), (1, 1));
    assert_eq!(read(&store, |rows| rows.count_vaults()), 2);
}
