//! What was tried again for somebody because a process of ours had died.
//!
//! Helpers are replaced deep below the use case that needs them. Whoever works for a caller does so on one thread, so what is
//! replaced is noted there, and whoever answers the caller takes the notes.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Whose work was tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retried {
    /// The keeper was started again, and with it all that it holds.
    Keeper,
    /// A sandbox had died before the command could have begun, or while nothing ran in it; another one was opened.
    Sandbox,
    /// A layer was read again.
    Scanner,
    /// What is no longer needed was removed again.
    Sweeper,
    /// A view was changed again.
    Writer,
}

impl Retried {
    pub fn as_str(self) -> &'static str {
        match self {
            Retried::Keeper => "keeper",
            Retried::Sandbox => "sandbox",
            Retried::Scanner => "scanner",
            Retried::Sweeper => "sweeper",
            Retried::Writer => "writer",
        }
    }
}

thread_local! {
    /// There while somebody wants to know.
    static NOTED: RefCell<Option<BTreeSet<Retried>>> = const { RefCell::new(None) };
}

/// Notes for whoever this thread works for that something is tried again.
pub(crate) fn note(what: Retried) {
    NOTED.with_borrow_mut(|noted| noted.as_mut().map(|noted| noted.insert(what)));
}

/// Does some work on this thread, and gives what was tried again meanwhile. Whoever called for the work around it learns of
/// it, too.
pub fn noting<T>(work: impl FnOnce() -> T) -> (T, Vec<Retried>) {
    let noting = Noting::begin();
    let done = work();
    (done, noting.end())
}

/// Notes are taken until it goes away, also by a panic: the thread serves others afterwards.
struct Noting {
    outer: Option<BTreeSet<Retried>>,
}

impl Noting {
    fn begin() -> Noting {
        Noting {
            outer: NOTED.replace(Some(BTreeSet::new())),
        }
    }

    fn end(self) -> Vec<Retried> {
        let noted = NOTED.with_borrow(|noted| noted.iter().flatten().copied().collect());
        drop(self);
        noted
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        let mut outer = self.outer.take();
        NOTED.with_borrow_mut(|noted| {
            if let (Some(outer), Some(noted)) = (&mut outer, noted.take()) {
                outer.extend(noted);
            }
            *noted = outer;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_works_learns_what_was_tried_again_and_nobody_else() {
        note(Retried::Keeper);
        let ((), outer) = noting(|| {
            note(Retried::Scanner);
            let ((), inner) = noting(|| {
                note(Retried::Sandbox);
                note(Retried::Sandbox);
            });
            assert_eq!(inner, [Retried::Sandbox]);
        });
        assert_eq!(outer, [Retried::Sandbox, Retried::Scanner]);
        assert_eq!(noting(|| ()).1, []);
        let panicked = std::panic::catch_unwind(|| noting(|| panic!("as a fault of ours would")));
        assert!(panicked.is_err() && NOTED.with_borrow(Option::is_none));
        let elsewhere = std::thread::spawn(|| noting(|| ()).1);
        let ((), here) = noting(|| note(Retried::Writer));
        assert_eq!(
            (here, elsewhere.join().unwrap()),
            (vec![Retried::Writer], vec![])
        );
    }
}
