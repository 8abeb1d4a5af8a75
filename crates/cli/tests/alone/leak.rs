//! Nothing in memory stays of a vault that was forked, used, mounted (by root) and deleted.
//!
//! The runtime is in this process, under an allocator that counts. `AVFS_LEAK_VAULTS=2000 cargo test -p agentvfs-cli --test alone leak` is
//! the whole.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use avfs_runtime::{
    AfterFork, Cancel, Config, Control, ExecCommand, ExecOptions, ExecRequest, ForkPoint,
    HostFacts, IfBusy, IfLost, InUse, MountAccess, MountRequest, OutputSink, Principal, Runtime,
    Select, Session, Stdin, Stream, UnmountTarget, VaultName, mount_namespace,
};

use avfs_testkit::SOON;

use crate::{AVFS, one_at_a_time};

/// A part for every run.
const VAULTS: u64 = 60;
/// Until caches and pools have what they will have.
const FIRST: u64 = 40;
/// What may have grown meanwhile, whatever was done: tables and buffers do so in steps.
const STEPS: i64 = 64 << 10;
/// What may stay of each.
const BYTES_EACH: i64 = 128;

/// Counts what is in use, all of it and by size.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);
static BY_SIZE: [AtomicI64; 4096] = [const { AtomicI64::new(0) }; 4096];

fn count(layout: Layout, sign: i64) {
    let size = layout.size() as i64;
    LIVE.fetch_add(sign * size, Ordering::Relaxed);
    let class = (layout.size() / 8).min(BY_SIZE.len() - 1);
    BY_SIZE[class].fetch_add(sign, Ordering::Relaxed);
}

// SAFETY: all is done by the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        // SAFETY: as for this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout, -1);
        // SAFETY: as for this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Silent;

impl OutputSink for Silent {
    fn output(&self, _: Stream, _: &[u8], _: Option<Instant>) {}

    fn cancelled(&self) -> Option<Cancel> {
        None
    }
}

fn exec(session: &Session, vault: &VaultName, text: &str) {
    let request = ExecRequest {
        vault: Select::Named(vault.clone()),
        command: ExecCommand::Shell(text.into()),
        cwd: None,
        env: Vec::new(),
        stdin: Stdin::Empty,
        terminal: None,
        control: Arc::<Control>::default(),
        options: ExecOptions::default(),
    };
    let report = session.exec(request, &Silent).unwrap();
    assert_eq!(report.exit_code(), Some(0));
}

fn use_one(session: &Session, source: &VaultName, number: u64) {
    let fork: VaultName = format!("fork-{number}").parse().unwrap();
    let (point, then) = (ForkPoint::Head, AfterFork::Stay);
    session.vault_fork(source, &point, &fork, then).unwrap();
    exec(
        session,
        &fork,
        "echo new > /new; rm /d/1; mkdir /e; cat /d/2",
    );
    if rustix::process::geteuid().is_root() {
        mount_once(session, &fork);
    }
    session.vault_delete(&fork, IfBusy::Refuse).unwrap();
}

/// Whoever looks after a mount may find that the vault is gone, too.
fn mount_once(session: &Session, vault: &VaultName) {
    let request = MountRequest {
        vault: Select::Named(vault.clone()),
        dir: None,
        access: MountAccess::ReadWrite,
        at: None,
        driver: None,
        autocommit: None,
        audience: avfs_runtime::Audience::User,
        namespace: mount_namespace().unwrap(),
    };
    let mounted = session.mount(request).unwrap();
    std::fs::write(mounted.dir.join("by-mount"), "x").unwrap();
    let target = UnmountTarget::Dir(mounted.dir);
    session.unmount(target, InUse::Refuse).unwrap();
}

/// What is in use when nothing is under way.
fn at_rest(runtime: &Runtime) -> (i64, Vec<i64>) {
    // Sandboxes end and layers are removed in the background.
    let mut least = i64::MAX;
    let mut sizes = Vec::new();
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(250));
        runtime.release_caches().unwrap();
        let live = LIVE.load(Ordering::Relaxed);
        if live < least {
            least = live;
            sizes = BY_SIZE
                .iter()
                .map(|it| it.load(Ordering::Relaxed))
                .collect();
        }
    }
    (least, sizes)
}

#[test]
fn nothing_stays_in_memory_of_a_vault_that_is_gone() {
    let _turn = one_at_a_time();
    let told = std::env::var("AVFS_LEAK_VAULTS").ok();
    let vaults = told.map_or(VAULTS, |text| text.parse().unwrap());
    let dir = tempfile::Builder::new()
        .prefix("avfs-")
        .tempdir_in("/tmp")
        .unwrap();
    let runtime_dir = dir.path().join("run");
    std::fs::create_dir(&runtime_dir).unwrap();
    let runtime = Runtime::open(Config {
        if_lost: IfLost::Refuse,
        home: dir.path().join("home"),
        runtime_dir,
        binary: std::env::var_os("AVFS_TEST_BIN")
            .unwrap_or_else(|| AVFS.into())
            .into(),
        host: HostFacts::default(),
        layers: None,
    })
    .unwrap();
    let session = runtime.by(Principal::OWNER);
    let source: VaultName = "source".parse().unwrap();
    session.vault_create(&source).unwrap();
    exec(
        &session,
        &source,
        "mkdir /d; for f in 1 2 3; do echo $f > /d/$f; done",
    );
    (0..FIRST).for_each(|number| use_one(&session, &source, number));
    let (before, sizes) = at_rest(&runtime);
    (FIRST..FIRST + vaults).for_each(|number| use_one(&session, &source, number));
    let vaults = vaults.cast_signed();
    let until = Instant::now() + SOON;
    // Threads that served a mount hold their buffers until they end, which takes as long as the machine is busy.
    let (more, grown) = loop {
        let (after, sizes_after) = at_rest(&runtime);
        let by_size = sizes.iter().zip(&sizes_after).enumerate();
        let grown = by_size.map(|(class, (before, after))| (class * 8, after - before));
        // As many more of a size as there were vaults are no chance.
        let grown: Vec<_> = grown.filter(|(_, more)| *more >= vaults / 2).collect();
        let more = after - before;
        let is_flat = more < STEPS + BYTES_EACH * vaults && grown.is_empty();
        if is_flat || Instant::now() > until {
            break (more, grown);
        }
    };
    runtime.shutdown();
    let figures = format!("{more} bytes stay of {vaults} vaults; more of each size: {grown:?}");
    assert!(more < STEPS + BYTES_EACH * vaults, "{figures}");
    assert!(grown.is_empty(), "{figures}");
    say(&figures);
}

#[allow(clippy::print_stderr, reason = "figures of a long run are to be read")]
fn say(text: &str) {
    eprintln!("{text}");
}
