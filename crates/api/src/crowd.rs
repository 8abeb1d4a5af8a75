//! The connections of a listener: how many there are, how many of each client, and which one is closed when there are too many.

use crate::ops::caller::Share;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{Notify, watch};

/// How many connections a door takes.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Room {
    pub total: usize,
    pub of_one: usize,
    /// Whether the connection that was idle the longest is closed for a new one. A new connection is closed so only after
    /// as many others have come.
    pub closes_idle: bool,
}

/// The connections of one door.
pub(crate) struct Crowd {
    room: Room,
    members: Mutex<HashMap<Share, Vec<Arc<Member>>>>,
    count: watch::Sender<usize>,
}

struct Member {
    state: Mutex<State>,
    leave: Notify,
}

struct State {
    requests: usize,
    /// Since when nothing has been asked.
    since: Instant,
}

/// Why somebody is not let in.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Full {
    /// There are too many connections; some will end.
    Total,
    /// This one has too many.
    OfOne,
}

impl Crowd {
    pub fn new(room: Room) -> Arc<Crowd> {
        Arc::new(Crowd {
            room,
            members: Mutex::default(),
            count: watch::Sender::new(0),
        })
    }

    /// Takes a place. Whoever has to go for it is told so, and counts no more.
    pub fn enter(self: &Arc<Crowd>, share: Share) -> Result<Place, Full> {
        let mut members = lock(&self.members);
        if members.get(&share).map_or(0, Vec::len) >= self.room.of_one
            && !self.dismiss(&mut members, share)
        {
            return Err(Full::OfOne);
        }
        if members.values().map(Vec::len).sum::<usize>() >= self.room.total {
            let largest = members.iter().max_by_key(|(_, of_one)| of_one.len());
            let largest = largest.map(|(share, _)| *share);
            if !largest.is_some_and(|share| self.dismiss(&mut members, share)) {
                return Err(Full::Total);
            }
        }
        let member = Arc::new(Member {
            state: Mutex::new(State {
                requests: 0,
                since: Instant::now(),
            }),
            leave: Notify::new(),
        });
        members.entry(share).or_default().push(Arc::clone(&member));
        self.count.send_modify(|count| *count += 1);
        Ok(Place {
            crowd: Arc::clone(self),
            share,
            member,
        })
    }

    /// Sends away who has lain idle the longest of a share; gives whether there was one.
    fn dismiss(&self, members: &mut HashMap<Share, Vec<Arc<Member>>>, share: Share) -> bool {
        let Some(of_one) = members.get_mut(&share).filter(|_| self.room.closes_idle) else {
            return false;
        };
        let since = of_one.iter().enumerate().filter_map(|(at, member)| {
            let state = lock(&member.state);
            (state.requests == 0).then_some((state.since, at))
        });
        let Some((_, at)) = since.min() else {
            return false;
        };
        // It has its permit even if it does not listen yet.
        of_one.swap_remove(at).leave.notify_one();
        true
    }

    /// Ends when nobody is connected any more.
    pub async fn empty(&self) {
        let mut count = self.count.subscribe();
        // The sender is in this very crowd.
        let _ = count.wait_for(|count| *count == 0).await;
    }
}

/// One connection, until it is dropped.
pub(crate) struct Place {
    crowd: Arc<Crowd>,
    share: Share,
    member: Arc<Member>,
}

impl Place {
    /// Ends when this connection has to make room.
    pub async fn dismissed(&self) {
        self.member.leave.notified().await;
    }

    /// A request of it is under way until the guard goes.
    pub fn busy(&self) -> Busy {
        lock(&self.member.state).requests += 1;
        Busy(Arc::clone(&self.member))
    }

    /// Whether idle connections here make room for others.
    pub fn makes_room(&self) -> bool {
        self.crowd.room.closes_idle
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut members = lock(&self.crowd.members);
        if let Some(of_one) = members.get_mut(&self.share) {
            of_one.retain(|member| !Arc::ptr_eq(member, &self.member));
            if of_one.is_empty() {
                members.remove(&self.share);
            }
        }
        self.crowd.count.send_modify(|count| *count -= 1);
    }
}

/// A request under way.
pub(crate) struct Busy(Arc<Member>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.requests -= 1;
        state.since = Instant::now();
    }
}

/// The data is whole even if a holder panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Share = Share::Process(Some(1));
    const TWO: Share = Share::Process(Some(2));

    fn crowd(total: usize, of_one: usize, closes_idle: bool) -> Arc<Crowd> {
        Crowd::new(Room {
            total,
            of_one,
            closes_idle,
        })
    }

    #[test]
    fn connections_are_counted_by_share() {
        let crowd = crowd(4, 3, false);
        let one: Vec<_> = (0..3).map(|_| crowd.enter(ONE).unwrap()).collect();
        assert_eq!(crowd.enter(ONE).err(), Some(Full::OfOne));
        let two = crowd.enter(TWO).unwrap();
        assert_eq!(crowd.enter(TWO).err(), Some(Full::Total));
        drop((one, two));
        assert!(crowd.enter(ONE).is_ok());
        assert!(lock(&crowd.members).is_empty(), "nobody is remembered");
    }

    #[tokio::test]
    async fn who_lies_idle_the_longest_makes_room() {
        let crowd = crowd(9, 2, true);
        let first = crowd.enter(ONE).unwrap();
        let second = crowd.enter(ONE).unwrap();
        let busy = first.busy();
        let third = crowd.enter(ONE).unwrap();
        second.dismissed().await;
        let working = third.busy();
        assert_eq!(
            crowd.enter(ONE).err(),
            Some(Full::OfOne),
            "both are at work"
        );
        drop((busy, working));
        let _fourth = crowd.enter(ONE).unwrap();
        first.dismissed().await;
        drop((first, second, third));
        assert_eq!(*crowd.count.borrow(), 1);
    }

    #[test]
    fn when_all_places_are_taken_the_largest_share_makes_room() {
        let crowd = crowd(3, 2, true);
        let _many: Vec<_> = (0..2).map(|_| crowd.enter(ONE).unwrap()).collect();
        let _two = crowd.enter(TWO).unwrap();
        let _three = crowd.enter(Share::Process(None)).unwrap();
        let left = |share| lock(&crowd.members).get(&share).map_or(0, Vec::len);
        assert_eq!((left(ONE), left(TWO)), (1, 1));
    }

    #[tokio::test]
    async fn the_end_waits_for_the_last_one() {
        let crowd = crowd(9, 9, false);
        let place = crowd.enter(ONE).unwrap();
        let waited = tokio::time::timeout(std::time::Duration::ZERO, crowd.empty());
        assert!(waited.await.is_err());
        drop(place);
        crowd.empty().await;
    }
}
