//! How a request becomes a path and a query.

use super::*;
use crate::wire::{Diff, Find, VaultList};

#[test]
fn fields_become_a_query() {
    let diff = Diff {
        from: "vault:a b&c".into(),
        to: "HEAD".into(),
        patch: true,
        ..Diff::default()
    };
    let text = query(&diff).unwrap();
    let text = text.strip_prefix('?').unwrap();
    assert!(!text.contains([' ', ':', '#']), "{text}");
    let back: Diff = serde_html_form::from_str(text).unwrap();
    let fields = |diff: &Diff| serde_json::to_value(diff).unwrap();
    assert_eq!(fields(&back), fields(&diff));
    assert_eq!(query(&VaultList::default()).unwrap(), "");
    let find = Find {
        tags: vec!["a".into(), "b c".into()],
        ..Find::default()
    };
    let text = query(&find).unwrap();
    let back: Find = serde_html_form::from_str(text.strip_prefix('?').unwrap()).unwrap();
    assert_eq!((back.tags, back.types.len()), (find.tags, 0), "{text}");
}

#[test]
fn a_name_cannot_leave_its_place() {
    assert_eq!(segment("../x?y#z"), "..%2Fx%3Fy%23z");
    assert_eq!(segment("@current"), "@current");
}
