//! One sandbox whose network is served, as its owner holds it.

use std::sync::Arc;

use crate::attempts::Attempts;
use crate::doors;
use crate::error::Error;
use crate::exec_key::ExecKey;
use crate::service::Service;
use crate::terms::Terms;

/// One sandbox whose network is served. Dropping it closes its sockets and ends its connections.
pub struct Served {
    service: Arc<Service>,
}

/// A command that has a network, until this is dropped.
pub struct Guard {
    service: Arc<Service>,
    /// Until it has left.
    key: Option<ExecKey>,
}

impl Served {
    pub(crate) fn open(service: Arc<Service>) -> Result<Served, Error> {
        let served = Served { service };
        doors::open_names(&served.service)?;
        Ok(served)
    }

    /// Registers a command, which may reach what its terms say from then on.
    pub fn enter(&self, key: ExecKey, terms: Terms) -> Result<Guard, Error> {
        self.service.execs.enter(key, Arc::new(terms.clone()))?;
        // Leaves again if the doors cannot be opened.
        let guard = Guard {
            service: Arc::clone(&self.service),
            key: Some(key),
        };
        self.open_for(&terms)?;
        Ok(guard)
    }

    /// Changes the terms of a command. Connections that they no longer allow are cut.
    pub fn update(&self, key: ExecKey, terms: Terms) -> Result<(), Error> {
        // Also if the doors cannot be opened, what is no longer allowed must end.
        let opened = self.open_for(&terms);
        self.service.execs.update(key, Arc::new(terms));
        opened
    }

    /// What a command has tried to reach since this was last asked.
    pub fn take_attempts(&self, key: ExecKey) -> Attempts {
        self.service.execs.take_attempts(key)
    }

    fn open_for(&self, terms: &Terms) -> Result<(), Error> {
        if self.service.stop.is_cancelled() {
            return Err(Error::Stopped);
        }
        if !terms.inspect.is_empty() {
            self.service.authority()?;
        }
        if terms.is_none() {
            return Ok(());
        }
        doors::open_for(&self.service, terms)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.service.stop.cancel();
        self.service.execs.cut_all();
    }
}

impl Guard {
    /// Ends the command's network, and says what it tried to reach since that was last asked.
    pub fn leave(mut self) -> Attempts {
        self.end()
    }

    fn end(&mut self) -> Attempts {
        let key = self.key.take();
        key.map(|key| self.service.execs.leave(key))
            .unwrap_or_default()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}
