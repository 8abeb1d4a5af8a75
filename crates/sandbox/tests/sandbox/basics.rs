//! A command runs, sees its vault, and its end is told truly.

use std::fs;

use avfs_sandbox::{Event, ExitStatus};

use crate::Test;
use crate::world::{World, command, run, shell};

pub const TESTS: [Test; 1] = [("runs_a_command", runs_a_command)];

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
