//! A command runs, sees its vault, and its end is told truly.

use std::fs;

use avfs_sandbox::{Event, ExitStatus};

use crate::Test;
use crate::world::{World, command, run, shell};

pub const TESTS: &[Test] = &[("runs_a_command", runs_a_command), ("timings", timings)];

fn runs_a_command() {
    let world = World::new();
    fs::write(world.path("lower/hello.txt"), "hello from the vault").expect("a file");
    let sandbox = world.open();
    let outcome = run(&sandbox, &command(&["cat", "/hello.txt"]));
    assert_eq!(
        outcome.text(),
        "hello from the vault",
        "{}",
        outcome.complaint()
    );
    assert!(matches!(outcome.events[0], Event::Started { pid } if pid > 1));
    assert_eq!(outcome.status(), ExitStatus::Code(0));

    let outcome = run(&sandbox, &shell("echo new > /made; id -u; exit 42"));
    assert_eq!(outcome.text(), "1000\n", "{}", outcome.complaint());
    assert_eq!(outcome.status(), ExitStatus::Code(42));
    assert_eq!(
        fs::read_to_string(world.path("upper/made")).expect("a new file"),
        "new\n"
    );
}

fn timings() {
    let world = World::new();
    let mut opens = Vec::new();
    for _ in 0..20 {
        let began = std::time::Instant::now();
        let sandbox = world.open();
        opens.push(began.elapsed());
        drop(sandbox);
    }
    let sandbox = world.open();
    let mut execs = Vec::new();
    for _ in 0..200 {
        let null = || {
            std::fs::File::options()
                .read(true)
                .write(true)
                .open("/dev/null")
                .unwrap()
        };
        let stdio = avfs_sandbox::Stdio {
            stdin: null().into(),
            stdout: null().into(),
            stderr: null().into(),
        };
        let began = std::time::Instant::now();
        let running = sandbox.exec(&command(&["/bin/true"]), stdio).unwrap();
        crate::world::events(&running);
        execs.push(began.elapsed());
    }
    let mut spawns = Vec::new();
    for _ in 0..200 {
        let began = std::time::Instant::now();
        std::process::Command::new("/bin/true").status().unwrap();
        spawns.push(began.elapsed());
    }
    for (name, times) in [
        ("open", &mut opens),
        ("exec", &mut execs),
        ("spawn", &mut spawns),
    ] {
        times.sort();
        crate::say(&format!(
            "{name}: min {:?} median {:?}",
            times[0],
            times[times.len() / 2]
        ));
    }
}
