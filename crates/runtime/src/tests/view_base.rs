//! What a view may stand on: a root that differs little, with the rest in its layer from the start.

use super::*;
use crate::live::layer_commit::make_ready;
use crate::live::view_base::{Beginning, ViewBase, differing_little};
use avfs_vault::RootId;

/// The heads before and after `change`.
fn heads(place: &PlainHome, change: impl FnOnce()) -> (RootId, RootId) {
    let before = place.vault().head;
    change();
    (before, place.vault().head)
}

#[test]
fn only_a_small_difference_is_put_into_a_layer() {
    let place = PlainHome::new();
    for number in 0..20 {
        place.write(&format!("/d/{number}"), "x");
    }
    let trees = place.runtime.inner.vaults.trees();
    let roots = heads(&place, || {
        place.write("/d/1", "other");
        place.write("/new", "12345678");
    });
    // Two files, and the directory whose time has moved.
    let paths = |most, bytes| {
        let found = differing_little(trees, roots, most, bytes).unwrap();
        found.map(|changes| changes.len())
    };
    let all = paths(100, 1 << 20).expect("that is little");
    assert!((2..=4).contains(&all), "{all}");
    assert_eq!(paths(all, 1 << 20), Some(all));
    assert_eq!(paths(all - 1, 1 << 20), None, "too many paths");
    assert_eq!(paths(100, 12), None, "too many bytes");
    assert!(paths(100, 1 << 10).is_some());
}

#[test]
fn a_file_of_several_names_is_never_put_there() {
    let place = PlainHome::new();
    place.write("/f", "x");
    let roots = heads(&place, || {
        let link = crate::NewLink::Hard(path("/f"));
        place
            .session()
            .ln(Select::Current, &link, &path("/g"))
            .unwrap();
    });
    let trees = place.runtime.inner.vaults.trees();
    assert!(
        differing_little(trees, roots, 100, 1 << 20)
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_layer_on_another_root_counts_only_when_it_amounts_to_the_head() {
    let place = PlainHome::new();
    place.write("/d/old", "old");
    place.write("/d/gone", "gone");
    let (before, _) = heads(&place, || {
        place.write("/d/new", "new");
        let session = place.session();
        session
            .rm(Select::Current, &path("/d/gone"), crate::Depth::Single)
            .unwrap();
    });
    let (runtime, vault) = (&place.runtime, place.vault());
    let engine = runtime.engine().unwrap();
    let trees = runtime.inner.vaults.trees();
    let changes = trees.diff(before, vault.head).unwrap();
    let begin = || {
        let base = Arc::new(ViewBase::at(runtime, &engine, before).unwrap());
        Beginning::on(runtime, &vault, base).unwrap()
    };
    let mut whole = begin();
    assert_eq!(place.layers(), Vec::<PathBuf>::new(), "a draft is no layer");
    assert!(whole.lead(runtime, &engine, &changes).unwrap());
    assert_eq!(place.layers().len(), 1);
    // One that lacks something is not the head, and never becomes a layer.
    let mut part = begin();
    let lacking: Vec<_> = changes
        .iter()
        .filter(|it| it.path != path("/d/new"))
        .cloned()
        .collect();
    assert!(!part.lead(runtime, &engine, &lacking).unwrap());
    assert_eq!(place.layers().len(), 1);
    let late = make_ready(runtime, &engine, &part.layer, &mut part.cache).unwrap();
    assert_eq!(late, None);
}
