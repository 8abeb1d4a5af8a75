//! The commands of one sandbox that have a network: their terms, their attempts, and their live connections.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use avfs_policy::{Denial, Host, HostPort, Verdict};
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::attempts::{Attempts, Door, Kind, Outcome, Table};
use crate::config::Bounds;
use crate::error::Error;
use crate::exec_key::ExecKey;
use crate::meter::{Account, Meter};
use crate::refusal::Refusal;
use crate::requests::Secret;
use crate::sandbox::{Attribution, Sink, Transport};
use crate::terms::Terms;

/// The commands of one sandbox.
pub(crate) struct Execs {
    state: Mutex<State>,
    attribution: Arc<dyn Attribution>,
    sink: Arc<dyn Sink>,
    bounds: Bounds,
}

#[derive(Default)]
struct State {
    present: BTreeMap<ExecKey, Present>,
    live: HashMap<u64, Live>,
    next: u64,
}

struct Present {
    terms: Arc<Terms>,
    account: Arc<Account>,
    attempts: Table,
}

/// An open connection, which is cut when the terms no longer allow it.
struct Live {
    who: Who,
    target: Option<Target>,
    cut: CancellationToken,
    meter: Arc<Meter>,
    /// What the bytes that pass now are counted for, and how many had passed before.
    current: Option<(Kind, Moved)>,
}

/// Bytes in and out.
type Moved = (u64, u64);

#[derive(Clone)]
struct Target {
    at: HostPort,
    address: Option<IpAddr>,
    /// Whether its requests are seen.
    inspected: bool,
}

/// Which commands something may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// Nobody knows: the terms of all commands that are present must allow it.
    Unknown,
    /// One of these: the terms of each must allow it.
    These(Vec<ExecKey>),
}

/// What the terms say.
enum Judged {
    Allowed { rule: String, outcome: Outcome },
    Denied(Denial),
}

impl Execs {
    pub(crate) fn new(
        attribution: Arc<dyn Attribution>,
        sink: Arc<dyn Sink>,
        bounds: Bounds,
    ) -> Execs {
        Execs {
            state: Mutex::default(),
            attribution,
            sink,
            bounds,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self, key: ExecKey, terms: Arc<Terms>) -> Result<(), Error> {
        let mut state = self.lock();
        if state.present.contains_key(&key) {
            return Err(Error::Entered);
        }
        if state.present.len() >= self.bounds.execs_per_sandbox {
            return Err(Error::TooManyExecs(self.bounds.execs_per_sandbox));
        }
        let present = Present {
            account: Arc::new(Account::new(&terms)),
            terms,
            attempts: Table::default(),
        };
        state.present.insert(key, present);
        state.cut_what_is_denied();
        Ok(())
    }

    /// Changes the terms of a command, and cuts connections that they no longer allow.
    pub(crate) fn update(&self, key: ExecKey, terms: Arc<Terms>) {
        let mut state = self.lock();
        if let Some(present) = state.present.get_mut(&key) {
            present.account.change(&terms);
            present.terms = terms;
        }
        state.cut_what_is_denied();
    }

    /// Forgets a command, and cuts connections that can only be its own.
    pub(crate) fn leave(&self, key: ExecKey) -> Attempts {
        let mut state = self.lock();
        state.settle();
        let left = state.present.remove(&key);
        for live in state.live.values_mut() {
            if let Who::These(keys) = &mut live.who {
                keys.retain(|other| *other != key);
                if keys.is_empty() {
                    live.cut.cancel();
                }
            }
        }
        state.cut_what_is_denied();
        left.map(|mut left| left.attempts.take())
            .unwrap_or_default()
    }

    pub(crate) fn take_attempts(&self, key: ExecKey) -> Attempts {
        let mut state = self.lock();
        state.settle();
        let present = state.present.get_mut(&key);
        present
            .map(|present| present.attempts.take())
            .unwrap_or_default()
    }

    pub(crate) fn cut_all(&self) {
        for live in self.lock().live.values() {
            live.cut.cancel();
        }
    }

    /// The terms of all commands, each different one once.
    pub(crate) fn all_terms(&self) -> Vec<Arc<Terms>> {
        let state = self.lock();
        let mut all: Vec<Arc<Terms>> = Vec::new();
        for present in state.present.values() {
            if !all.contains(&present.terms) {
                all.push(present.terms.clone());
            }
        }
        all
    }

    /// Which commands a peer may be. The sandbox is asked only where the answer matters.
    pub(crate) async fn who(self: &Arc<Self>, transport: Transport, peer: SocketAddr) -> Who {
        if self.all_terms().len() <= 1 {
            return Who::These(self.lock().present.keys().copied().collect());
        }
        let this = Arc::clone(self);
        let asked = move || this.attribution.candidates(transport, peer);
        let found = tokio::task::spawn_blocking(asked).await.unwrap_or_default();
        let state = self.lock();
        let present = found
            .into_iter()
            .filter(|key| state.present.contains_key(key));
        let mut keys: Vec<ExecKey> = present.collect();
        keys.sort();
        keys.dedup();
        match keys.is_empty() {
            true => Who::Unknown,
            false => Who::These(keys),
        }
    }

    /// Whether all terms resolve the name, on whatever port it will be dialled.
    pub(crate) fn knows(&self, who: &Who, host: &Host) -> bool {
        let state = self.lock();
        let mut terms = state.terms_of(who).peekable();
        let some = terms.peek().is_some();
        some && terms.all(|terms| terms.observe || terms.list.knows(host))
    }

    /// Counts an attempt with all commands that it may come from.
    pub(crate) fn count(&self, who: &Who, kind: &Kind, allow: Option<String>) {
        let mut state = self.lock();
        let candidates = state.keys_of(who);
        let attempt = kind.attempt(1, allow, candidates.clone());
        let mut first = false;
        for key in &candidates {
            if let Some(present) = state.present.get_mut(key) {
                let table = &mut present.attempts;
                first |= table.count(kind, &attempt, self.bounds.attempts_per_exec);
            }
        }
        drop(state);
        if first {
            self.sink.attempted(&attempt);
        }
    }

    pub(crate) fn refused(&self, who: &Who, door: Door, refusal: &Refusal) {
        let Some((host, port)) = refusal.host() else {
            return;
        };
        let outcome = match refusal {
            Refusal::Unreachable(..) => Outcome::Failed,
            _ => Outcome::Denied,
        };
        let kind = Kind {
            host,
            port,
            door,
            outcome,
            rule: refusal.rule(),
        };
        self.count(who, &kind, refusal.allow());
    }
}

impl State {
    fn keys_of(&self, who: &Who) -> Vec<ExecKey> {
        match who {
            Who::Unknown => self.present.keys().copied().collect(),
            Who::These(keys) => keys.clone(),
        }
    }

    fn terms_of(&self, who: &Who) -> impl Iterator<Item = &Arc<Terms>> {
        let keys = self.keys_of(who);
        let present = keys.into_iter().filter_map(|key| self.present.get(&key));
        present.map(|present| &present.terms)
    }

    /// Allowed if the terms of every command that it may come from allow it, and there is one.
    fn judge(&self, who: &Who, host: &Host, port: u16) -> Judged {
        let mut judged = Judged::Denied(Denial::NotListed);
        for terms in self.terms_of(who) {
            judged = match terms.list.decide(host, port) {
                Verdict::Allowed(rule) => Judged::Allowed {
                    rule: rule.to_string(),
                    outcome: Outcome::Allowed,
                },
                // An address is dialled as it is, so a special one is refused here.
                Verdict::Denied(_) if terms.observe && is_public(terms, host, port) => {
                    Judged::Allowed {
                        rule: "observe".to_owned(),
                        outcome: Outcome::Observed,
                    }
                }
                Verdict::Denied(denial) => return Judged::Denied(denial),
            };
        }
        judged
    }

    fn check_resolved(&self, who: &Who, address: IpAddr, port: u16) -> Result<(), Denial> {
        let mut terms = self.terms_of(who);
        terms.try_for_each(|terms| terms.list.check_resolved(address, port))
    }

    /// Whether the terms of any command that it may come from have the host's requests seen.
    fn inspects(&self, who: &Who, host: &Host) -> bool {
        let mut terms = self.terms_of(who);
        terms.any(|terms| terms.inspect.iter().any(|inspect| inspect.is_for(host)))
    }

    /// Adds the bytes that have passed to what they are for.
    fn settle(&mut self) {
        let ids: Vec<u64> = self.live.keys().copied().collect();
        for id in ids {
            self.settle_one(id);
        }
    }

    fn settle_one(&mut self, id: u64) {
        let Some(live) = self.live.get_mut(&id) else {
            return;
        };
        let moved = live.meter.moved();
        let Some((kind, before)) = &mut live.current else {
            return;
        };
        let passed = (moved.0 - before.0, moved.1 - before.1);
        *before = moved;
        let (kind, who) = (kind.clone(), live.who.clone());
        let candidates = self.keys_of(&who);
        for key in &candidates {
            if let Some(present) = self.present.get_mut(key) {
                present.attempts.moved(&kind, passed, &candidates);
            }
        }
    }

    fn cut_what_is_denied(&mut self) {
        for live in self.live.values() {
            let Some(target) = &live.target else {
                continue;
            };
            let judged = self.judge(&live.who, &target.at.host, target.at.port);
            let address = target
                .address
                .map(|address| self.check_resolved(&live.who, address, target.at.port));
            let unseen = self.inspects(&live.who, &target.at.host) && !target.inspected;
            if matches!(judged, Judged::Denied(_)) || matches!(address, Some(Err(_))) || unseen {
                live.cut.cancel();
            }
        }
    }
}

fn is_public(terms: &Terms, host: &Host, port: u16) -> bool {
    match host {
        Host::Name(_) => true,
        Host::Address(address) => terms.list.check_resolved(*address, port).is_ok(),
    }
}

/// A connection out of a sandbox, from when it is accepted until it ends.
pub(crate) struct Connection {
    execs: Arc<Execs>,
    id: u64,
    who: Who,
    pub(crate) cut: CancellationToken,
    pub(crate) meter: Arc<Meter>,
    _permits: [OwnedSemaphorePermit; 2],
}

impl Connection {
    pub(crate) async fn accepted(
        execs: &Arc<Execs>,
        peer: SocketAddr,
        stop: &CancellationToken,
        permits: [OwnedSemaphorePermit; 2],
    ) -> Connection {
        let who = execs.who(Transport::Tcp, peer).await;
        let mut state = execs.lock();
        let keys = state.keys_of(&who);
        let accounts = keys.iter().filter_map(|key| state.present.get(key));
        let accounts = accounts.map(|present| present.account.clone()).collect();
        let (id, cut) = (state.next, stop.child_token());
        state.next += 1;
        let meter = Arc::new(Meter::new(accounts));
        let live = Live {
            who: who.clone(),
            target: None,
            cut: cut.clone(),
            meter: Arc::clone(&meter),
            current: None,
        };
        state.live.insert(id, live);
        drop(state);
        Connection {
            execs: Arc::clone(execs),
            id,
            who,
            cut,
            meter,
            _permits: permits,
        }
    }

    /// Decides on a target of this connection, and counts it if it is allowed. From then on the connection is cut when the terms
    /// no longer allow it.
    pub(crate) fn open(&self, door: Door, at: &HostPort) -> Result<(), Refusal> {
        // In one hold of the lock, so that a change of the terms either is seen here or sees the target.
        let judged = {
            let mut state = self.execs.lock();
            let judged = state.judge(&self.who, &at.host, at.port);
            let inspected = state.inspects(&self.who, &at.host);
            if let Some(live) = state.live.get_mut(&self.id) {
                let target = || Target {
                    at: at.clone(),
                    address: None,
                    inspected,
                };
                live.target = matches!(judged, Judged::Allowed { .. }).then(target);
            }
            judged
        };
        match judged {
            Judged::Allowed { rule, outcome } => {
                let kind = Kind {
                    host: at.host.to_string(),
                    port: at.port,
                    door,
                    outcome,
                    rule,
                };
                self.execs.count(&self.who, &kind, None);
                self.switch(Some(kind));
                Ok(())
            }
            Judged::Denied(denial) => {
                self.switch(None);
                Err(Refusal::Denied(at.clone(), denial))
            }
        }
    }

    /// Whether an address may be dialled that the target resolved to.
    pub(crate) fn check_resolved(&self, address: IpAddr, port: u16) -> Result<(), Denial> {
        let state = self.execs.lock();
        state.check_resolved(&self.who, address, port)
    }

    pub(crate) fn inspects(&self, host: &Host) -> bool {
        self.execs.lock().inspects(&self.who, host)
    }

    /// Whether every command that it may come from may make this request. All rules for the host must allow it.
    pub(crate) fn check_request(&self, at: &HostPort, head: &Parts) -> Result<(), Refusal> {
        let state = self.execs.lock();
        let (method, path) = (&head.method, head.uri.path());
        let allowed = state.terms_of(&self.who).all(|terms| {
            let mut rules = terms
                .inspect
                .iter()
                .filter(|inspect| inspect.is_for(&at.host));
            rules.all(|inspect| inspect.allows(method, path))
        });
        match allowed {
            true => Ok(()),
            false => {
                let request = Kind::printable(&format!("{method} {path}"));
                Err(Refusal::Request(at.clone(), request))
            }
        }
    }

    /// The secrets for a request: those that every command has that it may come from.
    pub(crate) fn secrets(&self, at: &HostPort, secure: bool) -> Vec<(HeaderName, HeaderValue)> {
        let state = self.execs.lock();
        let mut all = state.terms_of(&self.who);
        let Some(first) = all.next() else {
            return Vec::new();
        };
        let others: Vec<_> = all.collect();
        let shared = first.secrets.iter().filter(|secret| {
            let known = others.iter().all(|terms| terms.secrets.contains(secret));
            known && secret.is_for(&at.host, at.port, secure)
        });
        shared.map(Secret::header).collect()
    }

    /// Notes the address that was dialled, so that a change of the terms can cut the connection to it.
    pub(crate) fn dialled(&self, address: IpAddr) {
        let mut state = self.execs.lock();
        let target = state
            .live
            .get_mut(&self.id)
            .and_then(|live| live.target.as_mut());
        if let Some(target) = target {
            target.address = Some(address);
        }
        state.cut_what_is_denied();
    }

    /// Counts a refusal after the target was decided on.
    pub(crate) fn refused(&self, door: Door, refusal: &Refusal) {
        self.execs.refused(&self.who, door, refusal);
    }

    /// Settles what has passed, and counts the bytes to come for another kind.
    fn switch(&self, next: Option<Kind>) {
        let mut state = self.execs.lock();
        state.settle_one(self.id);
        if let Some(live) = state.live.get_mut(&self.id) {
            let moved = live.meter.moved();
            live.current = next.map(|kind| (kind, moved));
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.switch(None);
        self.execs.lock().live.remove(&self.id);
    }
}
