//! The kinds of handlers. A surface maps each to what it has: HTTP to answers, byte streams and server-sent events.

use super::caller::Ask;
use super::events::Followed;
use super::failure::Failure;
use super::jobs::Following;
use crate::table::{Operation, VaultIn};
use crate::wire::{CallId, ExecEvent};
use avfs_runtime::{HeldOutput, OpenFile, Select, Watcher};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;

/// The result of a handler.
pub(crate) type Reply<O> = Result<<O as Operation>::Response, Failure>;

/// An operation that this daemon serves.
pub(crate) trait Served: Operation {
    const VAULT: VaultOf<Self>;
    const HANDLER: Handler<Self>;
}

/// The code of an operation. Each needs an [`Ask`], which only the gate makes.
#[derive(Copy, Clone)]
pub(crate) enum Handler<O: Operation> {
    /// One answer.
    Answer(fn(&Ask, O) -> Reply<O>),
    /// One answer about the vault in the address.
    OnVault(fn(&Ask, Select, O) -> Reply<O>),
    /// One answer about that vault; the work is cancelled if its caller disconnects.
    Attended(fn(&Ask, Select, O, &dyn Watcher) -> Reply<O>),
    /// One answer about that vault; it may take long, and reports progress.
    Watched(fn(&Ask, Select, O, &dyn Watcher) -> Reply<O>),
    /// The request has a byte stream.
    Receives(fn(&Ask, Select, O, &mut dyn Read, &dyn Watcher) -> Reply<O>),
    /// The answer is bytes of that media type. An error before the first byte is the answer instead.
    Sends(
        &'static str,
        fn(&Ask, Select, O, &mut dyn Write) -> Result<(), Failure>,
    ),
    /// The answer is a part of a file, which is read as the caller takes it: no thread waits for a slow reader.
    Opens(fn(&Ask, Select, O) -> Result<Opened, Failure>),
    /// A command: events while it runs, the answer when it has ended. An error before the first event is the answer
    /// instead.
    Runs(fn(&Ask, Select, O, &dyn Listener<ExecEvent>) -> Held<O>),
    /// The output of a job: one part as an answer, or all of it as events.
    Follows {
        once: fn(&Ask, O, Resume) -> Reply<O>,
        follow: fn(&Ask, O, Resume) -> Result<Following, Failure>,
    },
    /// Changes of all vaults: one page as an answer, or all from there on as events.
    Tells {
        page: fn(&Ask, O, Option<u64>) -> Reply<O>,
        follow: fn(Ask, O, Option<u64>) -> Result<Followed, Failure>,
    },
    /// The input of a command: bytes for a pipe.
    Feeds(fn(&Ask, O) -> Result<Feed<O>, Failure>),
}

/// An answer, and the memory reserved for it.
pub(crate) type Held<O> = Result<(<O as Operation>::Response, Vec<HeldOutput>), Failure>;

/// A file of a vault, and the requested part of it.
pub(crate) struct Opened {
    pub file: OpenFile,
    pub part: Range<u64>,
    /// The first piece: read before the answer begins, so that damage can be an error.
    pub first: Vec<u8>,
}

/// The offsets after the last event that a listener has seen before.
pub(crate) type Resume = Option<[u64; 2]>;

/// The write end of a command's input.
pub(crate) struct Feed<O: Operation> {
    pub pipe: OwnedFd,
    /// Called with the number of bytes that the command got.
    pub done: Box<dyn FnOnce(u64) -> Reply<O> + Send>,
}

/// The listener of an operation.
pub(crate) trait Listener<E>: Sync {
    /// Sends an event. Waits for a slow listener as long as `is_patient` returns true.
    fn tell(&self, event: E, is_patient: &dyn Fn() -> bool);

    /// Whether the listener has disconnected.
    fn is_gone(&self) -> bool;

    /// Whether the listener wants events.
    fn is_listening(&self) -> bool {
        true
    }
}

/// Where a request names its vault, and how to read it.
#[derive(Copy, Clone)]
pub(crate) enum VaultOf<O> {
    Address,
    /// The names in the fields.
    AddressAnd(fn(&O) -> Vec<String>),
    /// Whether it is about all vaults.
    AddressOrHome(fn(&O) -> bool),
    Field(fn(&O) -> Option<&str>),
    Job(fn(&O) -> u64),
    Call(fn(&O) -> CallId),
    Exec(fn(&O) -> &str),
    Approval(fn(&O) -> &str),
    /// The vaults that it is about, of those that are mounted.
    Mount(fn(&Ask, &O) -> Result<Vec<String>, Failure>),
    Listed,
    Home,
    Nothing,
}

impl<O> VaultOf<O> {
    pub const fn kind(&self) -> VaultIn {
        match self {
            VaultOf::Address => VaultIn::Address,
            VaultOf::AddressAnd(_) => VaultIn::AddressAndFields,
            VaultOf::AddressOrHome(_) => VaultIn::AddressOrHome,
            VaultOf::Field(_) => VaultIn::Field,
            VaultOf::Job(_) => VaultIn::Job,
            VaultOf::Call(_) => VaultIn::Call,
            VaultOf::Exec(_) => VaultIn::Exec,
            VaultOf::Approval(_) => VaultIn::Approval,
            VaultOf::Mount(_) => VaultIn::Mount,
            VaultOf::Listed => VaultIn::Listed,
            VaultOf::Home => VaultIn::Home,
            VaultOf::Nothing => VaultIn::Nothing,
        }
    }
}
