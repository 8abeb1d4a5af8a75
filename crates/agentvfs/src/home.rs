//! What concerns a home as a whole: its journal, its store, its defaults, its mounts, its daemon.

use crate::avfs::Avfs;
use crate::error::Result;
use crate::paths::on_host;
use avfs_api::wire::{
    CURRENT, Changes, Collected, Daemon, DaemonState, Defaults, DefaultsListing, DefaultsSet,
    Events, EventsPage, ExecChangesReport, Fsck, FsckFindings, Gc, Journal, JournalItem,
    JournalVerified, JournalVerify, Maintain, Maintained, MetricsRead, MountItem, Mounts, Output,
    OutputPart, PolicyTested, PolicyValidate, PolicyWrite, PolicyWritten, PortList, PortListing,
    Stats, StatsItem, StreamWord, TransferSet, TransferShow, TransferState, Unmount, UnmountedItem,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

impl Avfs {
    /// What happened, the newest first. [`Journal`] has filters; it is asked with [`Avfs::ask`].
    pub fn journal(&self, limit: usize) -> Result<Vec<JournalItem>> {
        let request = Journal {
            limit,
            ..Journal::default()
        };
        Ok(self.ask(&request)?.entries)
    }

    /// Changes of all vaults behind an entry of the journal, the oldest first; `None` is from now on. It waits until there is
    /// one, up to half a minute; [`EventsPage::after`] is where to continue.
    pub fn changes(&self, after: Option<u64>, wait: Duration) -> Result<EventsPage> {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let wait_ms = Some(wait_ms);
        self.ask(&Events { after, wait_ms })
    }

    /// Checks the hash chain of the journal.
    pub fn verify_journal(&self) -> Result<JournalVerified> {
        self.ask(&JournalVerify {})
    }

    /// Deletes objects that nothing refers to.
    pub fn gc(&self) -> Result<Collected> {
        self.ask(&Gc::default())
    }

    /// Checks every object, the database and the journal.
    pub fn fsck(&self) -> Result<FsckFindings> {
        self.ask(&Fsck::default())
    }

    /// How much is stored, and for what.
    pub fn stats(&self) -> Result<StatsItem> {
        self.ask(&Stats {})
    }

    /// Prunes versions as asked, deletes unreachable objects and compacts the store.
    pub fn maintain(&self, options: &Maintain) -> Result<Maintained> {
        self.ask(options)
    }

    /// The settings and quotas that new vaults begin with.
    pub fn defaults(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.ask(&Defaults {})?.settings)
    }

    /// Changes what new vaults begin with. A setting without a value is removed.
    pub fn set_defaults<K: Into<String>>(
        &self,
        settings: impl IntoIterator<Item = (K, Option<String>)>,
    ) -> Result<DefaultsListing> {
        let settings = settings.into_iter();
        let settings = settings.map(|(key, value)| (key.into(), value)).collect();
        self.ask(&DefaultsSet { settings })
    }

    /// The one directory of the host that agents may import from and export to.
    pub fn transfer_dir(&self) -> Result<TransferState> {
        self.ask(&TransferShow {})
    }

    /// Sets that directory; none takes it away.
    pub fn set_transfer_dir(&self, dir: Option<&Path>) -> Result<TransferState> {
        let (dir, dir_b64) = match dir.map(on_host).transpose()? {
            Some((dir, exact)) => (Some(dir), exact),
            None => (None, None),
        };
        self.ask(&TransferSet { dir, dir_b64 })
    }

    /// The mounts of all vaults.
    pub fn mounts(&self) -> Result<Vec<MountItem>> {
        Ok(self.ask(&Mounts {})?.mounts)
    }

    /// Takes the mount at a directory of the host away, after committing what was written.
    pub fn unmount(&self, dir: impl AsRef<Path>) -> Result<Vec<UnmountedItem>> {
        let (dir, dir_b64) = on_host(dir)?;
        let request = Unmount {
            dir: Some(dir),
            dir_b64,
            ..Unmount::default()
        };
        Ok(self.ask(&request)?.unmounted)
    }

    /// The ports of the host that lead into vaults, and where commands listen.
    pub fn ports(&self) -> Result<PortListing> {
        self.ask(&PortList::default())
    }

    /// A part of what a command wrote, beyond what its result holds; `exec` is [`crate::types::EnvelopeResult::exec`].
    pub fn output(&self, exec: &str, stream: StreamWord, from: u64) -> Result<OutputPart> {
        self.ask(&Output {
            exec: exec.to_owned(),
            stream,
            from,
            to: None,
        })
    }

    /// What a command changed, up to 10,000 paths; with `all` also what is ignored and what is in the home directory.
    /// [`Changes`] has pages and patches; it is asked with [`Avfs::ask`].
    pub fn exec_changes(&self, exec: &str, all: bool) -> Result<ExecChangesReport> {
        self.ask(&Changes {
            exec: exec.to_owned(),
            all,
            ..Changes::default()
        })
    }

    /// Checks the text of rules and tries their examples; `level` is `system`, `user` or `vault`.
    pub fn validate_policy(&self, level: &str, text: &str) -> Result<PolicyTested> {
        self.ask(&PolicyValidate {
            level: level.to_owned(),
            text: text.to_owned(),
        })
    }

    /// Replaces the rules of the user or of the system. `seen` is what they were when the new ones were written; if they
    /// have changed since, that is a conflict.
    pub fn write_policy(
        &self,
        level: &str,
        seen: Option<&str>,
        text: &str,
    ) -> Result<PolicyWritten> {
        self.ask(&PolicyWrite {
            level: level.to_owned(),
            seen: seen.map(str::to_owned),
            text: text.to_owned(),
        })
    }

    /// What the daemon is doing; for an embedded home, what this process is doing with it.
    pub fn daemon(&self) -> Result<DaemonState> {
        self.ask(&Daemon {})
    }

    /// Counters of the daemon in the text format of Prometheus. Only with `vaults` are vaults named.
    pub fn metrics(&self, vaults: bool) -> Result<String> {
        let mut text = Vec::new();
        self.face
            .download(CURRENT, &MetricsRead { vaults }, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Stops the daemon and waits until it has ended; with `force` also while detached jobs run. The next call starts
    /// another one. An embedded home has none: an error of kind `Invalid`.
    pub fn stop_daemon(&self, force: bool) -> Result<()> {
        self.face.stop(force)
    }
}
