//! What the host offers, and what the keeper does with it.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use avfs_sandbox::probe::{self, Outcome};
use avfs_sandbox::{ExitStatus, Keeper, SandboxPlan};

use crate::Test;
use crate::attacks::armed;
use crate::world::{World, command, own_binary, run};

pub const TESTS: &[Test] = &[
    ("probes_work", probes_work),
    ("probes_say_what_is_missing", probes_say_what_is_missing),
    (
        "a_silent_server_holds_up_nobody_else",
        a_silent_server_holds_up_nobody_else,
    ),
    (
        "a_keeper_dies_with_a_silent_server",
        a_keeper_dies_with_a_silent_server,
    ),
];

fn probes_work() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let probes = probe::run(dir.path(), dir.path(), &own_binary());
    assert_eq!(probes.len(), 8);
    let limits = &probes[7].detail;
    let better = limits.contains("Delegate=yes");
    assert_ne!(better, limits.contains("memory: cgroup-v"), "{limits}");
    for probe in &probes {
        assert_eq!(
            probe.outcome,
            Outcome::Works,
            "{}: {}",
            probe.name,
            probe.detail
        );
    }
    let left = std::fs::read_dir(dir.path())
        .expect("the directory is there")
        .count();
    assert_eq!(left, 0, "probes leave nothing behind");
}

/// Prints what the place it runs in offers: one `name works` or `name fix` a line.
pub fn probe() {
    for probe in probe::run(Path::new("/tmp"), Path::new("/tmp"), &own_binary()) {
        let outcome = match probe.outcome {
            Outcome::Works => "works".to_owned(),
            Outcome::Missing { reason, fix } => format!("missing: {reason}; {fix}"),
        };
        writeln!(std::io::stdout(), "{} {outcome}", probe.name).expect("stdout is open");
    }
}

/// A sandbox is a host that offers little.
fn probes_say_what_is_missing() {
    let world = World::new();
    let sandbox = armed(&world);
    let outcome = run(&sandbox, &command(&["/attack", "__probe"]));
    assert_eq!(
        outcome.status(),
        ExitStatus::Code(0),
        "{}",
        outcome.complaint()
    );
    let text = outcome.text();
    for line in ["Landlock works", "seccomp works"] {
        assert!(text.lines().any(|found| found == line), "{text}");
    }
    let names = [
        "user namespace",
        "pid namespace",
        "network namespace",
        "FUSE mount",
    ];
    for name in names.into_iter().chain(["overlay over FUSE"]) {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let line = line.unwrap_or_else(|| panic!("{name} is missing in {text}"));
        let (reason, fix) = line.split_once("; ").expect("a reason and a fix");
        assert!(
            reason.starts_with(" missing: ") && !fix.is_empty(),
            "{line}"
        );
    }
}

/// A plan over a file system that nobody serves.
fn over(world: &World, path: &Path) -> SandboxPlan {
    let mut plan = world.plan_beside("silent");
    let overlay = plan.overlay.as_mut().expect("it has an overlay");
    overlay.lowers.insert(0, path.to_owned());
    plan
}

fn a_silent_server_holds_up_nobody_else() {
    let world = World::new();
    let silent = world.keeper.mount_fuse("silent").expect("a mount");
    assert!(
        world.keeper.mount_fuse("silent").is_err(),
        "a name is used once"
    );
    let (keeper, plan) = (world.keeper.clone(), over(&world, &silent.path));
    let waiting = std::thread::spawn(move || keeper.open_sandbox(&plan, Vec::new()).map(drop));
    std::thread::sleep(Duration::from_millis(50));
    assert!(!waiting.is_finished(), "it waits for the server");
    assert_eq!(
        run(&world.open(), &command(&["true"])).status(),
        ExitStatus::Code(0)
    );
    drop(silent.fd);
    assert!(
        waiting.join().expect("no panic").is_err(),
        "the server is gone"
    );
}

fn a_keeper_dies_with_a_silent_server() {
    let world = World::new();
    let silent = world.keeper.mount_fuse("silent").expect("a mount");
    let (keeper, plan): (Keeper, _) = (world.keeper.clone(), over(&world, &silent.path));
    let waiting = std::thread::spawn(move || keeper.open_sandbox(&plan, Vec::new()).map(drop));
    std::thread::sleep(Duration::from_millis(50));
    let began = Instant::now();
    world.keeper.kill();
    assert!(!world.keeper.is_alive());
    assert!(waiting.join().expect("no panic").is_err());
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}
