//! The commands of one sandbox that have a network: their terms, their attempts, and their live connections.

mod connection;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use avfs_policy::{Denial, Host, HostList, HostPort, Ports, Verdict};
use hyper::Method;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::attempts::{Attempts, Door, Kind, Outcome, Table};
use crate::config::Bounds;
use crate::error::Error;
use crate::exec_key::ExecKey;
use crate::meter::{Account, Meter};
use crate::refusal::Refusal;
use crate::requests::Inspect;
use crate::sandbox::{Attribution, Ends, Sink};
use crate::terms::Terms;

pub(crate) use connection::Connection;

/// The commands of one sandbox.
pub(crate) struct Execs {
    state: Mutex<State>,
    attribution: Arc<dyn Attribution>,
    sink: Arc<dyn Sink>,
    resolutions: Arc<Semaphore>,
    /// What all of them move together.
    shared: Arc<Account>,
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
    /// Whether it is one of those that the sandbox may have.
    counts: bool,
}

/// Bytes in and out, and those in that had been kept.
type Moved = (u64, u64, u64);

fn moved(meter: &Meter) -> Moved {
    let (into, out) = meter.moved();
    (into, out, meter.kept())
}

#[derive(Clone)]
struct Target {
    at: HostPort,
    address: Option<IpAddr>,
    /// Whether its requests are seen.
    seen: bool,
    /// The last one that was allowed.
    request: Option<(Method, String)>,
}

/// Which commands something may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// Nobody knows: the terms of all commands that are present must allow it.
    Unknown,
    /// One of these: the terms of each must allow it.
    These(Vec<ExecKey>),
}

/// What is spoken on a port of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http,
    Tls,
    /// Nobody said, so bytes pass as they are.
    Anything,
}

/// What the terms say.
enum Judged {
    Allowed {
        rule: String,
        outcome: Outcome,
    },
    Denied(Denial),
    /// Allowed by the list, but requests to the host must be seen, and would not be.
    Unseen,
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
            resolutions: Arc::new(Semaphore::new(bounds.resolutions_per_sandbox)),
            shared: Arc::default(),
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
        let account = Arc::new(Account::default());
        account.set_max(terms.max_bytes);
        let present = Present {
            account,
            terms,
            attempts: Table::default(),
        };
        state.present.insert(key, present);
        self.shared.set_rate(state.rate());
        state.cut_what_is_denied();
        Ok(())
    }

    /// Changes the terms of a command, and cuts connections that they no longer allow.
    pub(crate) fn update(&self, key: ExecKey, terms: Arc<Terms>) {
        let mut state = self.lock();
        if let Some(present) = state.present.get_mut(&key) {
            present.account.set_max(terms.max_bytes);
            present.terms = terms;
        }
        self.shared.set_rate(state.rate());
        state.cut_what_is_denied();
    }

    /// Forgets a command, and cuts connections that can only be its own.
    pub(crate) fn leave(&self, key: ExecKey) -> Attempts {
        let mut state = self.lock();
        state.settle();
        let left = state.present.remove(&key);
        self.shared.set_rate(state.rate());
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
    pub(crate) async fn who(self: &Arc<Self>, ends: Ends) -> Who {
        if self.all_terms().len() <= 1 {
            return Who::These(self.lock().present.keys().copied().collect());
        }
        let this = Arc::clone(self);
        let asked = move || this.attribution.candidates(ends);
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

    /// The lowest rate of all commands.
    fn rate(&self) -> Option<u64> {
        let terms = self.present.values().map(|present| &present.terms);
        terms
            .filter_map(|terms| terms.bytes_per_second)
            .min()
            .map(u64::from)
    }

    /// The lowest number of connections of all commands, if there are that many.
    fn connections_used_up(&self) -> Option<u32> {
        let terms = self.present.values().map(|present| &present.terms);
        let most = terms.filter_map(|terms| terms.connections).min()?;
        let open = self.live.values().filter(|live| live.counts).count();
        (open >= most as usize).then_some(most)
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

    /// Whether the host is a registry for every command that it may come from.
    fn is_registry(&self, who: &Who, host: &Host, port: u16) -> bool {
        let mut terms = self.terms_of(who).peekable();
        let some = terms.peek().is_some();
        some && terms.all(|terms| terms.registries.decide(host, port).is_allowed())
    }

    /// What is spoken on a port, as the terms of any command say that it may come from.
    fn speaks(&self, who: &Who, at: &HostPort) -> Speaks {
        let said = |list: fn(&Terms) -> &HostList| {
            let mut terms = self.terms_of(who);
            terms.any(|terms| list(terms).decide(&at.host, at.port).is_allowed())
        };
        match at.port {
            80 => Speaks::Http,
            443 => Speaks::Tls,
            _ if said(|terms| &terms.tls_ports) => Speaks::Tls,
            _ if said(|terms| &terms.http_ports) => Speaks::Http,
            _ => Speaks::Anything,
        }
    }

    /// Whether what comes for a host by this door is read as requests.
    fn sees(&self, who: &Who, door: Door, at: &HostPort) -> bool {
        match self.speaks(who, at) {
            _ if door == Door::Http => true,
            Speaks::Http => true,
            Speaks::Tls => self.inspects(who, &at.host),
            Speaks::Anything => false,
        }
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

    /// Whether requests to the target must be seen, and are not. Secrets are for the usual ports; rules hold on all.
    fn is_unseen(&self, who: &Who, target: &Target) -> bool {
        let HostPort { host, port } = &target.at;
        let mut inspects = self.terms_of(who).flat_map(|terms| &terms.inspect);
        let usual = Ports::Web.has(*port);
        !target.seen && inspects.any(|it| it.is_for(host) && (usual || it.has_rules()))
    }

    /// What has rules about the host that do not allow a request, each once.
    fn refusing(&self, who: &Who, host: &Host, method: &Method, path: &str) -> Vec<Inspect> {
        let all = self.terms_of(who).flat_map(|terms| &terms.inspect);
        let mut refusing: Vec<Inspect> = Vec::new();
        for inspect in all.filter(|it| it.is_for(host) && !it.allows(method, path)) {
            if !refusing.contains(inspect) {
                refusing.push(inspect.clone());
            }
        }
        refusing
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
        let moved = moved(&live.meter);
        let Some((kind, before)) = &mut live.current else {
            return;
        };
        let passed = (moved.0 - before.0, moved.1 - before.1, moved.2 - before.2);
        *before = moved;
        let (kind, who) = (kind.clone(), live.who.clone());
        let candidates = self.keys_of(&who);
        for key in &candidates {
            if let Some(present) = self.present.get_mut(key) {
                present.attempts.moved(&kind, passed, &candidates);
            }
        }
    }

    fn cut_what_is_denied(&self) {
        for live in self.live.values() {
            self.cut_if_denied(live);
        }
    }

    fn cut_if_denied(&self, live: &Live) {
        let Some(target) = &live.target else {
            return;
        };
        let (host, port) = (&target.at.host, target.at.port);
        let judged = self.judge(&live.who, host, port);
        let address = target.address;
        let address = address.map(|address| self.check_resolved(&live.who, address, port));
        let unseen = self.is_unseen(&live.who, target);
        let request = target.request.as_ref();
        let refused = request.is_some_and(|(method, path)| {
            let refusing = self.refusing(&live.who, host, method, path);
            !refusing.is_empty()
        });
        let denied = matches!(judged, Judged::Denied(_)) || matches!(address, Some(Err(_)));
        if denied || unseen || refused {
            live.cut.cancel();
        }
    }
}

fn is_public(terms: &Terms, host: &Host, port: u16) -> bool {
    match host {
        Host::Name(_) => true,
        Host::Address(address) => terms.list.check_resolved(*address, port).is_ok(),
    }
}
