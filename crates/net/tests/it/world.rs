//! A host with a resolver of its own, and sandboxes on it.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock};

use avfs_net::{
    Attempt, Attribution, Authority, AuthorityMaker, Bounds, Cache, Config, Ends, ExecKey, Guard,
    Net, Resolve, Roots, Served, Sink, Terms, Upstream,
};
use avfs_policy::HostName;

use crate::space::Space;

/// A table of names, which tests can change.
#[derive(Clone, Default)]
pub struct Table(Arc<Mutex<HashMap<String, Vec<IpAddr>>>>);

impl Table {
    pub fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap());
        self.0
            .lock()
            .unwrap()
            .insert(name.to_owned(), addresses.collect());
    }
}

impl Resolve for Table {
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        let found = self.0.lock().unwrap().get(name.as_str()).cloned();
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name"))
    }
}

/// Says what tests tell it to say.
#[derive(Clone, Default)]
pub struct Candidates(Arc<Mutex<Vec<ExecKey>>>);

impl Candidates {
    pub fn say(&self, keys: &[u128]) {
        *self.0.lock().unwrap() = keys.iter().map(|key| ExecKey(*key)).collect();
    }
}

impl Attribution for Candidates {
    fn candidates(&self, _: Ends) -> Vec<ExecKey> {
        self.0.lock().unwrap().clone()
    }
}

/// Keeps what it is told.
#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<Vec<Attempt>>>);

impl Told {
    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Sink for Told {
    fn attempted(&self, attempt: &Attempt) {
        self.0.lock().unwrap().push(attempt.clone());
    }
}

pub struct World {
    pub net: Net,
    pub names: Table,
}

impl World {
    pub fn new() -> World {
        World::with(Bounds::default(), Upstream::default())
    }

    pub fn with(bounds: Bounds, upstream: Upstream) -> World {
        World::trusting(bounds, upstream, Roots::Given(Vec::new()))
    }

    pub fn trusting(bounds: Bounds, upstream: Upstream, roots: Roots) -> World {
        World::keeping(bounds, upstream, roots, None)
    }

    pub fn keeping(
        bounds: Bounds,
        upstream: Upstream,
        roots: Roots,
        cache: Option<Cache>,
    ) -> World {
        let names = Table::default();
        let config = Config {
            resolver: Arc::new(names.clone()),
            upstream,
            roots,
            cache,
            bounds,
        };
        World {
            net: Net::new(config),
            names,
        }
    }

    pub fn sandbox(&self) -> Sandbox {
        let (space, candidates, told) = (Space::new(), Candidates::default(), Told::default());
        let (who, sink) = (Arc::new(candidates.clone()), Arc::new(told.clone()));
        let pem = Arc::new(OnceLock::new());
        let shown = Arc::clone(&pem);
        let authority: AuthorityMaker = Box::new(move || {
            let authority = Authority::new()?;
            shown.set(authority.pem()).expect("made once");
            Ok(authority)
        });
        let served = self
            .net
            .serve(Arc::new(space.clone()), who, sink, Some(authority));
        let served = served.unwrap();
        Sandbox {
            space,
            served,
            candidates,
            told,
            pem,
        }
    }

    /// A sandbox with one command that has this list.
    pub fn with_list(&self, list: &str) -> (Sandbox, Guard) {
        let sandbox = self.sandbox();
        let guard = sandbox.enter(1, list);
        (sandbox, guard)
    }
}

pub struct Sandbox {
    pub space: Space,
    pub served: Served,
    pub candidates: Candidates,
    pub told: Told,
    /// The sandbox's own certificate authority, once there is one.
    pub pem: Arc<OnceLock<String>>,
}

pub fn terms(list: &str) -> Terms {
    Terms::of(list.parse().unwrap())
}

impl Sandbox {
    pub fn enter(&self, key: u128, list: &str) -> Guard {
        self.served.enter(ExecKey(key), terms(list)).unwrap()
    }

    pub fn update(&self, key: u128, list: &str) {
        self.served.update(ExecKey(key), terms(list)).unwrap();
    }

    pub fn attempts(&self, key: u128) -> Vec<Attempt> {
        self.served.take_attempts(ExecKey(key)).list
    }
}
