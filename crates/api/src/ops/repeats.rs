//! Answers that are kept for requests with an idempotency key: a repeated request gets the first answer, and nothing is
//! done twice.

use super::app::lock;
use super::failure::Failure;
use crate::bounds::{
    KEPT_ANSWER_MAX, KEPT_ANSWERS_BYTES, KEPT_ANSWERS_MAX, KEPT_ANSWERS_OF_ONE, KEPT_ANSWERS_TIME,
};
use avfs_runtime::ErrorKind;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::watch;

/// What must be equal for two requests to be the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    pub principal: String,
    pub operation: &'static str,
    pub address: String,
    /// What the caller calls it.
    pub key: String,
}

/// A request with a key, and the hash of its body.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub slot: Slot,
    pub hash: [u8; 32],
}

/// What becomes of such a request.
pub(crate) enum Claim {
    /// It is the first, and is carried out.
    Mine(Mine),
    /// It was carried out, with this answer.
    Answered(Arc<[u8]>),
}

/// The answers of a daemon. They are lost when it ends.
#[derive(Clone, Default)]
pub(crate) struct Repeats(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    entries: HashMap<Slot, Entry>,
    /// The kept ones, the oldest first.
    order: VecDeque<Slot>,
    bytes: usize,
}

struct Entry {
    hash: [u8; 32],
    progress: Progress,
}

enum Progress {
    /// Closed when it is over.
    Running(watch::Receiver<()>),
    Done {
        /// `None`: it was too large to be kept.
        answer: Option<Arc<[u8]>>,
        at: Instant,
    },
}

impl Repeats {
    /// Waits until a request with the same key that is under way is over. If that failed, this one is carried out.
    pub async fn claim(&self, asked: Asked) -> Result<Claim, Failure> {
        loop {
            let mut running = match self.look(&asked)? {
                Looked::Claim(claim) => return Ok(claim),
                Looked::Running(running) => running,
            };
            // Nothing is ever sent: this returns when the other end is dropped.
            let _ = running.changed().await;
        }
    }

    fn look(&self, asked: &Asked) -> Result<Looked, Failure> {
        let mut state = lock(&self.0);
        state.forget_old(Instant::now());
        let Some(entry) = state.entries.get(&asked.slot) else {
            let (over, running) = watch::channel(());
            let entry = Entry {
                hash: asked.hash,
                progress: Progress::Running(running),
            };
            state.entries.insert(asked.slot.clone(), entry);
            return Ok(Looked::Claim(Claim::Mine(Mine {
                all: Arc::clone(&self.0),
                slot: asked.slot.clone(),
                _over: over,
            })));
        };
        if entry.hash != asked.hash {
            let problem = "this idempotency key was used for another request";
            return Err(Failure::unprocessable(problem).hint("use a new key for a new request"));
        }
        match &entry.progress {
            Progress::Running(running) => Ok(Looked::Running(running.clone())),
            Progress::Done {
                answer: Some(answer),
                ..
            } => Ok(Looked::Claim(Claim::Answered(Arc::clone(answer)))),
            Progress::Done { answer: None, .. } => {
                let problem = "this was done already, and its answer was too large to be kept";
                Err(Failure::new(ErrorKind::Conflict, problem).hint("look at what there is now"))
            }
        }
    }
}

enum Looked {
    Claim(Claim),
    Running(watch::Receiver<()>),
}

/// The right to carry a request out. If it is dropped without an answer, the next one has it.
pub(crate) struct Mine {
    all: Arc<Mutex<State>>,
    slot: Slot,
    /// Dropped when it is over, which others wait for.
    _over: watch::Sender<()>,
}

impl Mine {
    /// Keeps the answer for those that repeat the request.
    pub fn keep(self, answer: &[u8]) {
        let mut state = lock(&self.all);
        let kept = (answer.len() <= KEPT_ANSWER_MAX).then(|| Arc::<[u8]>::from(answer));
        state.bytes += kept.as_ref().map_or(0, |it| it.len());
        if let Some(entry) = state.entries.get_mut(&self.slot) {
            entry.progress = Progress::Done {
                answer: kept,
                at: Instant::now(),
            };
        }
        state.order.push_back(self.slot.clone());
        state.make_room(&self.slot.principal);
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        let mut state = lock(&self.all);
        let entry = state.entries.get(&self.slot);
        if entry.is_some_and(|it| matches!(it.progress, Progress::Running(_))) {
            state.entries.remove(&self.slot);
        }
    }
}

impl State {
    fn forget_old(&mut self, now: Instant) {
        while let Some(oldest) = self.order.front() {
            let entry = self.entries.get(oldest);
            let is_old = entry.is_none_or(|it| match it.progress {
                Progress::Done { at, .. } => now.duration_since(at) > KEPT_ANSWERS_TIME,
                Progress::Running(_) => false,
            });
            if !is_old {
                return;
            }
            self.forget(0);
        }
    }

    /// A caller with many keys loses its own oldest first.
    fn make_room(&mut self, principal: &str) {
        let own = |slot: &Slot| slot.principal == principal;
        let count = self.order.iter().filter(|slot| own(slot)).count();
        if count > KEPT_ANSWERS_OF_ONE
            && let Some(at) = self.order.iter().position(own)
        {
            self.forget(at);
        }
        while self.order.len() > KEPT_ANSWERS_MAX || self.bytes > KEPT_ANSWERS_BYTES {
            self.forget(0);
        }
    }

    fn forget(&mut self, at: usize) {
        let entry = self
            .order
            .remove(at)
            .and_then(|it| self.entries.remove(&it));
        if let Some(Entry {
            progress:
                Progress::Done {
                    answer: Some(answer),
                    ..
                },
            ..
        }) = entry
        {
            self.bytes -= answer.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(principal: &str, key: &str, body: u8) -> Asked {
        Asked {
            slot: Slot {
                principal: principal.into(),
                operation: "vault_create",
                address: "/v1/vaults".into(),
                key: key.into(),
            },
            hash: [body; 32],
        }
    }

    fn mine(repeats: &Repeats, asked: &Asked) -> Mine {
        match repeats.look(asked).unwrap() {
            Looked::Claim(Claim::Mine(mine)) => mine,
            _ => panic!("it was asked for before"),
        }
    }

    fn answered(repeats: &Repeats, asked: &Asked) -> Option<Vec<u8>> {
        match repeats.look(asked) {
            Ok(Looked::Claim(Claim::Answered(answer))) => Some(answer.to_vec()),
            _ => None,
        }
    }

    #[test]
    fn the_first_answer_is_everybodys() {
        let repeats = Repeats::default();
        let one = asked("a", "k", 1);
        let first = mine(&repeats, &one);
        assert!(matches!(repeats.look(&one), Ok(Looked::Running(_))));
        first.keep(b"made");
        assert_eq!(answered(&repeats, &one).as_deref(), Some(&b"made"[..]));
        let other = repeats.look(&asked("a", "k", 2)).err().unwrap();
        assert_eq!(other.problem().status, 422);
        // Another caller's key of the same name is another key.
        mine(&repeats, &asked("b", "k", 2)).keep(b"other");
        assert_eq!(answered(&repeats, &one).as_deref(), Some(&b"made"[..]));
    }

    #[test]
    fn what_failed_is_done_again() {
        let repeats = Repeats::default();
        let one = asked("a", "k", 1);
        drop(mine(&repeats, &one));
        drop(mine(&repeats, &asked("a", "k", 2)));
        assert!(lock(&repeats.0).entries.is_empty());
    }

    #[test]
    fn a_large_answer_is_not_kept_and_nothing_is_done_twice() {
        let repeats = Repeats::default();
        let one = asked("a", "k", 1);
        mine(&repeats, &one).keep(&vec![b' '; KEPT_ANSWER_MAX + 1]);
        let again = repeats.look(&one).err().unwrap();
        assert_eq!(again.problem().status, 409);
        assert_eq!(lock(&repeats.0).bytes, 0);
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let repeats = Repeats::default();
        let other = asked("other", "k", 1);
        mine(&repeats, &other).keep(b"kept");
        for number in 0..KEPT_ANSWERS_OF_ONE + 9 {
            mine(&repeats, &asked("a", &number.to_string(), 1)).keep(b"made");
        }
        assert!(
            answered(&repeats, &other).is_some(),
            "somebody else's stays"
        );
        assert!(answered(&repeats, &asked("a", "9", 1)).is_some());
        let state = || lock(&repeats.0);
        assert_eq!(state().order.len(), KEPT_ANSWERS_OF_ONE + 1);
        let answer = vec![b' '; KEPT_ANSWER_MAX];
        for number in 0..KEPT_ANSWERS_BYTES / KEPT_ANSWER_MAX + 9 {
            let principal = (number / 9).to_string();
            mine(&repeats, &asked(&principal, &number.to_string(), 1)).keep(&answer);
            assert!(state().bytes <= KEPT_ANSWERS_BYTES);
        }
        state().forget_old(Instant::now() + KEPT_ANSWERS_TIME + KEPT_ANSWERS_TIME);
        let state = state();
        assert!(state.entries.is_empty() && state.order.is_empty() && state.bytes == 0);
    }
}
