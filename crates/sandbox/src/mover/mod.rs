//! The mover: renames stored directories where the kernel cannot.
//!
//! An overlay mounted without root answers EXDEV to the rename of a directory that is in a lower
//! layer. So every rename of a command is announced to this process, one for each sandbox, which
//! leaves all but those of such directories to the kernel, and does those by copying: the copy
//! gets ready where no command can reach it ([`staging`]), then has the new name in one step, then
//! the old one is removed. At every moment one of the two names has the whole tree. Others may see
//! both names for a while; what is written under the old name meanwhile goes over to
//! the new one, but for writes through descriptors that were open before. Two names are exchanged
//! in a like way ([`exchange`]). It also keeps commands from our own processes ([`guard`]) and
//! makes or counts memory that nothing else counts ([`memfile`], [`anonymous`]); where the overlay needs no help, that is all.
//! It has git copy stored files where it would link them
//! ([`caller::links_stored_file_for_git`]).
//!
//! It runs as the commands' user in their namespaces, so its rights are theirs; commands that
//! restrict themselves by Landlock have less, and are left to the kernel.

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

/// How long a mover may take to be ready.
const READY: Duration = Duration::from_secs(10);

/// How often what a worker left that was killed is put in order, before the sandbox is given up.
const REPAIRS: u32 = 3;

/// Reads the memory of commands where the Yama module lets only ancestors do so.
const LOOKS: CapabilitySet = CapabilitySet::SYS_PTRACE;
/// Copies files that their owner may not read, as a rename moves them too.
const READS: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;

/// The agent's handle on its mover.
pub(crate) struct Mover {
    pub pid: i32,
    door: Link,
    /// What it is asked about.
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

    /// What must stay open for commands to be handed over.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.door.as_fd().as_raw_fd()
    }

    /// Has this process and all it will start served. `done` is let go after the last of them.
    ///
    /// `memory` is what they may have, if no control group holds them.
    pub(crate) fn serve_me(&self, done: OwnedFd, memory: Option<u64>) -> Result<(), Errno> {
        let listener = Listener::install(self.duty)?;
        let passed = [listener.as_fd(), done.as_fd()];
        // Nothing has to be finished after the end of who is only asked about.
        let passed = match self.duty.names {
            true => &passed[..],
            false => &passed[..1],
        };
        self.door
            .send(&MoverRequest::Serve { memory }, passed)
            .map_err(|_| Errno::PIPE)
    }
}

/// A command that is served.
struct Client {
    listener: Listener,
    /// Whether it has restricted itself beyond what this process could know.
    restricted: Cell<bool>,
    ledger: RefCell<Ledger>,
    /// Its supervisor waits until nobody has this any more.
    _done: Option<OwnedFd>,
}

/// A call of a client.
type Call = (Rc<Client>, Notice);

/// The mover itself.
struct Process {
    inbox: Link,
    children: OwnedFd,
    top: Statx,
    clients: Vec<Rc<Client>>,
    staging: Staging,
    /// The copy under way. One at a time, or two could move one directory to two places.
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

/// What became of a call whose worker was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// All of it had been done.
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

/// The whole life of a mover.
fn live(inbox: Link, duty: Notified, filter: &Filter, held: &[RawFd], staging: Staging) -> ! {
    // Cosmetic: a process listing shows which of the equal-looking processes this is.
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

/// Gives up what it does not need.
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
    /// Serves until the agent lets go, which it never does.
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

    /// Takes a new client in.
    fn welcome(&mut self) {
        let (memory, received) = match self.inbox.receive_with_descriptors() {
            Ok(Received::Frame(MoverRequest::Serve { memory }, received)) => (memory, received),
            Ok(Received::Nothing) => return,
            // The agent is gone, and with it everything here.
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

    /// Receives one call and sees to it.
    fn hear(&mut self, client: &Rc<Client>) {
        // There is none when the caller was killed meanwhile.
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
            // No directory moves during a copy: it could get below itself. The tree may be another
            // one when its turn comes, so all is looked at again then.
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

    /// The work itself, in a process of its own.
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
        // Before the workplace goes away: until then it shows, if this process is killed, what became of the call.
        copying.answer(done);
    }

    /// Has a new worker put in order what one left that was killed; false when that was tried often enough.
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

    /// Answers a call whose worker was killed: it was done, or it is taken back as far as it was.
    fn take_back(&self, copying: &Copying) {
        let found = match self.staging.resume(copying.number) {
            Ok(work) if copying.is_exchange() => exchange::take_back(&copying.names, &work),
            Ok(work) => tree::what_is_left(&copying.names, &work),
            // It had not begun.
            Err(_) => Left::Undone,
        };
        copying.answer(match found {
            Left::Done => Ok(()),
            Left::Undone => Err(Errno::IO),
        });
    }

    /// The names of a directory that is to be renamed; nothing if the kernel is to answer.
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

    /// Reaps a copy that has ended and goes on to the next.
    fn bury(&mut self) {
        sys::drain_child_events(self.children.as_fd());
        while let Waited::Ended(ended) = sys::wait_any(false) {
            if let Some(copying) = self.copying.take()
                && ended.status != 0
                && !self.repair(copying)
            {
                // What was decided is known from the layer, once nothing runs in it any more.
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
