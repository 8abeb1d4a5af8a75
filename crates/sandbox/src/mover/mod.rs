//! The mover: renames stored directories where the kernel cannot.
//!
//! An overlay mounted without root answers EXDEV to the rename of a directory that is in a lower layer. So seccomp
//! notifies this process, one for each sandbox, of every rename of a command. It lets the kernel do all renames but those
//! of such directories. Those it does by copying: it makes the copy where no command can reach it ([`staging`]),
//! renames the copy to the new name atomically, then removes the old name. At every moment one of the two names has the
//! whole tree. Other processes may see both names for a while. What is written under the old name meanwhile is
//! moved to the new one, except for writes through descriptors that were open before. RENAME_EXCHANGE is
//! done in a similar way ([`exchange`]).
//!
//! It also protects our own processes ([`guard`]), and makes or counts memory that nothing else counts ([`memfile`],
//! [`anonymous`]). For git, it answers EXDEV to hard links of stored files, so that git copies
//! ([`caller::links_stored_file_for_git`]). As root, overlayfs needs no help, and only these are left.
//!
//! It runs as the commands' user in their namespaces, so it has their rights. Commands that restrict themselves by
//! Landlock have fewer, and are left to the kernel.

mod caller;
mod exchange;
mod staging;
mod tree;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, CWD, RenameFlags, Statx, renameat_with};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use crate::anonymous::{self, Ledger};
use crate::confine;
use crate::error::{During, Fault};
use crate::guard;
use crate::memfile;
use crate::notify::{Listener, Notice, Notified};
use crate::protocol::{Link, MoverRequest, Received};
use crate::seccomp::Filter;
use crate::sys::{self, Forked, Waited};
use caller::Names;
pub use exchange::{EXCHANGE_COPIES, EXCHANGE_ENDS};
pub use staging::STAGING_IN;
pub(crate) use staging::Staging;

/// How long a mover may take to start.
const READY: Duration = Duration::from_secs(10);

/// How often the work of a killed worker is cleaned up before the sandbox is ended.
const REPAIRS: u32 = 3;

/// Reads the memory of commands where the Yama module lets only ancestors do so.
const LOOKS: CapabilitySet = CapabilitySet::SYS_PTRACE;
/// Copies files that their owner may not read, as a rename moves them too.
const READS: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;

/// The agent's handle on its mover.
pub(crate) struct Mover {
    pub pid: i32,
    door: Link,
    /// Which calls it is notified of.
    duty: Notified,
}

impl Mover {
    /// Forks it. The caller still has its capabilities, and one thread.
    pub(crate) fn start(
        duty: Notified,
        filter: &Filter,
        held: &[RawFd],
        staging: Staging,
    ) -> Result<Mover, Fault> {
        let (door, inbox) = Link::pair()?;
        // SAFETY: the agent has one thread.
        match unsafe { sys::fork(0) }.during(|| "fork the mover")? {
            Forked::Child => live(inbox, duty, filter, held, staging),
            Forked::Parent { pid, .. } => {
                drop(inbox);
                let failed = |_| Fault {
                    what: "read from the mover".into(),
                    errno: libc::EPIPE,
                };
                door.answer::<Result<(), Fault>>(READY).map_err(failed)??;
                let pid = pid.as_raw_nonzero().get();
                Ok(Mover { pid, door, duty })
            }
        }
    }

    /// The descriptor that must stay open to register commands.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.door.as_fd().as_raw_fd()
    }

    /// Registers this process and all its later children. `done` is closed after the last of them has ended.
    ///
    /// `memory` is their limit, if no control group enforces one.
    pub(crate) fn serve_me(&self, done: OwnedFd, memory: Option<u64>) -> Result<(), Errno> {
        let listener = Listener::install(self.duty)?;
        let passed = [listener.as_fd(), done.as_fd()];
        // For a guard alone, nothing has to be finished after the command's end.
        let passed = match self.duty.names {
            true => &passed[..],
            false => &passed[..1],
        };
        self.door
            .send(&MoverRequest::Serve { memory }, passed)
            .map_err(|_| Errno::PIPE)
    }
}

/// A registered command.
struct Client {
    listener: Listener,
    /// Whether it has restricted itself by Landlock, which this process cannot evaluate.
    restricted: Cell<bool>,
    ledger: RefCell<Ledger>,
    /// Its supervisor waits until this is closed.
    _done: Option<OwnedFd>,
}

/// A notified call of a client.
type Call = (Rc<Client>, Notice);

/// The mover itself.
struct Process {
    inbox: Link,
    children: OwnedFd,
    top: Statx,
    clients: Vec<Rc<Client>>,
    staging: Staging,
    /// The running copy. Only one at a time, or two could move one directory to two places.
    copying: Option<Copying>,
    waiting: VecDeque<Call>,
    /// How many copies there have been.
    copies: u64,
}

/// A copy that a worker makes.
struct Copying {
    call: Call,
    names: Names,
    flags: RenameFlags,
    number: u64,
    repairs: u32,
}

/// The result of a call whose worker was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// It was complete.
    Done,
    Undone,
}

impl Copying {
    fn is_exchange(&self) -> bool {
        self.flags.contains(RenameFlags::EXCHANGE)
    }

    fn answer(&self, done: Result<(), Errno>) {
        let (client, notice) = &self.call;
        client.listener.answer(notice.id, done);
    }
}

/// Runs a mover to its end.
fn live(inbox: Link, duty: Notified, filter: &Filter, held: &[RawFd], staging: Staging) -> ! {
    // Sets the process name, to tell our processes apart in `ps`.
    let _ = rustix::thread::set_name(c"avfs-mover");
    let own = [0, 1, 2, inbox.as_fd().as_raw_fd(), staging.descriptor()];
    // SAFETY: everything else belonged to the agent, whose values are never used again here.
    unsafe { sys::close_all_but(&[&own[..], held].concat()) };
    match settle(duty, filter) {
        Ok((children, top)) => {
            if inbox.send(&Ok::<(), Fault>(()), &[]).is_err() {
                sys::leave(1);
            }
            let process = Process {
                inbox,
                children,
                top,
                clients: Vec::new(),
                staging,
                copying: None,
                waiting: VecDeque::new(),
                copies: 0,
            };
            process.serve()
        }
        Err(fault) => {
            let _ = inbox.send(&Err::<(), Fault>(fault), &[]);
            sys::leave(1)
        }
    }
}

/// Drops the capabilities that it does not need.
fn settle(duty: Notified, filter: &Filter) -> Result<(OwnedFd, Statx), Fault> {
    let children = sys::child_events().during(|| "watch for children that end")?;
    let none = CapabilitySet::empty();
    let looks = if duty.names || duty.memory {
        LOOKS
    } else {
        none
    };
    let reads = if duty.names { READS } else { none };
    confine::renounce_but(looks | reads)?;
    confine::use_of(looks, looks | reads).during(|| "drop effective capabilities")?;
    filter.apply()?;
    // Modes are copied as they are, and every level of a deep tree takes two descriptors.
    rustix::process::umask(rustix::fs::Mode::empty());
    let files = rustix::process::Resource::Nofile;
    let mut limit = rustix::process::getrlimit(files);
    limit.current = limit.maximum;
    rustix::process::setrlimit(files, limit).during(|| "open more files at once")?;
    let top = caller::look(CWD, c"/", AtFlags::empty()).during(|| "read its root")?;
    Ok((children, top))
}

impl Process {
    /// Serves until the agent closes its socket, which happens only at its end.
    fn serve(mut self) -> ! {
        loop {
            let mut polled = vec![
                PollFd::new(&self.inbox, PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
            ];
            let clients = self.clients.iter();
            polled.extend(clients.map(|client| PollFd::new(&client.listener, PollFlags::IN)));
            match poll(&mut polled, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => sys::leave(1),
            }
            let ready: Vec<_> = polled.iter().map(PollFd::revents).collect();
            for (client, events) in self.clients.clone().iter().zip(&ready[2..]) {
                if events.contains(PollFlags::IN) {
                    self.hear(client);
                } else if events.intersects(PollFlags::HUP | PollFlags::ERR) {
                    self.clients.retain(|other| !Rc::ptr_eq(other, client));
                }
            }
            if !ready[1].is_empty() {
                self.bury();
            }
            if !ready[0].is_empty() {
                self.welcome();
            }
        }
    }

    /// Adds a new client.
    fn welcome(&mut self) {
        let (memory, received) = match self.inbox.receive_with_descriptors() {
            Ok(Received::Frame(MoverRequest::Serve { memory }, received)) => (memory, received),
            Ok(Received::Nothing) => return,
            // The agent has ended, and the whole sandbox with it.
            Ok(Received::Closed) | Err(_) => sys::leave(1),
        };
        let mut received = received.into_iter();
        let Some(listener) = received.next() else {
            return;
        };
        let listener = Listener::from(listener);
        listener.hasten();
        self.clients.push(Rc::new(Client {
            listener,
            restricted: Cell::new(false),
            ledger: RefCell::new(Ledger::new(memory)),
            _done: received.next(),
        }));
    }

    /// Receives one call and handles it.
    fn hear(&mut self, client: &Rc<Client>) {
        // There is none if the caller was killed meanwhile.
        if let Ok(notice) = client.listener.receive() {
            self.answer((client.clone(), notice));
        }
    }

    fn answer(&mut self, call: Call) {
        let (client, notice) = &call;
        match guard::may_schedule(notice) {
            Some(true) => return client.listener.leave_to_kernel(notice.id),
            Some(false) => return client.listener.answer(notice.id, Err(Errno::PERM)),
            None => {}
        }
        if notice.call == anonymous::CALL {
            return match client.ledger.borrow_mut().allows(notice) {
                true => client.listener.leave_to_kernel(notice.id),
                false => client.listener.answer(notice.id, Err(Errno::NOMEM)),
            };
        }
        if notice.call == memfile::CALL {
            return memfile::answer(&client.listener, notice);
        }
        if caller::links_stored_file_for_git(notice) {
            return client.listener.answer(notice.id, Err(Errno::XDEV));
        }
        let Some(names) = self.renamed_directory(client, notice) else {
            return client.listener.leave_to_kernel(notice.id);
        };
        if self.copying.is_some() {
            // No directory is moved during a copy: it could get below itself. The tree may have changed when its turn comes, so
            // everything is checked again then.
            return self.waiting.push_back(call);
        }
        let Names { from, to } = &names.0;
        let done = renameat_with(&from.dir, &from.name, &to.dir, &to.name, names.1);
        if done != Err(Errno::XDEV) {
            return client.listener.answer(notice.id, done);
        }
        self.copies += 1;
        let (names, flags) = names;
        let copying = Copying {
            call,
            names,
            flags,
            number: self.copies,
            repairs: 0,
        };
        // SAFETY: the mover has one thread.
        match unsafe { sys::fork(0) } {
            Ok(Forked::Child) => {
                self.copy(&copying);
                sys::leave(0)
            }
            Ok(Forked::Parent { .. }) => self.copying = Some(copying),
            Err(errno) => copying.answer(Err(errno)),
        }
    }

    /// The copy, in a worker process.
    fn copy(&self, copying: &Copying) {
        let (client, notice) = &copying.call;
        let wanted = || client.listener.waits(notice.id);
        let work = match self.staging.begin(copying.number) {
            Ok(work) => work,
            Err(errno) => return copying.answer(Err(errno)),
        };
        let done = match copying.is_exchange() {
            true => exchange::exchange(&copying.names, &work, &wanted),
            false => tree::relocate(&copying.names, copying.flags, &work, &wanted),
        };
        // Before the work directory is removed: until then it shows the result, if this process is killed.
        copying.answer(done);
    }

    /// Starts a new worker to clean up after a killed one; false after too many attempts.
    fn repair(&mut self, mut copying: Copying) -> bool {
        if copying.repairs == REPAIRS {
            return false;
        }
        copying.repairs += 1;
        // SAFETY: the mover has one thread.
        match unsafe { sys::fork(0) } {
            Ok(Forked::Child) => {
                self.take_back(&copying);
                sys::leave(0)
            }
            Ok(Forked::Parent { .. }) => self.copying = Some(copying),
            Err(_) => self.take_back(&copying),
        }
        true
    }

    /// Answers a call whose worker was killed: it was complete, or it is undone.
    fn take_back(&self, copying: &Copying) {
        let found = match self.staging.resume(copying.number) {
            Ok(work) if copying.is_exchange() => exchange::take_back(&copying.names, &work),
            Ok(work) => tree::what_is_left(&copying.names, &work),
            // It had not started.
            Err(_) => Left::Undone,
        };
        copying.answer(match found {
            Left::Done => Ok(()),
            Left::Undone => Err(Errno::IO),
        });
    }

    /// The names of a directory that is to be renamed; `None` if the kernel should do it.
    fn renamed_directory(&self, client: &Client, notice: &Notice) -> Option<(Names, RenameFlags)> {
        if notice.call == libc::SYS_landlock_restrict_self {
            client.restricted.set(true);
        }
        let rename = caller::rename(notice).filter(|_| !client.restricted.get())?;
        let known =
            RenameFlags::NOREPLACE.contains(rename.flags) || rename.flags == RenameFlags::EXCHANGE;
        if !known || !rename.moves_directory(notice.thread) {
            return None;
        }
        let names = rename.find(&client.listener, notice, &self.top)?;
        Some((names, rename.flags))
    }

    /// Reaps a worker and starts the next copy.
    fn bury(&mut self) {
        sys::drain_child_events(self.children.as_fd());
        while let Waited::Ended(ended) = sys::wait_any(false) {
            if let Some(copying) = self.copying.take()
                && ended.status != 0
                && !self.repair(copying)
            {
                // The decision can be read from the layer, once nothing runs in it any more.
                sys::leave(1);
            }
        }
        while self.copying.is_none()
            && let Some(call) = self.waiting.pop_front()
        {
            self.answer(call);
        }
    }
}
