//! Pages of lists.

use super::failure::Failure;
use avfs_runtime::ErrorKind;
use std::num::NonZeroUsize;

/// A part of a list, and where the next one begins.
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The first items of a list. The cursor of the next page is the key of the last one.
    pub fn of(
        mut items: Vec<T>,
        limit: Option<NonZeroUsize>,
        key: impl Fn(&T) -> String,
    ) -> Page<T> {
        let more = limit.is_some_and(|limit| items.len() > limit.get());
        if let Some(limit) = limit {
            items.truncate(limit.get());
        }
        let next = items.last().filter(|_| more).map(key);
        Page { items, next }
    }
}

/// What follows the item with this key, in a list whose order cannot be read from the keys.
pub(crate) fn after<T>(
    mut items: Vec<T>,
    cursor: Option<&str>,
    key: impl Fn(&T) -> String,
) -> Result<Vec<T>, Failure> {
    let Some(cursor) = cursor else {
        return Ok(items);
    };
    let at = items.iter().position(|item| key(item) == cursor);
    let at = at.ok_or_else(|| no_cursor(cursor))?;
    Ok(items.split_off(at + 1))
}

/// The item that a page ended with is not in the list any more, or never was.
pub(crate) fn no_cursor(cursor: &str) -> Failure {
    let problem = format!("the list has no item {cursor:?} to continue after");
    Failure::new(ErrorKind::Conflict, problem).hint("begin again without a cursor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_whole_list() {
        let all: Vec<u32> = (0..23).collect();
        let key = |item: &u32| item.to_string();
        for limit in 1..30 {
            let (mut seen, mut cursor) = (Vec::new(), None::<String>);
            loop {
                let rest = after(all.clone(), cursor.as_deref(), key).unwrap();
                let page = Page::of(rest, NonZeroUsize::new(limit), key);
                assert!(!page.items.is_empty() && page.items.len() <= limit);
                seen.extend(page.items);
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, all, "{limit}");
        }
        assert!(Page::of(Vec::<u32>::new(), None, key).next.is_none());
        let lost = after(all, Some("99"), key).unwrap_err();
        assert_eq!(lost.problem().status, 409);
    }
}
