//! Attempts of execs that run are journaled while they run: the first of each kind soon after it was made, all others with it, with the
//! next of a new kind, or when the exec ends. The entries of an exec add up to what it attempted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use avfs_net::{Attempt, Attempts, ExecKey, Sink};
use avfs_vault::ExecId;

use crate::live::network::{LiveNetwork, Open};
use crate::runtime::lock;
use crate::{Error, Result};

/// What is attempted within this time is one entry. A command that ends within it has one entry in all.
const GATHERED: Duration = Duration::from_millis(100);
/// Keys that wait. A key that finds no room is told of with the next, or when its exec ends.
const WAITING: usize = 1024;

/// Other execs that may have made an attempt, by their keys.
pub(crate) type Others = BTreeMap<ExecKey, ExecId>;
/// Writes attempts of one exec into the journal.
pub(crate) type Journal = Arc<dyn Fn(&Attempts, &Others) -> Result<()> + Send + Sync>;

/// What an exec tried to reach, once its network has ended.
pub(crate) struct Left {
    pub all: Attempts,
    /// What of it is not in the journal yet.
    pub untold: Attempts,
    pub others: Others,
}

/// A thread that journals, started with the first sandbox. It ends with all that can tell it something.
#[derive(Default)]
pub(super) struct Teller(Mutex<Option<SyncSender<ExecKey>>>);

impl Teller {
    /// What a sandbox tells of its execs.
    pub fn of(&self, open: &Open) -> Result<Arc<dyn Sink>> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = &*started {
            return Ok(Arc::new(Queue(queue.clone())));
        }
        let (queue, waiting) = sync_channel(WAITING);
        let open = Arc::downgrade(open);
        thread::Builder::new()
            .name("avfs-attempts".into())
            .spawn(move || tell_all(&waiting, &open))
            .map_err(Error::io("starting the thread that journals attempts"))?;
        *started = Some(queue.clone());
        Ok(Arc::new(Queue(queue)))
    }
}

fn tell_all(waiting: &Receiver<ExecKey>, open: &Weak<Mutex<Vec<Weak<LiveNetwork>>>>) {
    while let Ok(first) = waiting.recv() {
        thread::sleep(GATHERED);
        let keys: BTreeSet<ExecKey> = [first].into_iter().chain(waiting.try_iter()).collect();
        let Some(open) = open.upgrade() else {
            return;
        };
        let networks: Vec<_> = lock(&open).iter().filter_map(Weak::upgrade).collect();
        drop(open);
        for key in keys {
            networks.iter().for_each(|network| network.tell(key));
        }
    }
}

struct Queue(SyncSender<ExecKey>);

impl Sink for Queue {
    fn attempted(&self, attempt: &Attempt) {
        for key in &attempt.candidates {
            let _ = self.0.try_send(*key);
        }
    }
}

/// What is known of one exec's attempts.
pub(super) struct Told {
    journal: Journal,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    all: Attempts,
    /// What could not be journaled.
    untold: Attempts,
}

impl Told {
    pub fn new(journal: Journal) -> Told {
        Told {
            journal,
            state: Mutex::default(),
        }
    }

    /// Journals what was attempted since the last time. Held until it is written, so that the end of the exec comes after it.
    pub fn tell(&self, take: impl FnOnce() -> Attempts, others: impl Fn(&Attempts) -> Others) {
        let mut state = lock(&self.state);
        let new = take();
        state.all.add(new.clone());
        state.untold.add(new);
        let untold = std::mem::take(&mut state.untold);
        if !untold.is_empty() && (self.journal)(&untold, &others(&untold)).is_err() {
            // A full disk, for example. The end of the exec tries again, and reports what is wrong.
            state.untold = untold;
        }
    }

    /// All attempts, and those that are not in the journal yet, once the exec has ended by `end`.
    pub fn end(&self, end: impl FnOnce() -> Attempts) -> (Attempts, Attempts) {
        let mut state = lock(&self.state);
        let rest = end();
        state.all.add(rest.clone());
        state.untold.add(rest);
        let State { all, untold } = std::mem::take(&mut *state);
        (all, untold)
    }
}
