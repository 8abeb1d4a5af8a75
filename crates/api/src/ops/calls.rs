//! The running execs, and how their callers control them.

use super::app::lock;
use super::failure::Failure;
use crate::wire::CallId;
use avfs_runtime::{
    Cancel, Control, ErrorKind, Principal, Select, VaultName, Verb, WindowSize, may,
};
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// The running execs, by handle.
#[derive(Default)]
pub(crate) struct Calls {
    open: Mutex<HashMap<CallId, Arc<CallState>>>,
}

/// The control state of an exec.
pub(crate) struct CallState {
    by: Principal,
    vault: Select,
    cancel: Mutex<Option<Cancel>>,
    /// The write end of the command's input, until a request takes it.
    input: Mutex<Option<OwnedFd>>,
    control: Arc<Control>,
}

impl CallState {
    fn new(by: Principal, vault: Select) -> CallState {
        CallState {
            by,
            vault,
            cancel: Mutex::default(),
            input: Mutex::default(),
            control: Arc::default(),
        }
    }

    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    pub fn cancelled(&self) -> Option<Cancel> {
        *lock(&self.cancel)
    }

    fn cancel(&self, how: Cancel) {
        lock(&self.cancel).get_or_insert(how);
    }

    fn take_input(&self) -> Option<OwnedFd> {
        lock(&self.input).take()
    }

    /// Makes the pipe for the command's input.
    pub fn open_input(&self) -> std::io::Result<OwnedFd> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        *lock(&self.input) = Some(write);
        Ok(read)
    }
}

impl Calls {
    pub fn begin(self: &Arc<Calls>, by: Principal, vault: Select) -> Result<Call, Failure> {
        let id = fresh_id()?;
        let state = Arc::new(CallState::new(by, vault));
        lock(&self.open).insert(id, Arc::clone(&state));
        Ok(Call {
            id,
            state,
            calls: Arc::clone(self),
        })
    }

    /// The running exec with this handle, if it is the caller's.
    fn find(&self, id: CallId, by: Principal) -> Option<Arc<CallState>> {
        let found = lock(&self.open).get(&id).cloned();
        found.filter(|state| may(&by, Verb::Own, &state.by))
    }

    /// The vault of this exec, if it is the caller's.
    pub fn vault_of(&self, id: CallId, by: Principal) -> Option<VaultName> {
        match &self.find(id, by)?.vault {
            Select::Named(name) => Some(name.clone()),
            Select::Current | Select::Id(_) => None,
        }
    }

    /// Whether there was an exec to cancel.
    pub fn cancel(&self, id: CallId, by: Principal, how: Cancel) -> bool {
        let found = self.find(id, by);
        if let Some(state) = &found {
            state.cancel(how);
        }
        found.is_some()
    }

    /// Resizes the terminal of a running exec.
    pub fn resize(&self, id: CallId, by: Principal, size: WindowSize) -> Result<(), Failure> {
        match self.find(id, by) {
            Some(state) => Ok(state.control.resize(size)?),
            None => Err(ended(id)),
        }
    }

    /// Sends a signal to every process of a running exec.
    pub fn signal(&self, id: CallId, by: Principal, signal: i32) -> Result<(), Failure> {
        match self.find(id, by) {
            Some(state) => Ok(state.control.signal(signal)?),
            None => Err(ended(id)),
        }
    }

    /// The write end of an exec's input: `None` if it has no input, or another request writes to it.
    pub fn take_input(&self, id: CallId, by: Principal) -> Option<OwnedFd> {
        self.find(id, by)?.take_input()
    }
}

fn ended(id: CallId) -> Failure {
    Failure::new(ErrorKind::NotFound, format!("call {id} has ended"))
}

/// A random handle.
fn fresh_id() -> Result<CallId, Failure> {
    let mut bytes = [0; 16];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(16) => Ok(CallId::from_bytes(bytes)),
        _ => Err(Failure::new(
            ErrorKind::Unavailable,
            "the kernel gives no random numbers",
        )),
    }
}

/// One running exec. Dropping it cancels the exec, so a caller that disconnects ends its command.
pub(crate) struct Call {
    id: CallId,
    state: Arc<CallState>,
    calls: Arc<Calls>,
}

impl Call {
    pub fn id(&self) -> CallId {
        self.id
    }

    pub fn state(&self) -> Arc<CallState> {
        Arc::clone(&self.state)
    }

    /// The write end of its input.
    pub fn take_input(&self) -> Option<OwnedFd> {
        self.state.take_input()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.state.cancel(Cancel::Leave);
        self.state.take_input();
        lock(&self.calls.open).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_can_be_cancelled_until_it_ends() {
        let calls = Arc::new(Calls::default());
        let agent = |name: &str| Principal::agent(Some(name.parse().unwrap()));
        let first = calls.begin(Principal::OWNER, Select::Current).unwrap();
        let second = calls.begin(agent("a"), Select::Current).unwrap();
        assert_ne!(first.id(), second.id());
        let cancel = |id, by| calls.cancel(id, by, Cancel::Interrupt);
        for other in [agent("b"), Principal::AGENT] {
            assert!(!cancel(second.id(), other), "{other}");
            assert!(!cancel(first.id(), other), "{other}");
        }
        assert_eq!(second.state().cancelled(), None);
        assert!(cancel(second.id(), agent("a")));
        assert_eq!(second.state().cancelled(), Some(Cancel::Interrupt));
        assert_eq!(first.state().cancelled(), None);
        let (id, state) = (first.id(), first.state());
        drop(first);
        let leave = Some(Cancel::Leave);
        assert_eq!(state.cancelled(), leave, "who goes away ends its command");
        assert!(!cancel(id, Principal::OWNER));
    }

    #[test]
    fn input_is_brought_by_one() {
        let calls = Arc::new(Calls::default());
        let owner = Principal::OWNER;
        let call = calls.begin(owner, Select::Current).unwrap();
        assert!(
            calls.take_input(call.id(), owner).is_none(),
            "it wants none"
        );
        let _read = call.state().open_input().unwrap();
        assert!(calls.take_input(call.id(), Principal::AGENT).is_none());
        assert!(calls.take_input(call.id(), owner).is_some());
        assert!(calls.take_input(call.id(), owner).is_none());
    }
}
