//! The shapes that an operation's code can have. A surface turns each into what it speaks: HTTP into answers, streams
//! of bytes and server-sent events.

use super::caller::Ask;
use super::failure::Failure;
use super::jobs::Following;
use crate::table::{Operation, VaultIn};
use crate::wire::{CallId, ExecEvent};
use avfs_runtime::{HeldOutput, OpenFile, Select, Watcher};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;

/// What a handler gives back.
pub(crate) type Reply<O> = Result<<O as Operation>::Response, Failure>;

/// An operation that this daemon serves.
pub(crate) trait Served: Operation {
    const VAULT: VaultOf<Self>;
    const HANDLER: Handler<Self>;
}

/// The code of an operation. Each needs an [`Ask`], which only the gate gives out.
#[derive(Copy, Clone)]
pub(crate) enum Handler<O: Operation> {
    /// One answer.
    Answer(fn(&Ask, O) -> Reply<O>),
    /// One answer about the vault in the address.
    OnVault(fn(&Ask, Select, O) -> Reply<O>),
    /// One answer about that vault; the work ends when its caller goes away.
    Attended(fn(&Ask, Select, O, &dyn Watcher) -> Reply<O>),
    /// One answer about that vault; it may take long, and says how far it is.
    Watched(fn(&Ask, Select, O, &dyn Watcher) -> Reply<O>),
    /// Bytes come with the request.
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
    /// What a job writes: one part as an answer, or all of it as events.
    Follows {
        once: fn(&Ask, O, Resume) -> Reply<O>,
        follow: fn(&Ask, O, Resume) -> Result<Following, Failure>,
    },
    /// What a command reads: bytes for a pipe.
    Feeds(fn(&Ask, O) -> Result<Feed<O>, Failure>),
}

/// An answer, and the memory that what it was made from takes.
pub(crate) type Held<O> = Result<(<O as Operation>::Response, Vec<HeldOutput>), Failure>;

/// A file of a vault, and which part of it is wanted.
pub(crate) struct Opened {
    pub file: OpenFile,
    pub part: Range<u64>,
    /// The first piece of it: with the answer not yet begun, damage can still be told as such.
    pub first: Vec<u8>,
}

/// The offsets after the last event that a listener has seen before.
pub(crate) type Resume = Option<[u64; 2]>;

/// Where bytes for a command go.
pub(crate) struct Feed<O: Operation> {
    pub pipe: OwnedFd,
    /// Told how many bytes the command was given.
    pub done: Box<dyn FnOnce(u64) -> Reply<O> + Send>,
}

/// Whoever is told what happens while an operation lasts.
pub(crate) trait Listener<E>: Sync {
    /// Tells an event. Waits for a slow listener for as long as `is_patient` says so.
    fn tell(&self, event: E, is_patient: &dyn Fn() -> bool);

    /// Whether nobody is left to be told.
    fn is_gone(&self) -> bool;

    /// Whether anybody wants to be told.
    fn is_listening(&self) -> bool {
        true
    }
}

/// Where a request says which vault it is about, and how to read it.
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
