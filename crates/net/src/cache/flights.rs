//! One download at a time for each key: who comes first makes it, the others wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::download::Download;
use super::entry::Entry;
use super::key::Key;

/// How far it has come.
#[derive(Clone)]
pub(crate) enum Stage {
    /// The host has not answered.
    Asked,
    /// The body is coming.
    Coming(Arc<Download>),
    /// The host has said that what is kept is still right.
    Kept(Arc<Entry>),
    /// The answer is for who asked, and everybody else must ask for himself.
    NotShared,
    /// It failed; another may try.
    Failed,
}

#[derive(Default)]
pub(crate) struct Flights(Mutex<HashMap<Key, watch::Receiver<Stage>>>);

/// What to do about a key.
pub(crate) enum Joined {
    /// Ask the host.
    First(Lead),
    /// Wait for somebody who does.
    Waits(watch::Receiver<Stage>),
}

/// The right, and the duty, to ask for a key. Dropped before there is an answer, it has failed.
pub(crate) struct Lead {
    key: Key,
    flights: Arc<Flights>,
    stage: watch::Sender<Stage>,
}

impl Flights {
    pub(crate) fn join(self: &Arc<Flights>, key: Key) -> Joined {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stage) = flights.get(&key) {
            return Joined::Waits(stage.clone());
        }
        let (stage, receiver) = watch::channel(Stage::Asked);
        flights.insert(key, receiver);
        Joined::First(Lead {
            key,
            flights: Arc::clone(self),
            stage,
        })
    }
}

impl Lead {
    pub(crate) fn key(&self) -> Key {
        self.key
    }

    pub(crate) fn tell(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut flights = self
            .flights
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        flights.remove(&self.key);
        self.stage.send_if_modified(|stage| {
            let unanswered = matches!(stage, Stage::Asked);
            if unanswered {
                *stage = Stage::Failed;
            }
            unanswered
        });
    }
}
