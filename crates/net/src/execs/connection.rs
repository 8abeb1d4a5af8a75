//! A connection out of a sandbox: what it may reach, what it is counted for, and when it is cut.

use std::net::IpAddr;
use std::sync::Arc;

use avfs_policy::{Denial, Host, HostPort};
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{Execs, Judged, Live, Speaks, Target, Who, moved};
use crate::attempts::{Door, Kind};
use crate::meter::Meter;
use crate::refusal::Refusal;
use crate::requests::Secret;
use crate::sandbox::Ends;

/// A connection out of a sandbox, from when it is accepted until it ends.
pub(crate) struct Connection {
    execs: Arc<Execs>,
    id: u64,
    who: Who,
    pub(crate) cut: CancellationToken,
    pub(crate) meter: Arc<Meter>,
    /// The most connections of its sandbox, if there were as many when it came. It is then served for the refusals alone.
    beyond: Option<u32>,
    _permits: [OwnedSemaphorePermit; 2],
}

impl Connection {
    pub(crate) async fn accepted(
        execs: &Arc<Execs>,
        ends: Ends,
        stop: &CancellationToken,
        permits: [OwnedSemaphorePermit; 2],
    ) -> Connection {
        let who = execs.who(ends).await;
        let mut state = execs.lock();
        let keys = state.keys_of(&who);
        let accounts = keys.iter().filter_map(|key| state.present.get(key));
        let accounts = accounts.map(|present| present.account.clone());
        let accounts = accounts.chain([Arc::clone(&execs.shared)]).collect();
        let beyond = state.connections_used_up();
        let (id, cut) = (state.next, stop.child_token());
        state.next += 1;
        let meter = Arc::new(Meter::new(accounts));
        let live = Live {
            who: who.clone(),
            target: None,
            cut: cut.clone(),
            meter: Arc::clone(&meter),
            current: None,
            counts: beyond.is_none(),
        };
        state.live.insert(id, live);
        drop(state);
        Connection {
            execs: Arc::clone(execs),
            id,
            who,
            cut,
            meter,
            beyond,
            _permits: permits,
        }
    }

    /// Decides on a target of this connection, and counts it if it is allowed. From then on the connection is cut when the terms
    /// no longer allow it.
    pub(crate) fn open(&self, door: Door, at: &HostPort) -> Result<(), Refusal> {
        if let Some(most) = self.beyond {
            return Err(Refusal::TooMany(at.clone(), most));
        }
        if let Some(most) = self.meter.spent() {
            return Err(Refusal::TooMuch(at.clone(), most));
        }
        // In one hold of the lock, so that a change of the terms either is seen here or sees the target.
        let judged = {
            let mut state = self.execs.lock();
            let mut judged = state.judge(&self.who, &at.host, at.port);
            let target = Target {
                at: at.clone(),
                address: None,
                seen: state.sees(&self.who, door, at),
                request: None,
            };
            if matches!(judged, Judged::Allowed { .. }) && state.is_unseen(&self.who, &target) {
                judged = Judged::Unseen;
            }
            if let Some(live) = state.live.get_mut(&self.id) {
                live.target = matches!(judged, Judged::Allowed { .. }).then_some(target);
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
            Judged::Unseen => {
                self.switch(None);
                Err(Refusal::Unseen(at.clone()))
            }
        }
    }

    /// Whether an address may be dialled that the target resolved to.
    pub(crate) fn check_resolved(&self, address: IpAddr, port: u16) -> Result<(), Denial> {
        let state = self.execs.lock();
        state.check_resolved(&self.who, address, port)
    }

    /// What bounds the names that the sandbox has resolved at once.
    pub(crate) fn resolutions(&self) -> Arc<Semaphore> {
        Arc::clone(&self.execs.resolutions)
    }

    pub(crate) fn inspects(&self, host: &Host) -> bool {
        self.execs.lock().inspects(&self.who, host)
    }

    /// What is spoken on a port.
    pub(crate) fn speaks(&self, at: &HostPort) -> Speaks {
        self.execs.lock().speaks(&self.who, at)
    }

    /// Whether the host is a package registry, whose answers are kept.
    pub(crate) fn is_registry(&self, at: &HostPort) -> bool {
        let state = self.execs.lock();
        state.is_registry(&self.who, &at.host, at.port)
    }

    /// The address that was dialled last, if it is known.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let state = self.execs.lock();
        let live = state.live.get(&self.id)?;
        live.target.as_ref()?.address
    }

    /// Whether every command that it may come from may make this request. All rules for the host must allow it. From then on the
    /// connection is cut when they no longer do.
    pub(crate) fn check_request(&self, at: &HostPort, head: &Parts) -> Result<(), Refusal> {
        let mut state = self.execs.lock();
        let (method, path) = (&head.method, head.uri.path());
        let refusing = state.refusing(&self.who, &at.host, method, path);
        if refusing.is_empty() {
            if let Some(live) = state.live.get_mut(&self.id)
                && let Some(target) = &mut live.target
            {
                target.request = Some((method.clone(), path.to_owned()));
            }
            return Ok(());
        }
        let hints: Option<Vec<String>> = refusing.iter().map(|it| it.hint(method, path)).collect();
        Err(Refusal::Request {
            at: at.clone(),
            request: Kind::printable(&format!("{method} {path}")),
            allow: hints.map(|hints| hints.join(" && ")),
        })
    }

    /// The secrets for a request: those that every command has that it may come from.
    pub(crate) fn secrets(
        &self,
        at: &HostPort,
        secure: bool,
        head: &Parts,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Refusal> {
        let state = self.execs.lock();
        let all: Vec<_> = state.terms_of(&self.who).collect();
        let (first, others) = match all.split_first() {
            Some((first, others)) => (first.secrets.as_slice(), others),
            None => (&[] as &[Secret], &[] as &[_]),
        };
        let kept = all.iter().flat_map(|terms| &terms.secrets);
        if let Some(name) = kept
            .filter(|_| !secure)
            .find_map(|secret| secret.kept_from(&at.host, head))
        {
            return Err(Refusal::PlainSecret(at.clone(), name.to_string()));
        }
        let shared = first.iter().filter(|secret| {
            let known = others.iter().all(|terms| terms.secrets.contains(secret));
            known && secret.is_for(at, secure, head)
        });
        let shared: Vec<_> = shared.map(Secret::header).collect();
        // The answer to TRACE is the request.
        match !shared.is_empty() && head.method == Method::TRACE {
            true => Err(Refusal::Request {
                at: at.clone(),
                request: head.method.to_string(),
                allow: None,
            }),
            false => Ok(shared),
        }
    }

    /// Notes the address that was dialled, so that a change of the terms can cut the connection to it.
    pub(crate) fn dialled(&self, address: IpAddr) {
        let mut state = self.execs.lock();
        let Some(live) = state.live.get_mut(&self.id) else {
            return;
        };
        if let Some(target) = &mut live.target {
            target.address = Some(address);
        }
        // The terms may have changed between the check and now.
        if let Some(live) = state.live.get(&self.id) {
            state.cut_if_denied(live);
        }
    }

    /// Why its bytes have ended, if that is because there may be no more.
    pub(crate) fn spent(&self) -> Option<Refusal> {
        let most = self.meter.spent()?;
        let state = self.execs.lock();
        let target = state.live.get(&self.id)?.target.as_ref()?;
        Some(Refusal::TooMuch(target.at.clone(), most))
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
            let moved = moved(&live.meter);
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
