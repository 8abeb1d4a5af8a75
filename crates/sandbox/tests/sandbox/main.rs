//! Sandboxes through their public face, as root and as an ordinary user.
//!
//! This program is also the keeper and the helper that it starts. Run by root, it runs its
//! tests, and then runs itself as an ordinary user, unless somebody else does (`AVFS_TEST_USERS=each`).

mod attacks;
mod basics;
mod corpus;
mod exchanges;
mod host;
mod limits;
mod listening;
mod lives;
mod memory;
mod network;
mod network_roles;
mod owners;
mod rename_ends;
mod rename_roles;
mod renames;
mod shares;
mod world;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::panic::catch_unwind;
use std::process::{Command, ExitCode};

/// An ordinary user who owns nothing on this host.
const ORDINARY: u32 = 12345;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("__keeper") => return avfs_sandbox::keeper_main(),
        Some("__helper") => return done(lives::helper),
        Some("__connect") => return done(|| attacks::connect(&arguments[2])),
        Some("__attack") => return done(attacks::attack),
        Some("__probe") => return done(host::probe),
        Some("__bomb") => return done(lives::bomb),
        Some("__doomed") => return done(|| lives::doomed_daemon(&arguments[2])),
        _ => {}
    }
    if rename_roles::play(&arguments)
        || limits::play(&arguments)
        || memory::play(&arguments)
        || shares::play(&arguments)
        || network_roles::play(&arguments)
        || corpus::play(&arguments)
    {
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().skip(1).find(|word| !word.starts_with('-'));
    let failed = run_all(filter.map(String::as_str));
    let is_run_by_each = std::env::var_os("AVFS_TEST_USERS").is_some_and(|users| users == "each");
    if failed {
        ExitCode::FAILURE
    } else if is_run_by_each || !rustix::process::geteuid().is_root() {
        ExitCode::SUCCESS
    } else {
        run_as_ordinary(&arguments[1..])
    }
}

fn done(role: impl FnOnce()) -> ExitCode {
    role();
    ExitCode::SUCCESS
}

fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("stderr is open");
}

/// Runs every test whose name contains the filter; true when one failed.
fn run_all(filter: Option<&str>) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let (mut passed, mut failed) = (0, 0);
    let tests = [
        basics::TESTS,
        attacks::TESTS,
        lives::TESTS,
        host::TESTS,
        renames::TESTS,
        rename_ends::TESTS,
        exchanges::TESTS,
        limits::TESTS,
        memory::TESTS,
        shares::TESTS,
        network::TESTS,
        listening::TESTS,
        owners::TESTS,
        corpus::TESTS,
    ];
    for (name, test) in tests.concat() {
        if filter.is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        let began = std::time::Instant::now();
        let good = catch_unwind(test).is_ok();
        let verdict = if good { "ok" } else { "FAILED" };
        say(&format!(
            "uid {user} {name} ... {verdict} ({:.0?})",
            began.elapsed()
        ));
        if good {
            passed += 1;
        } else {
            failed += 1;
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    say(&format!(
        "test result: {verdict}. {passed} passed; {failed} failed"
    ));
    failed > 0
}

/// Runs this program as an ordinary user, from a place which that user can reach.
fn run_as_ordinary(arguments: &[String]) -> ExitCode {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(dir.path(), open).expect("an open directory");
    // As every distribution has it; a bare machine may not.
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions("/dev/fuse", all).expect("a FUSE device");
    let binary = dir.path().join("sandbox-test");
    std::fs::copy(world::own_binary(), &binary).expect("a copy of this program");
    let status = Command::new(&binary)
        .args(arguments)
        .env("TMPDIR", dir.path())
        .uid(ORDINARY)
        .gid(ORDINARY)
        .status()
        .expect("this program runs as an ordinary user");
    if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
