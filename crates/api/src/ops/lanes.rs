//! Lanes: how many requests of each kind run at once, in total, of agents, and of one process or credential.

use super::caller::{Caller, Share};
use super::failure::Failure;
use crate::bounds::{LANES, LaneBound};
use avfs_runtime::{ErrorKind, PrincipalKind};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many processes and credentials are remembered before those that ask for nothing are forgotten. Every call of the command line
/// is another process.
const FORGET_ABOVE: usize = 16;

pub(crate) struct Lanes(Vec<Lane>);

struct Lane {
    bound: LaneBound,
    total: Arc<Semaphore>,
    agents: Arc<Semaphore>,
    /// By process or credential.
    shares: Mutex<HashMap<Share, Weak<Semaphore>>>,
}

/// A request's place in a lane, until it is dropped.
pub(crate) struct LaneGuard {
    _permits: [Option<OwnedSemaphorePermit>; 3],
}

impl Lanes {
    pub fn new() -> Lanes {
        let lane = |bound: &LaneBound| Lane {
            bound: *bound,
            total: Arc::new(Semaphore::new(bound.total)),
            agents: Arc::new(Semaphore::new(bound.agents)),
            shares: Mutex::default(),
        };
        Lanes(LANES.iter().map(lane).collect())
    }

    /// Waits for a place, in the order of arrival.
    pub async fn enter(&self, bound: LaneBound, caller: &Caller) -> Result<LaneGuard, Failure> {
        let lane = self.0.iter().find(|lane| lane.bound == bound);
        let lane = lane.expect("every bound is in the list that lanes are made from");
        let agents =
            (caller.principal.kind() == PrincipalKind::Agent).then(|| Arc::clone(&lane.agents));
        let share = lane.share(caller.share);
        let wait = async {
            // The widest limit last: a request that waits for a narrow one blocks nobody else.
            let share = share.acquire_owned().await.ok();
            let agents = match agents {
                Some(agents) => agents.acquire_owned().await.ok(),
                None => None,
            };
            let total = Arc::clone(&lane.total).acquire_owned().await.ok();
            LaneGuard {
                _permits: [share, agents, total],
            }
        };
        tokio::time::timeout(bound.patience, wait)
            .await
            .map_err(|_| full(&bound))
    }
}

impl Lane {
    fn share(&self, of: Share) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if shares.len() > FORGET_ABOVE {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        if let Some(share) = shares.get(&of).and_then(Weak::upgrade) {
            return share;
        }
        let share = Arc::new(Semaphore::new(self.bound.one));
        shares.insert(of, Arc::downgrade(&share));
        share
    }
}

fn full(bound: &LaneBound) -> Failure {
    let what = format!(
        "too many requests of this kind ({}) are under way: at most {}, {} of agents, {} of one process or key",
        bound.name, bound.total, bound.agents, bound.one
    );
    Failure::new(ErrorKind::Unavailable, what).hint("try again in a moment")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::{SHORT, WAIT};
    use crate::ops::caller::{Grant, Peer};
    use crate::table::Class;
    use avfs_runtime::Principal;
    use std::time::Duration;

    fn caller(class: Class, pid: i32) -> Caller {
        let peer = Peer::Process {
            uid: Some(0),
            pid: Some(pid),
        };
        let principal = match class {
            Class::Agent => Principal::AGENT,
            Class::Owner => Principal::OWNER,
        };
        Caller {
            class,
            principal,
            peer,
            share: peer.share(),
            grant: Grant::default(),
            trace: None,
        }
    }

    #[tokio::test]
    async fn agents_leave_places_to_the_owner() {
        let lanes = Lanes::new();
        let mut places = Vec::new();
        for pid in 0..10_000 {
            match lanes.enter(WAIT, &caller(Class::Agent, pid)).await {
                Ok(place) => places.push(place),
                Err(failure) => {
                    assert_eq!(failure.problem().kind, ErrorKind::Unavailable.as_str());
                    break;
                }
            }
        }
        assert_eq!(places.len(), WAIT.agents);
        let owner = lanes.enter(WAIT, &caller(Class::Owner, 1)).await;
        assert!(owner.is_ok());
        places.pop();
        assert!(lanes.enter(WAIT, &caller(Class::Agent, 1)).await.is_ok());
    }

    #[tokio::test]
    async fn processes_that_ask_for_nothing_are_forgotten() {
        let lanes = Lanes::new();
        for pid in 0..1_000 {
            drop(lanes.enter(SHORT, &caller(Class::Owner, pid)).await);
        }
        let remembered = |lane: &Lane| lane.shares.lock().unwrap().len();
        let most = lanes.0.iter().map(remembered).max().unwrap();
        assert!(most <= FORGET_ABOVE + 1, "{most}");
    }

    #[tokio::test]
    async fn one_process_leaves_places_to_others() {
        let lanes = Lanes::new();
        let mut places = Vec::new();
        for _ in 0..SHORT.one {
            places.push(lanes.enter(SHORT, &caller(Class::Owner, 1)).await.unwrap());
        }
        let first = caller(Class::Owner, 1);
        let next = tokio::time::timeout(Duration::ZERO, lanes.enter(SHORT, &first));
        assert!(next.await.is_err(), "it waits for its turn");
        assert!(lanes.enter(SHORT, &caller(Class::Owner, 2)).await.is_ok());
        drop(places);
        assert!(lanes.enter(SHORT, &caller(Class::Owner, 1)).await.is_ok());
    }
}
