//! Changes of all vaults, read from the journal: what was told can be told again, from any position.

use super::Ask;
use super::app::{App, lock};
use super::failure::Failure;
use super::handler::{Listener, Reply};
use super::journal::items;
use crate::wire::{Events, EventsPage, JournalItem};
use avfs_runtime::{ErrorKind, JournalEntry, JournalFilter, JournalOrder, VaultId, VaultName};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Entries that are read at once.
const PAGE: usize = 100;
/// How often the journal is looked at while somebody listens, however many they are.
const LOOK: Duration = Duration::from_millis(100);
/// The longest wait for a page.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What a listener is told.
pub(crate) enum Told {
    /// Entries behind this one follow.
    Ready(u64),
    Entry(Box<JournalItem>),
}

/// The end of the journal, which all listeners share.
#[derive(Default)]
pub(crate) struct JournalEnd(Mutex<Option<(Instant, u64)>>);

impl JournalEnd {
    /// The id of the newest entry, at most so old as [`LOOK`].
    fn get(&self, ask: &Ask) -> Result<u64, Failure> {
        let seen = *lock(&self.0);
        match seen {
            Some((at, id)) if at.elapsed() < LOOK => Ok(id),
            _ => self.look(ask),
        }
    }

    /// The id of the newest entry.
    fn look(&self, ask: &Ask) -> Result<u64, Failure> {
        let mut seen = lock(&self.0);
        let newest = JournalFilter {
            limit: Some(1),
            order: JournalOrder::NewestFirst,
            ..JournalFilter::default()
        };
        let newest = ask.session.journal(None, newest)?;
        let id = newest.first().map_or(0, |entry| entry.seq);
        *seen = Some((Instant::now(), id));
        Ok(id)
    }
}

/// One page, for which the caller may wait.
pub(crate) fn page(ask: &Ask, request: Events, resume: Option<u64>) -> Reply<Events> {
    let patience = Duration::from_millis(request.wait_ms.unwrap_or(0)).min(WAIT_MAX);
    let until = Instant::now() + patience;
    let mut changes = Changes::new(ask, request.after, resume)?;
    loop {
        let (entries, more) = changes.next(ask)?;
        let is_over = Instant::now() >= until || ask.app.is_ending();
        if !entries.is_empty() || more || is_over {
            return Ok(EventsPage {
                entries,
                after: changes.after,
                more,
            });
        }
        std::thread::sleep(LOOK);
    }
}

/// All changes from there on, for a listener. It ends when the listener disconnects, or with the daemon.
pub(crate) fn follow(ask: Ask, request: Events, resume: Option<u64>) -> Result<Followed, Failure> {
    if request.wait_ms.is_some() {
        return Err(Failure::invalid("wait_ms is for a page, not for a stream"));
    }
    let changes = Changes::new(&ask, request.after, resume)?;
    Ok(Followed { ask, changes })
}

/// A listener's position.
pub(crate) struct Followed {
    ask: Ask,
    changes: Changes,
}

impl Followed {
    pub fn tell(mut self, listener: &dyn Listener<Told>) -> Result<(), Failure> {
        listener.tell(Told::Ready(self.changes.after), &|| true);
        while !listener.is_gone() && !self.ask.app.is_ending() {
            let (entries, more) = self.changes.next(&self.ask)?;
            for entry in entries {
                listener.tell(Told::Entry(Box::new(entry)), &|| true);
            }
            if !more {
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }
}

/// The entries behind a position that a caller may see.
struct Changes {
    after: u64,
    /// Names of vaults that were deleted, as far as they were needed.
    deleted: HashMap<VaultId, VaultName>,
}

impl Changes {
    fn new(ask: &Ask, after: Option<u64>, resume: Option<u64>) -> Result<Changes, Failure> {
        let asked = resume.or(after);
        let mut end = ask.app.journal_end.get(ask)?;
        if asked.is_some_and(|after| after > end) {
            end = ask.app.journal_end.look(ask)?;
        }
        let after = asked.unwrap_or(end);
        if after > end {
            // The position of another home, perhaps: nothing would ever come.
            let problem = format!("the journal ends before entry {after}");
            let failure = Failure::new(ErrorKind::Conflict, problem);
            return Err(failure.hint("begin again, without a position or after 0"));
        }
        let deleted = HashMap::new();
        Ok(Changes { after, deleted })
    }

    /// The next entries, and whether there are more at once.
    fn next(&mut self, ask: &Ask) -> Result<(Vec<JournalItem>, bool), Failure> {
        if ask.app.journal_end.get(ask)? <= self.after {
            return Ok((Vec::new(), false));
        }
        let filter = JournalFilter {
            after: Some(self.after),
            limit: Some(PAGE),
            order: JournalOrder::OldestFirst,
            ..JournalFilter::default()
        };
        let mut entries = ask.session.journal(None, filter)?;
        let more = entries.len() == PAGE;
        self.after = entries.last().map_or(self.after, |last| last.seq);
        if ask.caller.grant.is_limited() {
            let mut visible = Vec::with_capacity(entries.len());
            for entry in entries {
                if self.is_visible(ask, &entry)? {
                    visible.push(entry);
                }
            }
            entries = visible;
        }
        Ok((items(ask, entries)?, more))
    }

    /// Whether a caller that is limited to some vaults may see it. What concerns no vault concerns all.
    fn is_visible(&mut self, ask: &Ask, entry: &JournalEntry) -> Result<bool, Failure> {
        let Some(id) = entry.vault else {
            return Ok(false);
        };
        let name = match ask.session.vault_name(id)? {
            Some(name) => Some(name),
            None => self.deleted_name(ask, id)?,
        };
        Ok(name.is_some_and(|name| ask.caller.grant.reaches(&name)))
    }

    fn deleted_name(&mut self, ask: &Ask, id: VaultId) -> Result<Option<VaultName>, Failure> {
        if !self.deleted.contains_key(&id) {
            let all = ask.session.vault_deleted()?.into_iter();
            self.deleted = all.map(|it| (it.vault.id, it.vault.name)).collect();
        }
        Ok(self.deleted.get(&id).cloned())
    }
}

impl App {
    /// Whether clients that stay connected are being left.
    pub fn is_ending(&self) -> bool {
        *self.ending().borrow()
    }
}
