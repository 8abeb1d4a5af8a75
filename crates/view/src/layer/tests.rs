//! Layers that are made, found again, drafted and retired.

use super::*;
use crate::scan::MarkNames;
use crate::scanner::tests::in_a_thread;
use avfs_vault::Time;

fn root(digit: char) -> RootId {
    digit.to_string().repeat(64).parse().unwrap()
}

fn scene() -> (tempfile::TempDir, Layers, VaultId) {
    let home = tempfile::tempdir().unwrap();
    let layers = Layers::open(home.path(), None).unwrap();
    (home, layers, VaultId::new())
}

fn top() -> Meta {
    Meta::new(
        0o750,
        Time {
            secs: 1_000,
            nanos: 5,
        },
    )
}

#[test]
fn a_layer_is_found_again_with_what_it_stands_on() {
    let (_home, layers, vault) = scene();
    let mut layer = layers
        .create(vault, root('a'), &top(), LayerUse::Sandbox)
        .unwrap();
    layer.begin_commit(root('b')).unwrap();
    let (path, mode) = (layer.upper_path(), 0o750);
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        mode
    );
    drop(layer);
    let [found] = <[Found; 1]>::try_from(layers.find().unwrap()).ok().unwrap();
    assert_eq!(found.vault, vault);
    let layer = found.claim(Duration::ZERO).unwrap();
    assert!(layers.is_of_this_boot(&layer));
    let record = layer.record();
    assert_eq!(
        (record.base, record.last_commit, record.pending),
        (root('a'), root('a'), root('b'))
    );
}

#[test]
fn a_layer_in_use_is_not_touched() {
    let (_home, layers, vault) = scene();
    let layer = layers
        .create(vault, root('a'), &top(), LayerUse::Sandbox)
        .unwrap();
    // The descriptor that a sandbox's pid 1 would hold.
    let held = layer.hold().unwrap();
    drop(layer);
    let claim = |patience| layers.find().unwrap().remove(0).claim(patience);
    let refused = claim(Duration::from_millis(20));
    assert!(matches!(refused, Err(Error::LayerInUse { .. })));
    drop(held);
    claim(Duration::ZERO).unwrap();
}

#[test]
fn what_is_retired_is_rubbish_and_can_be_swept() {
    let (home, layers, vault) = scene();
    let layer = layers
        .create(vault, root('a'), &top(), LayerUse::Sandbox)
        .unwrap();
    std::fs::write(layer.upper_path().join("f"), "x").unwrap();
    drop(layer.retire().unwrap());
    assert!(layers.find().unwrap().is_empty());
    let scanner = in_a_thread(MarkNames::User);
    for retired in layers.rubbish().unwrap() {
        retired.remove(&scanner).unwrap();
    }
    assert!(layers.rubbish().unwrap().is_empty());
    layers.scratch(vault).unwrap();
    assert!(layers.holds(vault));
    layers.remove_vault(vault, &scanner).unwrap();
    assert!(!layers.holds(vault));
    assert_eq!(
        std::fs::read_dir(home.path().join("layers"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn a_draft_is_rubbish_until_it_is_ready() {
    let (_home, layers, vault) = scene();
    let draft = || {
        let roots = (root('a'), root('b'));
        layers
            .draft(vault, roots, &top(), LayerUse::Sandbox)
            .unwrap()
    };
    drop(draft());
    assert_eq!(layers.find().unwrap().len(), 0);
    assert_eq!(layers.rubbish().unwrap().len(), 1);
    let mut layer = draft();
    layer.make_ready().unwrap();
    layer.begin_commit(root('c')).unwrap();
    drop(layer);
    let layer = layers.find().unwrap().remove(0).claim(Duration::ZERO);
    let mut layer = layer.unwrap();
    let record = layer.record();
    assert_eq!(
        (record.base, record.last_commit, record.pending),
        (root('a'), root('b'), root('c'))
    );
    drop(draft().retire().unwrap());
    assert_eq!(layers.find().unwrap().len(), 1);
    layer.redraft(root('d')).unwrap();
    assert_eq!(layers.find().unwrap().len(), 0);
    layer.make_ready().unwrap();
    drop(layer);
    let layer = layers.find().unwrap().remove(0).claim(Duration::ZERO);
    assert_eq!(layer.unwrap().record().last_commit, root('d'));
}

#[test]
fn a_damaged_record_is_said_to_be_one() {
    let (_home, layers, vault) = scene();
    let layer = layers
        .create(vault, root('a'), &top(), LayerUse::Sandbox)
        .unwrap();
    let record = layer.upper_path().with_file_name(RECORD);
    drop(layer);
    std::fs::write(record, [9; RECORD_BYTES]).unwrap();
    let damaged = layers.find().unwrap().remove(0).claim(Duration::ZERO);
    assert!(matches!(damaged, Err(Error::BadLayer { .. })));
}

#[test]
fn a_layer_has_a_token_that_no_other_has_and_that_outlives_its_maker() {
    let (_home, layers, vault) = scene();
    let create = || layers.create(vault, root('a'), &top(), LayerUse::Sandbox);
    let (one, other) = (create().unwrap(), create().unwrap());
    let token = one.token().expect("a token").to_owned();
    assert_eq!(token.len(), 32);
    assert_ne!(other.token(), Some(token.as_str()));
    let path = one.path.clone();
    drop(one);
    let found = Layer::claim(path.clone(), RECORD, Duration::ZERO).unwrap();
    assert_eq!(found.token(), Some(token.as_str()));
    drop(found);
    // The format of earlier versions.
    let record = File::options().write(true).open(path.join(RECORD)).unwrap();
    record.set_len(RECORD_BYTES as u64).unwrap();
    let old = Layer::claim(path, RECORD, Duration::ZERO).unwrap();
    assert_eq!(old.token(), None);
    assert_eq!(old.record(), other.record());
}
