//! The runtime of one home: who holds what, and how it starts and ends.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use avfs_vault::{VaultId, VaultName, Vaults};
use avfs_view::Layers;

use crate::command::observer::Observers;
use crate::command::policy::PolicyFiles;
use crate::command::spill::Spills;
use crate::files::search::Indexes;
use crate::job::Jobs;
use crate::live::admission::LAST_COMMITS;
use crate::live::engine::{Engine, Unremoved};
use crate::live::host::{Host, HostFacts};
use crate::live::layers_place::LayersPlace;
use crate::live::mounts::{Window, heal};
use crate::live::network::Networks;
use crate::live::ports::Forwards;
use crate::live::slot::Slot;
use crate::memory;
use crate::owners::layer_owner;
use crate::read_only::{Work, may_not_write};
use crate::registry::KnownRegistries;
use crate::repair::{Rebuild, open_vaults};
use crate::secret::Secrets;
use crate::{Error, Result};

/// Views that nobody used for this long are given back.
const VIEW_IDLE: Duration = Duration::from_secs(300);
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// More memory than this that is resident for nothing is given back.
const WASTE: u64 = 8 << 20;
/// With more than this, caches are not worth the pieces between them.
const MUCH_WASTE: u64 = 16 << 20;
/// With more memory than this, caches go now and then, whatever they are good for.
const LARGE: u64 = 64 << 20;
const CACHES_LAST: Duration = Duration::from_secs(30);

/// Where a runtime lives and what it may know of its host.
#[derive(Debug, Clone)]
pub struct Config {
    pub home: PathBuf,
    /// A directory of ours, mode 0700, that goes away with the machine's boot.
    pub runtime_dir: PathBuf,
    /// This program: the keeper and its helpers are the same one.
    pub binary: PathBuf,
    pub host: HostFacts,
    /// Where the owner wants layers to be; in the home, if that can hold them, when none.
    pub layers: Option<PathBuf>,
    pub if_lost: IfLost,
}

/// What to do with a home whose database is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfLost {
    #[default]
    Refuse,
    /// A new one is made from what is left.
    Rebuild,
}

/// Which vault an operation is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Select {
    #[default]
    Current,
    Named(VaultName),
    /// By what it keeps when it is renamed.
    Id(VaultId),
}

/// Text as it names a vault. An id is taken for one only as it is printed; new vaults cannot be called like one.
impl std::str::FromStr for Select {
    type Err = avfs_vault::Error;

    fn from_str(text: &str) -> Result<Select, avfs_vault::Error> {
        match id_in(text) {
            Some(id) => Ok(Select::Id(id)),
            None => text.parse().map(Select::Named),
        }
    }
}

/// The id that a text is, letter by letter.
pub(crate) fn id_in(text: &str) -> Option<VaultId> {
    let id: VaultId = text.parse().ok()?;
    (id.to_string() == text).then_some(id)
}

/// What is going on at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    pub running_execs: usize,
    pub live_views: usize,
    pub mounts: usize,
    /// Ports of the host that lead into sandboxes.
    pub forwards: usize,
    pub running_jobs: usize,
    pub keeper_pid: Option<u32>,
}

/// All use cases of one home. Cheap to clone; every method may be called from any thread.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub config: Config,
    pub work: Work,
    pub vaults: Vaults,
    pub layers: Layers,
    pub host: Host,
    pub policy: PolicyFiles,
    pub indexes: Indexes,
    pub spills: Spills,
    pub jobs: Jobs,
    /// The keeper and what it serves, once somebody needed it.
    pub engine: Mutex<Option<Arc<Engine>>>,
    pub unremoved: Unremoved,
    /// The networks of live sandboxes.
    pub networks: Networks,
    /// Ports of the host that lead into sandboxes.
    pub forwards: Forwards,
    pub secrets: Secrets,
    pub observers: Observers,
    /// The package registries of the host.
    pub registries: KnownRegistries,
    slots: Mutex<HashMap<VaultId, Arc<Slot>>>,
    /// Older states that are mounted.
    pub windows: Mutex<Vec<Window>>,
    /// Held while something is mounted or unmounted.
    pub mounting: Mutex<()>,
    /// Whether any commit was refused since the start.
    pub uncommitted: AtomicBool,
    /// What was brought back at the start, for whoever asked for it.
    pub rebuilt: Mutex<Option<Rebuild>>,
    /// When commits have to end because the daemon does.
    ending: OnceLock<Instant>,
    /// When memory was last given back.
    rested: Mutex<Instant>,
    _home_lock: File,
}

impl Runtime {
    /// Takes the home. What an earlier daemon left unfinished becomes versions in the background, vault by vault.
    pub fn open(config: Config) -> Result<Runtime> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&config.home)
            .map_err(Error::io(format!("creating {}", config.home.display())))?;
        let home_lock = lock_home(&config)?;
        avfs_sandbox::raise_open_files();
        let (vaults, rebuilt) = open_vaults(&config)?;
        let work = Work::find(&config, &vaults)?;
        let layers = open_layers(&config, &work)?;
        let host = Host::survey(&work.config(&config))?;
        let networks = Networks::new(&config.host.proxies, &config.home);
        let policy = PolicyFiles::new(config.host.user_policy.clone());
        let inner = Inner {
            networks,
            forwards: Forwards::default(),
            registries: KnownRegistries::default(),
            secrets: Secrets::new(config.host.secret_key.clone(), &config.home),
            observers: Observers::default(),
            indexes: Indexes::new(&work.directory),
            work,
            spills: Spills::new(&config.home),
            jobs: Jobs::open(&config.home),
            config,
            vaults,
            layers,
            host,
            policy,
            engine: Mutex::default(),
            unremoved: Unremoved::default(),
            slots: Mutex::default(),
            windows: Mutex::default(),
            mounting: Mutex::default(),
            uncommitted: AtomicBool::new(false),
            rebuilt: Mutex::new(rebuilt),
            ending: OnceLock::new(),
            rested: Mutex::new(Instant::now()),
            _home_lock: home_lock,
        };
        let runtime = Runtime {
            inner: Arc::new(inner),
        };
        if runtime.inner.work.is_read_only {
            // In memory alone: nobody waits for a job that is over.
            runtime.give_up_lost_jobs();
            return Ok(runtime);
        }
        runtime.finish_interrupted_exports();
        heal(&runtime.inner.config.home);
        let leftovers = runtime.find_leftovers()?;
        runtime.give_up_lost_jobs();
        runtime.recover_in_background(leftovers);
        runtime.tidy_in_background();
        Ok(runtime)
    }

    /// Ends all sandboxes and the keeper. What commands had written by then is committed.
    pub fn shutdown(&self) {
        self.announce_end_to_jobs();
        self.inner
            .ending
            .get_or_init(|| Instant::now() + LAST_COMMITS);
        self.inner.forwards.close_all();
        for slot in self.slots() {
            slot.shut(self);
        }
        self.close_windows();
        if let Some(engine) = lock(&self.inner.engine).take() {
            engine.keeper.kill();
        }
        self.await_jobs();
    }

    /// Gives back the memory that only speed needs: for when nothing is asked for a while.
    pub fn release_caches(&self) -> Result<()> {
        *lock(&self.inner.rested) = Instant::now();
        self.inner.vaults.trees().release_caches()?;
        if let Some(engine) = self.running_engine() {
            engine.release_caches();
        }
        memory::give_back();
        Ok(())
    }

    /// Gives back memory that is resident for nothing: under load nobody is idle, and commits of hostile layers leave
    /// many small free pieces behind. Where that is not enough, caches go too, as they lie in between. They also go where
    /// they have become large: each is bounded by itself, but what the kernel knows of a lens is not.
    pub fn stay_small(&self) -> Result<()> {
        if memory::wasted() > WASTE {
            memory::give_back();
        }
        let is_large = memory::own() > LARGE && lock(&self.inner.rested).elapsed() > CACHES_LAST;
        if memory::wasted() > MUCH_WASTE || is_large {
            self.release_caches()?;
        }
        Ok(())
    }

    /// What is going on at the moment.
    pub fn activity(&self) -> Activity {
        let slots = self.slots();
        Activity {
            running_execs: slots.iter().map(|slot| slot.running()).sum(),
            live_views: slots.iter().filter(|slot| slot.is_live()).count(),
            mounts: slots.iter().filter(|slot| slot.is_mounted()).count()
                + lock(&self.inner.windows).len(),
            forwards: self.inner.forwards.count(),
            running_jobs: self.inner.jobs.count_running(),
            keeper_pid: self.running_engine().map(|engine| engine.keeper.pid()),
        }
    }

    /// Whether the daemon is about to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.inner.ending.get().is_some()
    }

    /// Whether it has waited for commits long enough.
    pub(crate) fn is_over(&self) -> bool {
        let ending = self.inner.ending.get();
        ending.is_some_and(|at| Instant::now() >= *at)
    }

    /// The one place where the vault's view is opened, committed and closed.
    pub(crate) fn slot(&self, vault: VaultId) -> Arc<Slot> {
        let mut slots = lock(&self.inner.slots);
        slots
            .entry(vault)
            .or_insert_with(|| Arc::new(Slot::new(vault)))
            .clone()
    }

    /// The slot, if one was created.
    pub(crate) fn slot_of(&self, vault: VaultId) -> Option<Arc<Slot>> {
        lock(&self.inner.slots).get(&vault).cloned()
    }

    pub(crate) fn forget_slot(&self, vault: VaultId) {
        lock(&self.inner.slots).remove(&vault);
    }

    /// Forgets slots that hold nothing and that nobody has. Whoever named a vault just before it was deleted has made
    /// another slot for it, which no deletion removes.
    pub(crate) fn forget_empty_slots(&self) {
        let mut slots = lock(&self.inner.slots);
        // Only the table leads to a slot, so nobody can begin to use one meanwhile.
        slots.retain(|_, slot| Arc::strong_count(slot) > 1 || !slot.is_empty());
        let room = slots.len() * 2;
        slots.shrink_to(room);
    }

    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        lock(&self.inner.slots).values().cloned().collect()
    }

    fn tidy_in_background(&self) {
        let inner: Weak<Inner> = Arc::downgrade(&self.inner);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(TIDY_EVERY);
                let Some(inner) = inner.upgrade() else { return };
                let runtime = Runtime { inner };
                for slot in runtime.slots() {
                    slot.tidy(&runtime, VIEW_IDLE);
                }
                runtime.forget_empty_slots();
                runtime.remove_unremoved();
                runtime.sweep_output(None);
                runtime.inner.jobs.sweep();
                // After a full disk. What there is no room for yet is tried again.
                runtime.inner.vaults.trees().store().regain();
            }
        });
    }
}

/// Works on a thread of its own.
pub(crate) fn in_background(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name(name.into());
    thread.spawn(work).map(drop)
}

/// Locks even after a holder panicked: one failed request must not take its vault, or all of them, along.
///
/// What these locks guard is changed in single steps, and an exec that unwinds leaves its slot by `Drop`.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_layers(config: &Config, work: &Work) -> Result<Layers> {
    if work.is_read_only {
        // Nothing is made in it. What the home's own layers hold waits for a daemon that may commit it.
        let directory = work.directory.join("layers");
        return Ok(Layers::among(directory, Vec::new(), layer_owner())?);
    }
    let chosen = config.layers.as_deref();
    let place = LayersPlace::find(&config.home, &config.runtime_dir, chosen, &config.binary)?;
    let earlier = place.earlier(&config.home)?;
    Ok(Layers::among(place.directory, earlier, layer_owner())?)
}

fn lock_home(config: &Config) -> Result<File> {
    let path = config.home.join("lock");
    let failed = || Error::io(format!("locking {}", path.display()));
    let mut options = File::options();
    let opened = options.create(true).truncate(false).write(true).open(&path);
    let file = match opened {
        // A home that may only be read is locked as well: its file, or else the home itself.
        Err(error) if may_not_write(&error) => File::open(&path)
            .or_else(|_| File::open(&config.home))
            .map_err(failed())?,
        opened => opened.map_err(failed())?,
    };
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::HomeInUse {
            home: config.home.display().to_string(),
        }),
        Err(TryLockError::Error(source)) => Err(failed()(source)),
    }
}
